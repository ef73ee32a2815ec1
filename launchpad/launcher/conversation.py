"""A call that stays open for hours, over a line that may break at any time.

The far side ends itself 15 s after the last heartbeat (see ``guard`` in ``remote/follow.sh``), so a
thread sends one every 5 s for as long as the conversation is open, also while nobody receives.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from launchpad.errors import (
    ContainerSilent,
    ContainerUnknown,
    HostKeyChanged,
    HostKeyUnknown,
    LaunchpadError,
    LoginRefused,
    NotAContainer,
    PctMissing,
    SshError,
    SudoRefused,
)
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.proxmox import ANSWER_DEADLINE
from launchpad.scripts import RemoteCall
from launchpad.target import Target
from launchpad.transport.base import Channel, Completed, Exited, Output, Stream

HEARTBEAT = 5.0

# Pauses between attempts to connect again (seconds): each twice the one before.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0

# How long a line must have been good before the next loss begins with the first pause again.
_GOOD_LINE = 2.0

# How long a container may refuse to be entered before that is the answer: it may be rebooting.
_CONTAINER_PATIENCE = 60.0

_STDERR_LIMIT = 65536

# No second attempt changes these.
_FINAL = (
    LoginRefused,
    HostKeyUnknown,
    HostKeyChanged,
    SudoRefused,
    PctMissing,
    ContainerUnknown,
    NotAContainer,
)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell the user, once. ``text`` is one line, and is safe to show."""

    text: str


@dataclass(frozen=True, slots=True)
class Opened:
    """A new channel: what was said on the one before has no end. ``marker``: of its frames."""

    marker: bytes


@dataclass(frozen=True, slots=True)
class Said:
    """Bytes of the far side's stdout."""

    data: bytes


