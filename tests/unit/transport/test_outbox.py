"""The queue in front of stdin: order, backpressure, and who may close what."""

import threading
from collections.abc import Iterator

import pytest

from launchpad.errors import LineLost
from launchpad.transport.base import SEND_LIMIT
from launchpad.transport.outbox import Outbox, SinkGone
from support.sshd import wait_until


class Valve:
    """A sink that takes bytes only while it is open."""

    def __init__(self, *, opened: bool) -> None:
        self._state = threading.Condition()
        self._opened = opened
        self._interrupted = False
        self.broken: Exception | None = None
        self.taken = b""
        self.finished = 0

    def open(self) -> None:
        with self._state:
            self._opened = True
            self._state.notify_all()

    def write_now(self, data: memoryview) -> int:
        if self.broken is not None:
            raise self.broken
        if not self._opened:
            return 0
        self.taken += bytes(data[:1000])
        return min(1000, len(data))

    def write_patiently(self, data: memoryview) -> int:
        with self._state:
            self._state.wait_for(lambda: self._opened or self._interrupted or self.broken)
        if self._interrupted:
            raise SinkGone
        return self.write_now(data)

    def interrupt(self) -> None:
        with self._state:
            self._interrupted = True
            self._state.notify_all()

    def fail(self, error: Exception) -> None:
        with self._state:
            self.broken = error
            self._state.notify_all()

    def finish(self) -> None:
        self.finished += 1


@pytest.fixture
def threads() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    wait_until(lambda: set(threading.enumerate()) <= before, "no thread is left")


pytestmark = pytest.mark.usefixtures("threads")


def test_an_open_sink_needs_no_thread() -> None:
    valve = Valve(opened=True)
    outbox = Outbox(valve)
    before = threading.active_count()
    outbox.put(b"x" * 5000)
    assert valve.taken == b"x" * 5000
    assert threading.active_count() == before
    outbox.end()
    outbox.end()
    outbox.abandon()
    assert valve.finished == 1


def test_a_slow_sink_gets_everything_in_order() -> None:
    valve = Valve(opened=False)
    outbox = Outbox(valve)
    pieces = [bytes([number]) * 1500 for number in range(100)]
    for piece in pieces:
        outbox.put(piece)
    outbox.end()
    assert valve.taken == b""
    assert valve.finished == 0
    valve.open()
    wait_until(lambda: valve.finished == 1, "end of file")
    assert valve.taken == b"".join(pieces)


def test_the_sender_waits_above_the_limit() -> None:
    valve = Valve(opened=False)
    outbox = Outbox(valve)
    outbox.put(b"x" * SEND_LIMIT)
    returned = threading.Event()

    def send() -> None:
        outbox.put(b"y")
        returned.set()

    thread = threading.Thread(target=send)
    thread.start()
    assert not returned.wait(0.1)
    valve.open()
    assert returned.wait(10)
    thread.join()
    outbox.end()
    wait_until(lambda: valve.finished == 1, "end of file")
    assert valve.taken == b"x" * SEND_LIMIT + b"y"


def test_a_waiting_sender_is_set_free_when_all_is_given_up() -> None:
    valve = Valve(opened=False)
    outbox = Outbox(valve)
    thread = threading.Thread(target=outbox.put, args=(b"x" * (SEND_LIMIT + 1),))
    thread.start()
    wait_until(lambda: threading.active_count() > 2, "the sender waits")
    outbox.abandon()
    thread.join(10)
    assert not thread.is_alive()
    outbox.abandon()
    outbox.put(b"dropped")
    outbox.end()
    wait_until(lambda: valve.finished == 1, "the sink is closed once")


def test_bytes_for_nobody_are_dropped() -> None:
    valve = Valve(opened=True)
    outbox = Outbox(valve)
    valve.broken = SinkGone()
    outbox.put(b"x")
    outbox.end()
    assert valve.finished == 1


def test_a_sink_that_breaks_while_it_waits() -> None:
    valve = Valve(opened=False)
    outbox = Outbox(valve)
    outbox.put(b"x")
    valve.fail(LineLost("the line broke"))
    wait_until(lambda: valve.finished == 1, "the sink is closed")
    with pytest.raises(LineLost):
        outbox.put(b"y")
