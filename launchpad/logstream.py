"""The stream that ``remote/follow.sh`` sends: raw bytes of a log, and events at their exact place.

Pure. Whatever the pieces are in which the stream arrives, the same comes out of it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from launchpad.command import to_text
from launchpad.frames import Frame, FrameReader, too_large

# How many bytes before an offset prove that a file is the one that was read so far; see follow.sh.
PROOF_SIZE = 16

# An event is a few words (bytes).
_EVENT_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class LogBytes:
    """What the log goes on with; never empty."""

    data: bytes


@dataclass(frozen=True, slots=True)
class LogEmptied:
    """The file lost what had been read (``at`` bytes); what follows is from its beginning."""

    at: int


@dataclass(frozen=True, slots=True)
class LogMoved:
    """The log's name does not lead to the followed file any more; the follow goes on."""

    how: Literal["deleted", "renamed", "replaced"]
    at: int


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The last byte has come. ``facts``: the frames behind it; none where it was no follow."""

    facts: tuple[Frame, ...]


Piece = LogBytes | LogEmptied | LogMoved | StreamEnd


@dataclass(slots=True)
class LogStream:
    """Takes the stream apart. ``offset`` and :attr:`proof` tell where in the log it has come to.

    Memory: what was fed last, and at the end the frames of one job.
    """

    marker: bytes
    offset: int
    _last: bytes = b""
    _pending: bytes = b""
    _tail: FrameReader | None = None
    _facts: list[Frame] = field(default_factory=list)

    @property
    def proof(self) -> str:
        """The bytes before :attr:`offset` in hex, as far as they are known; for a resume."""
        return self._last.hex()

    @property
    def is_ending(self) -> bool:
        """Whether the last byte of the log has come; what became of the job follows."""
        return self._tail is not None

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Take in ``data``; yields what is now certain.

        Raises :class:`~launchpad.errors.ShellError` for more than the far side can have to say.
        """
        separator = b"\x1e" + self.marker + b" "
        buffer = self._pending + data if self._pending else data
        self._pending = b""
        if self._tail is None and b"\x1e" not in buffer:
            # Most logs, most of the time, at the speed of memory.
            yield from self._bytes(buffer)
            return
        while self._tail is None:
            start = buffer.find(separator)
            if start < 0:
                # Only the last 036 can begin a separator that is not complete yet.
                held = buffer.rfind(b"\x1e", max(0, len(buffer) - len(separator)))
                if held >= 0 and separator.startswith(buffer[held:]):
                    buffer, self._pending = buffer[:held], buffer[held:]
                yield from self._bytes(buffer)
                return
            yield from self._bytes(buffer[:start])
            line, newline, rest = buffer[start + len(separator) :].partition(b"\n")
            if len(line) > _EVENT_LIMIT:
                raise too_large()
            if not newline:
                self._pending = buffer[start:]
                return
            buffer = rest
            yield from self._event(to_text(line))
        for frame in self._tail.feed(buffer):
            if frame.name == "done":
                yield StreamEnd(tuple(self._facts))
                return
            self._facts.append(frame)

    def _bytes(self, data: bytes) -> Iterator[Piece]:
        if data:
            self.offset += len(data)
            self._last = (self._last + data[-PROOF_SIZE:])[-PROOF_SIZE:]
            yield LogBytes(data)

    def _event(self, line: str) -> Iterator[Piece]:
        if line == "end":
            self._tail = FrameReader(self.marker)
        elif match := re.fullmatch(r"emptied ([0-9]{1,18})", line):
            self.offset, self._last = 0, b""
            yield LogEmptied(int(match[1]))
        elif match := re.fullmatch(r"moved (deleted|renamed|replaced) ([0-9]{1,18})", line):
            how: Literal["deleted", "renamed", "replaced"]
            how = match[1]  # type: ignore[assignment]
            yield LogMoved(how, int(match[2]))
