"""The terminal and the streams of this process, for the verbs that lend them to a command.

Everything that is changed here is put back, whatever happens.
"""

import contextlib
import math
import os
import queue
import select
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import Any, Self

from launchpad.errors import ClientError, LaunchpadError

STDIN, STDOUT, STDERR = 0, 1, 2

# One read of stdin (bytes).
_CHUNK = 64 * 1024

# Who presses Ctrl-C twice in this time wants to be rid of it (seconds).
IMPATIENCE = 3.0

# What people and programs send to end or wake something that runs in the foreground.
_PASSED_ON = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)


def is_terminal(descriptor: int) -> bool:
    """Whether that is a terminal; a closed descriptor is none."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def window_size(descriptor: int = STDIN) -> tuple[int, int]:
    """Columns and rows of a terminal; those of a VT100 where it does not tell."""
    try:
        columns, rows = os.get_terminal_size(descriptor)
    except OSError:
        columns = rows = 0
    return columns or 80, rows or 24


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``, however long that takes.

    Raises :class:`BrokenPipeError`, or :class:`ClientError` for any other failure.
    """
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            # Somebody who shares the terminal or pipe has set O_NONBLOCK on it.
            select.select((), (descriptor,), ())
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ClientError("cannot write the output", details=error.strerror or "") from error


class StdinPump:
    """Passes this process's stdin on, in a thread; reads nothing once it was stopped.

    ``send`` and ``close`` are those of a channel.
    """

    def __init__(self, send: Callable[[bytes], None], close: Callable[[], None]) -> None:
        self._send = send
        self._close = close
        self._awake, self._alarm = os.pipe()
        self._thread = threading.Thread(target=self._run, name="stdin", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more; does not wait for what is being sent."""
        with contextlib.suppress(OSError):
            os.write(self._alarm, b"!")

    def _run(self) -> None:
        # A line that is gone is noticed, and reported, by whoever receives on it.
        with contextlib.suppress(LaunchpadError):
            while True:
                data = self._read()
                if data is None:
                    return
                if not data:
                    self._close()
                    return
                self._send(data)

    def _read(self) -> bytes | None:
        """Some bytes; none at the end of stdin; None once we were stopped."""
        waiting = select.poll()
        waiting.register(STDIN, select.POLLIN)
        waiting.register(self._awake, select.POLLIN)
        while True:
            ready = dict(waiting.poll())
            if self._awake in ready:
                return None
            try:
                return os.read(STDIN, _CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                # Closed, or a terminal that has gone.
                return b""


@contextlib.contextmanager
def raw_terminal(descriptor: int = STDIN) -> Iterator[None]:
    """Every key goes through as it is typed, Ctrl-C included; afterwards all is as before."""
    try:
        before = termios.tcgetattr(descriptor)
    except termios.error as error:
        raise ClientError("stdin is not a terminal", details=str(error)) from error
    try:
        tty.setraw(descriptor, termios.TCSADRAIN)
        yield
    finally:
        # A terminal that was hung up has no settings any more.
        with contextlib.suppress(termios.error), _ignored(signal.SIGTTOU):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _ignored(number: int) -> Iterator[None]:
    # Who sets a terminal from the background is stopped otherwise.
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


class GaveUp(BaseException):
    """A signal that is to end this process now. Not an Exception: nothing must swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What a shell reports for that signal."""
        return 128 + self.number


@dataclass(slots=True)
class Signals:
    """Signals that this process gets, while something runs for it elsewhere. Use it with ``with``.

    ``deliver`` is called with a signal's number, in a thread of its own. :class:`GaveUp` is raised
    by a second one within :data:`IMPATIENCE`, and by any while there is nobody to deliver it to.
    ``resized`` is set when the terminal has another size.
    """

    deliver: Callable[[int], None] | None = None
    resized: bool = False
    _queue: "queue.SimpleQueue[int | None]" = field(default_factory=queue.SimpleQueue)
    _last: float = -math.inf
    _before: dict[int, Any] = field(default_factory=dict)

    def __enter__(self) -> Self:
        threading.Thread(target=self._courier, name="signals", daemon=True).start()
        for number in _PASSED_ON:
            # What was ignored when we were started stays so (nohup, a script's background job).
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._take)
        self._before[signal.SIGWINCH] = signal.signal(signal.SIGWINCH, self._note_size)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._queue.put(None)

    def _take(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.deliver is None or now - self._last < IMPATIENCE:
            raise GaveUp(number)
        self._last = now
        self._queue.put(number)

    def _note_size(self, _number: int, _frame: FrameType | None) -> None:
        self.resized = True

    def _courier(self) -> None:
        while (number := self._queue.get()) is not None:
            if self.deliver is not None:
                self.deliver(number)


def flush_standard_streams() -> None:
    """What Python holds back goes out before we write past it."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
