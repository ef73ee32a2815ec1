"""Frames: how a script's reply stands out from whatever else is printed around it.

A frame is a line ``MARKER NAME ARG…`` behind a newline of its own, then a payload of any bytes
up to the next frame. The marker is random for each call, so no profile, banner or job output
can be mistaken for one. Every whole reply ends with the frame ``done``.

Whoever rules a container knows the marker, too, and can send without end: a reply has limits.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from launchpad.command import to_text
from launchpad.errors import ShellError

# What one reply may be, from its first frame to `done`: bytes, frames, bytes of a frame's own line.
# The facts about 4000 jobs with their specs and last lines fit.
REPLY_LIMIT = 16 * 1024 * 1024
FRAME_LIMIT = 25_000
_LINE_LIMIT = 4096
# No frame has more words than this; what a hostile one has more stays one word.
_WORD_LIMIT = 40


@dataclass(frozen=True, slots=True)
class Frame:
    """One section of a reply: its name, the words behind it, and the bytes under it."""

    name: str
    words: tuple[str, ...]
    payload: bytes


def too_large() -> ShellError:
    """The error for a reply that no script of launchpad sends."""
    return ShellError(
        "the shell in the container said more than any reply can be",
        advice="look at what answers in its place: its bash, sh, tail and stat",
    )


def _frame(line: bytes, payload: bytes = b"") -> Frame:
    if len(line) > _LINE_LIMIT:
        raise too_large()
    name, *words = to_text(line).split(" ", _WORD_LIMIT)
    return Frame(name, tuple(words), payload)


def parse_frames(marker: bytes, data: bytes) -> list[Frame]:
    """All frames of a reply that has ended; what stands before the first one is ignored.

    A last frame without its line's end was cut off and is left out. Raises :class:`ShellError` for
    more than a reply can be.
    """
    separator = b"\n" + marker + b" "
    if data.count(separator) > FRAME_LIMIT:
        raise too_large()
    frames = []
    for part in data.split(separator)[1:]:
        line, newline, payload = part.partition(b"\n")
        if newline:
            frames.append(_frame(line, payload))
    return frames


def is_whole(frames: list[Frame]) -> bool:
    """Whether the reply reached its end."""
    return bool(frames) and frames[-1].name == "done"


class FrameReader:
    """Frames from a stream that comes in pieces; each is given out once the next one begins.

    After a frame named in ``raw`` (its payload has no end but the stream's), :meth:`feed` gives no
    more frames, and :meth:`take_rest` the bytes behind it. ``has_begun``: a frame was seen.
    Noise before the first frame is dropped, so memory stays bounded by the largest reply.
    """

    def __init__(self, marker: bytes, raw: frozenset[str] = frozenset()) -> None:
        self.marker = marker
        self._separator = b"\n" + marker + b" "
        self._raw = raw
        self._buffer = bytearray()
        self._begun = False
        # Of the reply that is being read; and how far its last frame was searched in vain.
        self._size = self._frames = self._searched = 0
        self.is_raw = False
        self.has_begun = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take in ``data``; yields the frames that are now whole (a ``done`` at once).

        Raises :class:`ShellError` once a reply is more than one can be.
        """
        self._buffer += data
        self._size += len(data)
        while not self.is_raw:
            if not self._begun:
                start = self._buffer.find(self._separator)
                if start < 0:
                    # Keep what might be the beginning of a separator.
                    del self._buffer[: -len(self._separator)]
                    return
                self._begin(start)
                self._size, self._frames = len(self._buffer), 0
            if self._size > REPLY_LIMIT or self._frames > FRAME_LIMIT:
                raise too_large()
            line_end = self._buffer.find(b"\n")
            if line_end < 0:
                return
            frame = _frame(bytes(self._buffer[:line_end]))
            if frame.name == "done" or frame.name in self._raw:
                del self._buffer[: line_end + 1]
                self._begun = False
                self.is_raw = frame.name in self._raw
                yield frame
                continue
            # The payload's last newline may be the first byte of the next separator.
            end = self._buffer.find(self._separator, max(line_end + 1, self._searched))
            if end < 0:
                self._searched = max(0, len(self._buffer) - len(self._separator))
                return
            payload = bytes(self._buffer[line_end + 1 : end])
            self._begin(end)
            self._frames += 1
            yield Frame(frame.name, frame.words, payload)

    def _begin(self, separator: int) -> None:
        """Drop what stands before a frame's own line; ``separator``: where the one before it is."""
        del self._buffer[: separator + len(self._separator)]
        self._searched = 0
        self._begun = self.has_begun = True

    def take_rest(self) -> bytes:
        """The raw bytes that have come since the last call (after a raw frame only)."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        return rest
