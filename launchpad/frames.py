"""Frames: how a script's reply stands out from whatever else is printed around it.

A frame is a line ``MARKER NAME ARG…`` behind a newline of its own, then a payload of any bytes
up to the next frame. The marker is random for each call, so no profile, banner or job output
can be mistaken for one. Every whole reply ends with the frame ``done``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from launchpad.command import to_text


@dataclass(frozen=True, slots=True)
class Frame:
    """One section of a reply: its name, the words behind it, and the bytes under it."""

    name: str
    words: tuple[str, ...]
    payload: bytes


def _header(line: bytes) -> tuple[str, tuple[str, ...]]:
    name, *words = to_text(line).split(" ")
    return name, tuple(words)


def parse_frames(marker: bytes, data: bytes) -> list[Frame]:
    """All frames of a reply that has ended; what stands before the first one is ignored.

    A last frame without its line's end was cut off and is left out.
    """
    frames = []
    for part in data.split(b"\n" + marker + b" ")[1:]:
        line, newline, payload = part.partition(b"\n")
        if newline:
            frames.append(Frame(*_header(line), payload))
    return frames


def is_whole(frames: list[Frame]) -> bool:
    """Whether the reply reached its end."""
    return bool(frames) and frames[-1].name == "done"


class FrameReader:
    """Frames from a stream that comes in pieces; each is given out once the next one begins.

    After a frame named in ``raw`` (its payload has no end but the stream's), :meth:`feed` gives no
    more frames, and :meth:`take_rest` the bytes behind it. ``has_begun``: a frame was seen.
    Noise before the first frame is dropped, so memory stays bounded by the largest frame.
    """

    def __init__(self, marker: bytes, raw: frozenset[str] = frozenset()) -> None:
        self.marker = marker
        self._separator = b"\n" + marker + b" "
        self._raw = raw
        self._buffer = b""
        self._begun = False
        self.is_raw = False
        self.has_begun = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take in ``data``; yields the frames that are now whole (a ``done`` at once)."""
        self._buffer += data
        while not self.is_raw:
            if not self._begun:
                start = self._buffer.find(self._separator)
                if start < 0:
                    # Keep what might be the beginning of a separator.
                    self._buffer = self._buffer[-len(self._separator) :]
                    return
                self._buffer = self._buffer[start + len(self._separator) :]
                self._begun = self.has_begun = True
            line, newline, payload = self._buffer.partition(b"\n")
            if not newline:
                return
            name, words = _header(line)
            if name in self._raw:
                self._buffer = payload
                self.is_raw = True
                yield Frame(name, words, b"")
                return
            if name == "done":
                self._buffer = payload
                self._begun = False
                yield Frame(name, words, b"")
                continue
            # The payload's last newline may be the first byte of the next separator.
            end = self._buffer.find(self._separator, len(line) + 1)
            if end < 0:
                return
            payload = self._buffer[len(line) + 1 : end]
            self._buffer = self._buffer[end + len(self._separator) :]
            yield Frame(name, words, payload)

    def take_rest(self) -> bytes:
        """The raw bytes that have come since the last call (after a raw frame only)."""
        rest, self._buffer = self._buffer, b""
        return rest
