"""Where a command's own bytes begin and end in the streams of `exec`: the other side of exec.sh.

Pure. Everything before the beginning is the host's noise; everything between is passed on at once
and exactly, but for what may be the first part of the mark of the end.
"""

import re
from dataclasses import dataclass, field

# Of the noise before the beginning no more is kept than this (bytes).
_NOISE_LIMIT = 65536


@dataclass(frozen=True, slots=True)
class Begun:
    """The command runs: its PID and start ticks in the container.

    ``returns``: how many carriage returns stand before a newline by now.
    """

    pid: int
    ticks: int
    returns: int = 0


@dataclass(slots=True)
class Beginning:
    """Finds the frame ``begin``, also where terminals have made its newlines longer.

    ``noise``: what came before it, or until now.
    """

    marker: bytes
    begun: Begun | None = None
    noise: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> bytes:
        """Take in ``data``; what of it is the command's own."""
        if self.begun is not None:
            return data
        self.noise += data
        frame = re.search(
            rb"\n%s begin (\d{1,18}) (\d{1,18})(\r*)\n" % re.escape(self.marker), self.noise
        )
        if frame is None:
            del self.noise[: max(0, len(self.noise) - _NOISE_LIMIT)]
            return b""
        self.begun = Begun(int(frame[1]), int(frame[2]), len(frame[3]))
        own = bytes(self.noise[frame.end() :])
        del self.noise[frame.start() :]
        return own


@dataclass(slots=True)
class Ending:
    """Finds the mark of the end, and leaves out those that only say that the line lives.

    ``code``: the command's exit code, once it is there.
    """

    marker: bytes
    code: int | None = None
    _held: bytes = b""

    def feed(self, data: bytes) -> bytes:
        """Take in ``data``; what of all that came can be passed on. Nothing follows the end."""
        if self.code is not None:
            return b""
        data = self._held + data
        own = []
        start = 0
        for mark in re.finditer(
            rb"\x1e%s (?:beat|exit (\d{1,3}))\x1e" % re.escape(self.marker), data
        ):
            own.append(data[start : mark.start()])
            start = mark.end()
            if mark[1] is not None:
                self.code = int(mark[1])
                self._held = b""
                return b"".join(own)
        cut = self._beginning_of_mark(data, start)
        self._held = data[cut:]
        return b"".join((*own, data[start:cut]))

    def rest(self) -> bytes:
        """What was held back, at the end of a stream without a mark."""
        rest, self._held = self._held, b""
        return rest

    def _beginning_of_mark(self, data: bytes, start: int) -> int:
        """Where a mark may begin that has not come to its end yet; the end of ``data`` if none."""
        longest = len(self.marker) + len("\x1e exit 255")
        at = data.rfind(b"\x1e", max(start, len(data) - longest))
        if at < 0:
            return len(data)
        tail = data[at:]
        head = b"\x1e" + self.marker
        is_mark = (
            (head + b" exit ").startswith(tail)
            or (head + b" beat").startswith(tail)
            or re.fullmatch(rb"%s exit \d{1,3}" % re.escape(head), tail)
        )
        return at if is_mark else len(data)


@dataclass(slots=True)
class OneTerminal:
    """Takes back what the terminals around a command's own have done to its newlines.

    lxc-attach puts the terminal of ssh between ours and the command's, and has it write a carriage
    return before each newline, as the command's own terminal does. A program that has switched that
    off at its own end, as those do that paint the screen, would be painted wrong.

    ``returns``: see :class:`Begun`; the command's own terminal is one of them.
    """

    returns: int
    _held: bytes = b""

    def feed(self, data: bytes) -> bytes:
        """Take in ``data``; what the command's own terminal has made of it."""
        extra = self.returns - 1
        if extra < 1:
            return data
        data = self._held + data
        end = len(data.rstrip(b"\r"))
        # Whether a newline follows is not known yet.
        cut = max(end, len(data) - extra)
        self._held = data[cut:]
        return data[:cut].replace(b"\r" * extra + b"\n", b"\n")

    def rest(self) -> bytes:
        """What was held back: nothing followed at once, so no newline does."""
        rest, self._held = self._held, b""
        return rest