class _Heart:
    """Sends heartbeats on a channel until it is stopped."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        # A line that is gone is noticed, and reported, by whoever receives on it.
        with suppress(LaunchpadError):
            while not self._stopped.wait(HEARTBEAT):
                self._channel.send(b"\n")

    def stop(self) -> None:
        """No more heartbeats; does not wait for one that is being sent."""
        self._stopped.set()


@dataclass(slots=True)
class _Line:
    """One channel of the conversation."""

    contact: Contact
    channel: Channel
    heart: _Heart
    answer_by: float
    answered: bool = False
    stderr: bytearray = field(default_factory=bytearray)

    def close(self) -> None:
        self.heart.stop()
        self.channel.close()
        self.contact.close()

    def explain(self, code: int | None, *, silent: bool = False) -> LaunchpadError:
        done = Completed(b"", bytes(self.stderr), code, silent=silent)
        return self.contact.explain(done, answered=self.answered)


class Conversation:
    """What the far side says, whichever line it comes over. Use it with ``with``.

    ``call`` builds the call for a new line: its script goes on where the one before came to. The
    user of it must say :meth:`answered` when the far side has shown that it is at work: until then
    a failure of the first line is an error, and silence has a deadline.
    """

    def __init__(self, desk: Desk, target: Target, call: Callable[[Contact], RemoteCall]) -> None:
        self._desk = desk
        self._target = target
        self._call = call
        self._line: _Line | None = None
        self._news: Notice | Opened | None = None
        self._lost_at: float | None = None
        self._connected_at = 0.0
        self._pause = FIRST_PAUSE
        self._next_attempt = 0.0
        self._refused_since: float | None = None
        self._host = str(target)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> bytes:
        """The first line; the marker of its frames. Raises :class:`LaunchpadError`."""
        contact = connect(self._target, self._desk.options_for(self._target))
        try:
            call = self._call(contact)
            self.use(contact, contact.start(call))
        except BaseException:
            contact.close()
            raise
        return call.marker

    def use(self, contact: Contact, channel: Channel) -> None:
        """Go on with this line, which is ours from now on."""
        self._host = contact.host or str(self._target)
        answer_by = time.monotonic() + ANSWER_DEADLINE
        self._line = _Line(contact, channel, _Heart(channel), answer_by)

    def close(self) -> None:
        """Give up the line; never raises, may be called twice."""
        if self._line is not None:
            self._line.close()
            self._line = None

    def answered(self) -> bool:
        """The far side is at work; whether the line had been lost before that."""
        if self._line is not None:
            self._line.answered = True
        was_lost = self._lost_at is not None
        self._lost_at = self._refused_since = None
        self._connected_at = time.monotonic()
        return was_lost

    def next(self, timeout: float | None) -> Said | Opened | Notice | None:
        """What comes next; None once ``timeout`` seconds (None: no limit) passed without anything.

        An attempt to connect is not cut short. Raises :class:`LaunchpadError` where the first line
        failed before the far side had answered, or where it is of no use to try again.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._news is not None:
                news, self._news = self._news, None
                return news
            if self._line is None:
                if not self._reconnect(ends):
                    return None
                continue
            event = self._receive(self._line, ends)
            if event is not None:
                return event
            if ends is not None and time.monotonic() >= ends:
                return None

    def _receive(self, line: _Line, ends: float | None) -> Said | None:
        """Take one event of the channel, if one comes before ``ends``."""
        limits = [limit for limit in (ends, None if line.answered else line.answer_by) if limit]
        try:
            event = line.channel.receive(
                max(0.0, min(limits) - time.monotonic()) if limits else None
            )
        except LaunchpadError as error:
            # Over OpenSSH a host that cannot be reached shows here, too.
            self._fail(line, error)
            return None
        late = not line.answered and time.monotonic() >= line.answer_by
        match event:
            case Exited(code):
                self._fail(line, line.explain(code))
            case _ if late:
                # Noise is no answer, however much there is of it.
                self._fail(line, line.explain(None, silent=True))
            case Output(Stream.STDOUT, data):
                return Said(data)
            case Output(_, data):
                line.stderr += data[: max(0, _STDERR_LIMIT - len(line.stderr))]
            case None:
                pass
        return None

    def _fail(self, line: _Line, error: LaunchpadError) -> None:
        """The channel ended, or never answered, before the conversation had come to its end."""
        if not line.answered and self._lost_at is None:
            raise error
        self._lose(error)

    def _lose(self, error: LaunchpadError) -> None:
        """Give up the line, and plan to come back. Raises ``error`` where that is of no use."""
        self.close()
        now = time.monotonic()
        if self._lost_at is None:
            if now - self._connected_at > _GOOD_LINE:
                self._pause = FIRST_PAUSE
            self._lost_at = now
            self._news = Notice(self._farewell())
        self._judge(error, now)
        self._next_attempt = now + self._pause
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def _farewell(self) -> str:
        asks = self._desk.options_for(self._target).interactive
        return (
            f"launchpad: line to {self._host} lost at {clock()}, trying again"
            " (Ctrl-C stops the follow, not the job"
            + ("; ssh may ask for a passphrase or a key's touch again)" if asks else ")")
        )

    def _judge(self, error: LaunchpadError, now: float) -> None:
        """Raise ``error`` where trying again is of no use (any more)."""
        if isinstance(error, _FINAL):
            raise error
        if isinstance(error, SshError | ContainerSilent):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since > _CONTAINER_PATIENCE:
            raise error

    def _reconnect(self, ends: float | None) -> bool:
        """Wait for the next attempt and make it; False where ``ends`` comes first."""
        now = time.monotonic()
        if ends is not None and ends < self._next_attempt:
            time.sleep(max(0.0, ends - now))
            return False
        time.sleep(max(0.0, self._next_attempt - now))
        try:
            self._news = Opened(self.open())
        except LaunchpadError as error:
            self._lose(error)
        return True


def clock() -> str:
    """The time of day for messages about the line."""
    return time.strftime("%H:%M:%S")
