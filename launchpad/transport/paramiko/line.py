"""The stream of bytes under an ssh connection, as paramiko takes it in place of a socket.

It adds what paramiko does not have: it remembers when the far side was last heard, reads in
large pieces (paramiko asks for 16 bytes, then for the rest), and never waits for ever.
"""

import contextlib
import errno
import socket
import time
from collections.abc import Callable
from typing import Protocol

from launchpad.transport.base import SILENCE_LIMIT

# One read from the kernel (bytes); several packets at once when the line is busy.
_READ_SIZE = 256 * 1024

# The first so many reads belong to key exchange, login and the start of the command.
_SMALL_READS = 40

# Linux only.
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)

# How long one wait lasts (seconds). paramiko looks after its own affairs in between.
_WAIT = 1.0


class Stream(Protocol):
    """A socket, or a paramiko channel through a jump host."""

    def recv(self, nbytes: int, /) -> bytes:
        """At most ``nbytes``; empty at the end; TimeoutError."""

    def send(self, data: bytes, /) -> int:
        """How many bytes were taken; TimeoutError."""

    def settimeout(self, timeout: float | None, /) -> None:
        """Seconds for each call."""

    def close(self) -> None:
        """Give it up."""


class Line:
    """A stream whose server has already said its version line.

    ``greeting``: the bytes read so far, from the server's version line on. ``sent``: our own
    version line, which is already on its way; paramiko's first write, the same line, is dropped.
    ``on_close``: called once, to end what carries the stream.
    """

    def __init__(
        self,
        stream: Stream,
        greeting: bytes,
        sent: bytes,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._stream = stream
        self._pending = greeting
        self._position = 0
        self._sent = sent
        self._on_close = on_close
        self._stalled_since: float | None = None
        self.heard = time.monotonic()
        self._hurry = _SMALL_READS
        self.closed = False
        stream.settimeout(_WAIT)

    @property
    def _closed(self) -> bool:
        # paramiko asks sockets by this name.
        return self.closed

    def settimeout(self, _timeout: float | None) -> None:
        """Ignored: paramiko would wake up ten times a second."""

    def recv(self, nbytes: int) -> bytes:
        """At most ``nbytes``; empty at the end. Raises ``TimeoutError`` now and then."""
        if self._position >= len(self._pending):
            self._pending = self._stream.recv(_READ_SIZE)
            self._position = 0
            if self._hurry:
                self._hurry -= 1
                self._acknowledge()
            self.heard = time.monotonic()
        start = self._position
        self._position = start + nbytes
        return self._pending[start : self._position]

    def _acknowledge(self) -> None:
        """Send the TCP acknowledgement at once.

        sshd writes several small packets after the login with Nagle's algorithm on: the second one
        waits for our acknowledgement of the first, which the kernel would hold back for 40 ms.
        """
        if _QUICKACK is not None and isinstance(self._stream, socket.socket):
            with contextlib.suppress(OSError):
                self._stream.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    def send(self, data: bytes) -> int:
        """How many bytes were taken.

        Raises ``OSError`` once the far side has taken nothing for :data:`SILENCE_LIMIT` seconds.
        """
        if self._sent:
            expected, self._sent = self._sent, b""
            if data == expected:
                return len(data)
        try:
            count = self._stream.send(data)
        except TimeoutError:
            now = time.monotonic()
            if self._stalled_since is None:
                self._stalled_since = now
            elif now - self._stalled_since > SILENCE_LIMIT:
                raise OSError(errno.ETIMEDOUT, "the far side takes no more bytes") from None
            raise
        self._stalled_since = None
        return count

    def close(self) -> None:
        """End the stream and wake up whoever waits on it."""
        if self.closed:
            return
        self.closed = True
        with contextlib.suppress(OSError):
            if isinstance(self._stream, socket.socket):
                self._stream.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError, EOFError):
            self._stream.close()
        self._on_close()
