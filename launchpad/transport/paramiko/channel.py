"""One command over a paramiko connection."""

import contextlib
import threading
import time
from typing import NamedTuple

import paramiko

from launchpad.errors import LaunchpadError
from launchpad.transport import faults
from launchpad.transport.base import SILENCE_LIMIT, Event, Exited, Output, Stream
from launchpad.transport.outbox import Outbox, SinkGone
from launchpad.transport.paramiko.line import Line

# What one event carries at most (bytes).
_CHUNK = 1024 * 1024

# A connection that ends takes its channels with it a moment before it says so itself (seconds).
_SETTLING = 0.2


class Pulse(NamedTuple):
    """After how much silence the host is asked for a sign of life, and given up (seconds)."""

    interval: float = 15.0
    limit: float = SILENCE_LIMIT


class Connection:
    """A logged-in connection: what its channels share."""

    def __init__(self, client: paramiko.Transport, line: Line, address: str, pulse: Pulse) -> None:
        self.client = client
        self.line = line
        self.address = address
        # Why the server ended the connection, where it said so.
        self.goodbye = ""
        self._pulse = pulse
        self._asked = 0.0

    def lost(self, why: str) -> LaunchpadError:
        """The error for a connection that ended in mid-call."""
        return faults.line_lost(self.address, self.goodbye or why)

    def next_check(self) -> float:
        """Seconds until the line must be looked at again; asks for a sign of life when due.

        Raises :class:`~launchpad.errors.LineLost`.
        """
        now = time.monotonic()
        silent = now - self.line.heard
        interval, limit = self._pulse.interval, self._pulse.limit
        if silent >= limit:
            self.close()
            raise self.lost(f"nothing was heard for {silent:.0f} s")
        if silent >= interval and now - self._asked >= interval:
            self._asked = now
            self._ask_for_life()
        due = max(self.line.heard, self._asked) + interval
        return max(0.0, min(due, self.line.heard + limit) - now)

    def answers(self, patience: float) -> bool:
        """Whether the host gives a sign of life within ``patience`` seconds.

        No clock is asked when it last did: most stand still while a machine sleeps.
        """
        heard, ends = self.line.heard, time.monotonic() + patience
        if not self.client.is_active():
            return False
        try:
            self._ask_for_life()
        except (paramiko.SSHException, EOFError, OSError):
            return False
        pause = 0.0005
        while self.line.heard == heard:
            if not self.client.is_active() or time.monotonic() >= ends:
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return self.client.is_active()

    def _ask_for_life(self) -> None:
        """A request that every server answers, with a refusal (RFC 4254 §4); ssh sends the same."""
        message = paramiko.Message()
        message.add_byte(b"\x50")  # SSH_MSG_GLOBAL_REQUEST
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)  # noqa: FBT003
        send(self.client, message)

    def close(self) -> None:
        """End it; never raises."""
        # The socket first: nothing that is still to be sent can hold us up then.
        self.line.close()
        with contextlib.suppress(Exception):
            self.client.close()


def send(client: paramiko.Transport, message: paramiko.Message) -> None:
    """Send a message between key exchanges.

    paramiko has no public way to send a request without waiting for its answer, and its own
    ``exec_command`` waits without a limit.
    """
    client._send_user_message(message)  # type: ignore[attr-defined]  # noqa: SLF001


class _Arrivals(threading.Event):
    """Set by paramiko whenever bytes or an end arrive; only the reader clears it."""

    def clear(self) -> None:
        """Paramiko clears it when one of two buffers is empty; the other may not be."""

    def expect(self) -> None:
        super().clear()


class _ChannelSink:
    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def write_now(self, data: memoryview) -> int:
        return self._write(data) if self._channel.send_ready() else 0

    def write_patiently(self, data: memoryview) -> int:
        return self._write(data)

    def _write(self, data: memoryview) -> int:
        try:
            count = self._channel.send(bytes(data[:_PACKET]))
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise SinkGone from error
        if not count:
            raise SinkGone
        return count

    def interrupt(self) -> None:
        self._channel.close()

    def finish(self) -> None:
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.shutdown_write()


# paramiko sends at most one packet per call (bytes).
_PACKET = 32 * 1024


class ParamikoChannel:
    """See :class:`launchpad.transport.base.Channel`."""

    def __init__(self, channel: paramiko.Channel, connection: Connection, *, on_pty: bool) -> None:
        self._channel = channel
        self._connection = connection
        self._on_pty = on_pty
        self._outbox = Outbox(_ChannelSink(channel))
        self._arrivals = _Arrivals()
        channel.in_buffer.set_event(self._arrivals)
        channel.in_stderr_buffer.set_event(self._arrivals)
        self._stderr_first = False
        self._end: Exited | None = None

    def send(self, data: bytes) -> None:
        if not self._connection.client.is_active():
            raise self._connection.lost("it broke")
        self._outbox.put(data)

    def close_stdin(self) -> None:
        if not self._on_pty:
            self._outbox.end()

    def receive(self, timeout: float | None) -> Event | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._arrivals.expect()
            event = self._take()
            if event is not None:
                return event
            patience = self._connection.next_check()
            if deadline is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                patience = min(patience, left)
            self._arrivals.wait(patience)

    def resize(self, columns: int, rows: int) -> None:
        if self._on_pty:
            with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
                self._channel.resize_pty(columns, rows)

    def close(self) -> None:
        if self._end is None:
            self._end = Exited(None)
        self._outbox.abandon()
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.close()

    def _take(self) -> Event | None:
        """What has arrived: the two streams in turn, the end last."""
        if self._end is not None:
            return self._end
        # Asked before the buffers: what arrived before the end is then seen below.
        over = self._channel.closed
        for stderr in (self._stderr_first, not self._stderr_first):
            if stderr and self._channel.recv_stderr_ready():
                self._stderr_first = False
                return Output(Stream.STDERR, self._channel.recv_stderr(_CHUNK))
            if not stderr and self._channel.recv_ready():
                self._stderr_first = True
                return Output(Stream.STDOUT, self._channel.recv(_CHUNK))
        if not over:
            return None
        self._finish()
        return self._end

    def _finish(self) -> None:
        """Tell the end of the command from the end of the line."""
        status = self._channel.exit_status
        if not (self._channel.eof_received and status >= 0):
            self._connection.client.join(_SETTLING)
            if not self._connection.client.is_active():
                raise self._connection.lost("it broke")
            if status < 0 and not self._channel.event_ready:
                raise faults.no_channel(
                    self._connection.address, "it runs no commands for this user"
                )
        self._end = Exited(status if status >= 0 else None)
        self.close()
