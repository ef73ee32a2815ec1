"""A command that runs as a child process of ours: its three streams as a channel.

The ssh program and commands on this machine are both reached this way.
"""

import contextlib
import errno
import fcntl
import os
import select
import subprocess
import threading
import time
from collections import deque

from launchpad.errors import LaunchpadError
from launchpad.transport.base import Event, Exited, Output, Stream
from launchpad.transport.outbox import Outbox, SinkGone
from launchpad.transport.spawn import Wiring, set_size

# One read (bytes), and the size that pipes are given where the kernel allows it.
_CHUNK = 256 * 1024
_PIPE_SIZE = 1024 * 1024

# After a program that holds nothing back has ended, its pipes are emptied, not waited for: a
# ProxyCommand or a connection master may keep them open (seconds).
_AFTERLIFE = 0.2


class PipeSink:
    """The writing end of a pipe or a pty, as an outbox fills it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._awake, self._alarm = os.pipe()
        os.set_blocking(descriptor, False)

    def write_now(self, data: memoryview) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise SinkGone from error

    def write_patiently(self, data: memoryview) -> int:
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLOUT)
        waiting.register(self._awake, select.POLLIN)
        while True:
            ready = dict(waiting.poll())
            if self._awake in ready:
                raise SinkGone
            count = self.write_now(data)
            if count:
                return count

    def interrupt(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._alarm, b"!")

    def finish(self) -> None:
        for descriptor in (self._descriptor, self._awake, self._alarm):
            os.close(descriptor)


class PipeChannel:
    """See :class:`launchpad.transport.base.Channel`.

    ``lingers``: the channel lasts as long as anybody holds the streams open, as with ssh; else it
    ends with the process itself.
    """

    def __init__(self, wiring: Wiring, *, lingers: bool) -> None:
        self.process = wiring.process
        self.terminal = wiring.terminal
        self._lingers = lingers
        self._outbox = Outbox(PipeSink(wiring.stdin))
        self._open = {wiring.stdout: Stream.STDOUT}
        if wiring.stderr is not None:
            self._open[wiring.stderr] = Stream.STDERR
        self._poll = select.poll()
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
            _enlarge(descriptor)
            self._poll.register(descriptor, select.POLLIN)
        self._pidfd = _watch(wiring.process.pid)
        if self._pidfd is not None:
            self._poll.register(self._pidfd, select.POLLIN)
        self._arrived: deque[Output] = deque()
        self._end: Exited | None = None
        self._failure: LaunchpadError | None = None
        self._ends_at: float | None = None
        self.closed = False

    def send(self, data: bytes) -> None:
        self._outbox.put(data)

    def close_stdin(self) -> None:
        # A pty has no end of file of its own, only the character that its program may heed.
        if self.terminal is None:
            self._outbox.end()

    def receive(self, timeout: float | None) -> Event | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._arrived:
                return self._arrived.popleft()
            if self._failure is not None:
                raise self._failure
            if self._end is not None:
                return self._end
            if self.closed:
                return Exited(None)
            if not self._open or self._is_over():
                code = self._wait(deadline)
                if code is None:
                    return None
                try:
                    self._end = self.ended(code)
                except LaunchpadError as failure:
                    self._failure = failure
                self.close()
                continue
            got_any = self._collect(deadline)
            if not got_any and deadline is not None and time.monotonic() >= deadline:
                return None

    def ended(self, code: int) -> Exited:
        """What the end of the process means; may raise. ``code`` as from ``subprocess``."""
        return Exited(code if code >= 0 else 128 - code)

    def resize(self, columns: int, rows: int) -> None:
        if self.terminal is not None and not self.closed:
            with contextlib.suppress(OSError):
                set_size(self.terminal, columns, rows)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._outbox.abandon()
        for descriptor in (*self._open, self._pidfd, self.terminal):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._open.clear()
        self.forsake()
        reap(self.process)

    def forsake(self) -> None:
        """What becomes of a process whose streams were given up: it finds them closed."""

    def _is_over(self) -> bool:
        return self._ends_at is not None and time.monotonic() >= self._ends_at

    def _collect(self, deadline: float | None) -> bool:
        """Wait for bytes and take one piece of each stream that has some."""
        limits = [limit for limit in (deadline, self._ends_at) if limit is not None]
        patience = None if not limits else max(0.0, min(limits) - time.monotonic()) * 1000
        got_any = False
        try:
            for descriptor, _events in self._poll.poll(patience):
                if descriptor == self._pidfd:
                    self._poll.unregister(descriptor)
                    if not self._lingers:
                        self._ends_at = time.monotonic() + _AFTERLIFE
                    continue
                got_any = True
                self._take(descriptor)
        except (KeyError, OSError, ValueError):
            # Whoever closes the transport may do so from another thread.
            if not self.closed:
                raise
        return got_any

    def _take(self, descriptor: int) -> None:
        """Take one piece of a stream, or its end."""
        data = _read(descriptor)
        if data is None:
            return
        if data:
            self._arrived.append(Output(self._open[descriptor], data))
        else:
            self._poll.unregister(descriptor)
            del self._open[descriptor]
            os.close(descriptor)

    def _wait(self, deadline: float | None) -> int | None:
        timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None


def reap(process: subprocess.Popen[bytes]) -> None:
    """Leave no zombie behind, without waiting here."""
    if process.poll() is None:
        threading.Thread(target=process.wait, name="launchpad-reaper", daemon=True).start()


def _read(descriptor: int) -> bytes | None:
    """What is there; empty at the end; None where it was a false alarm."""
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno == errno.EIO:  # a pty whose other side is closed
            return b""
        raise


def _watch(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _enlarge(descriptor: int) -> None:
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
