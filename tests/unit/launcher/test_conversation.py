"""A conversation over lines that break: what is said, when it comes back, and what ends it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from launchpad.errors import (
    ContainerStopped,
    HostUnreachable,
    LaunchpadError,
    LineLost,
    LoginRefused,
    ShellError,
)
from launchpad.launcher import conversation
from launchpad.launcher.conversation import Conversation, Notice, Opened, Said
from launchpad.launcher.desk import Desk
from launchpad.scripts import RemoteCall
from launchpad.target import parse_target
from launchpad.transport.base import (
    Completed,
    ConnectOptions,
    Event,
    Exited,
    Output,
    Stream,
)
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from launchpad.launcher.contact import Contact
    from launchpad.target import Target


@dataclass(slots=True)
class Script:
    """One line: what comes on it, in order; an error is raised, and then silence reigns."""

    events: list[Event | LaunchpadError]
    sent: list[bytes] = field(default_factory=list)
    closed: bool = False

    def send(self, data: bytes) -> None:
        self.sent.append(data)

    def close_stdin(self) -> None:
        pass

    def receive(self, timeout: float | None) -> Event | None:
        if not self.events:
            time.sleep(0 if timeout is None else min(timeout, 0.05))
            return None
        event = self.events.pop(0)
        if isinstance(event, LaunchpadError):
            raise event
        return event

    def resize(self, columns: int, rows: int) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class FakeContact:
    """The way to a script, in place of ssh and pct."""

    target: Target
    script: Script
    error: LaunchpadError
    closed: bool = False

    @property
    def host(self) -> str:
        return str(self.target).partition(":")[0]

    def start(self, _call: RemoteCall) -> Script:
        return self.script

    def explain(self, _done: Completed, *, answered: bool = False) -> LaunchpadError:
        return ShellError("broke off") if answered else self.error

    def close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class World:
    """Lines that can be had one after the other; an error in place of one is raised by connect."""

    lines: list[Script | LaunchpadError]
    contacts: list[FakeContact] = field(default_factory=list)
    error: LaunchpadError = field(default_factory=lambda: ShellError("no answer"))

    def connect(self, target: Target, _options: ConnectOptions) -> FakeContact:
        line = self.lines.pop(0)
        if isinstance(line, LaunchpadError):
            raise line
        self.contacts.append(FakeContact(target, line, self.error))
        return self.contacts[-1]


def said(text: bytes) -> Output:
    return Output(Stream.STDOUT, text)


def call(_contact: Contact) -> RemoteCall:
    return RemoteCall((), b"", b"marker")


@dataclass(slots=True)
class Talk:
    world: World
    conversation: Conversation

    def take(self, count: int) -> list[object]:
        """So many things that were said, each answered at once."""
        taken: list[object] = []
        while len(taken) < count:
            event = self.conversation.next(2.0)
            assert event is not None, taken
            taken.append(event)
            if isinstance(event, Said):
                self.conversation.answered()
        return taken


Make = Callable[..., Talk]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Make]:
    monkeypatch.setattr(conversation, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(conversation, "LONGEST_PAUSE", 0.04)

    talks: list[Talk] = []

    def build(*lines: Script | LaunchpadError, error: LaunchpadError | None = None) -> Talk:
        world = World(list(lines), error=error or ShellError("no answer"))
        monkeypatch.setattr(conversation, "connect", world.connect)
        desk = Desk(ConnectOptions(), lambda _line: None, index_file=tmp_path / "index")
        talks.append(Talk(world, Conversation(desk, parse_target("pve1:101"), call)))
        return talks[-1]

    yield build
    for talk in talks:
        talk.conversation.close()


def texts(events: list[object]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def test_a_lost_line_is_said_once_and_replaced(make: Make) -> None:
    talk = make(
        Script([said(b"one"), LineLost("reset")]),
        HostUnreachable("no route"),
        HostUnreachable("no route"),
        Script([said(b"two"), Exited(None)]),
        Script([said(b"three")]),
    )
    assert talk.conversation.open() == b"marker"
    events = talk.take(7)
    assert [event for event in events if not isinstance(event, Notice)] == [
        Said(b"one"),
        Opened(b"marker"),
        Said(b"two"),
        Opened(b"marker"),
        Said(b"three"),
    ]
    assert [" lost at " in text for text in texts(events)] == [True, True]
    assert all(contact.closed and contact.script.closed for contact in talk.world.contacts[:2])


def test_the_pause_grows_until_a_line_was_good(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    talk = make(
        Script([said(b"one"), LineLost("reset")]),
        *[HostUnreachable("no route")] * 4,
        Script([said(b"two")]),
    )
    talk.conversation.open()
    talk.take(4)
    pauses = [round(pause, 2) for pause in slept if pause > 0.005]
    assert pauses == [0.01, 0.02, 0.04, 0.04, 0.04]


def test_whether_the_line_had_been_lost_is_told_with_the_answer(make: Make) -> None:
    talk = make(Script([said(b"one"), LineLost("reset")]), Script([said(b"two")]))
    talk.conversation.open()
    lost: list[bool] = []
    while len(lost) < 2:
        if isinstance(talk.conversation.next(2.0), Said):
            lost.append(talk.conversation.answered())
    assert lost == [False, True]


def test_the_first_line_must_be_answered(make: Make) -> None:
    talk = make(Script([Output(Stream.STDERR, b"x"), Exited(255)]), error=ContainerStopped("no"))
    talk.conversation.open()
    with pytest.raises(ContainerStopped):
        talk.conversation.next(2.0)


def test_openssh_tells_late_that_the_host_cannot_be_reached(make: Make) -> None:
    talk = make(Script([HostUnreachable("refused")]))
    talk.conversation.open()
    with pytest.raises(HostUnreachable):
        talk.conversation.next(2.0)


def test_silence_is_no_answer(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "ANSWER_DEADLINE", 0.05)
    talk = make(Script([]), error=ContainerStopped("frozen"))
    talk.conversation.open()
    with pytest.raises(ContainerStopped):
        talk.conversation.next(None)


def test_a_refused_login_ends_it(make: Make) -> None:
    talk = make(Script([said(b"one"), LineLost("reset")]), LoginRefused("no key"))
    talk.conversation.open()
    talk.take(2)
    with pytest.raises(LoginRefused):
        talk.conversation.next(2.0)


def test_a_stopped_container_is_waited_for_a_while_only(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "_CONTAINER_PATIENCE", 0.1)
    refused = [Script([Exited(255)]) for _ in range(50)]
    talk = make(
        Script([said(b"one"), LineLost("reset")]), *refused, error=ContainerStopped("stopped")
    )
    talk.conversation.open()
    events = talk.take(2)

    def listen() -> None:
        while True:
            events.append(talk.conversation.next(2.0))

    with pytest.raises(ContainerStopped):
        listen()
    assert len(texts(events)) == 1
    assert 2 < len(talk.world.contacts) < 50


def test_a_time_that_runs_out_is_nothing(make: Make) -> None:
    talk = make(Script([said(b"one")]), Script([]))
    talk.conversation.open()
    talk.take(1)
    began = time.monotonic()
    assert talk.conversation.next(0.1) is None
    assert time.monotonic() - began < 2


def test_heartbeats_are_sent_while_nobody_receives(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "HEARTBEAT", 0.01)
    line = Script([])
    talk = make(line)
    talk.conversation.open()
    wait_until(lambda: len(line.sent) > 2, what="heartbeats")
    assert set(line.sent) == {b"\n"}
    talk.conversation.close()
    wait_until(
        lambda: not any(each.name == "heartbeat" for each in threading.enumerate()),
        what="the heart stands still",
    )
