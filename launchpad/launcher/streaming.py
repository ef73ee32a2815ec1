"""A call with a stream of bytes in its middle: frames, then bytes either way, then frames."""

import time

from launchpad.errors import ContainerSilent, LaunchpadError
from launchpad.frames import Frame, FrameReader, parse_frames
from launchpad.launcher.contact import Contact
from launchpad.proxmox import ANSWER_DEADLINE
from launchpad.transport.base import Channel, Completed, Exited, Output, Stream

# More than any last word has (bytes).
_KEPT = 65536


class Streaming:
    """``turn`` is the name of the frame behind which the stream begins."""

    def __init__(self, contact: Contact, channel: Channel, marker: bytes, turn: str) -> None:
        self.channel = channel
        self._contact = contact
        self._marker = marker
        self._turn = turn
        self._reader = FrameReader(marker, raw=frozenset({turn}))
        self._stdout, self._stderr, self._tail = bytearray(), bytearray(), bytearray()
        self._recent = b""

    def first(self) -> Frame:
        """The frame ``turn``, or the one that refuses. Raises what failed."""
        ends = time.monotonic() + ANSWER_DEADLINE
        while True:
            data = self._next(max(0.0, ends - time.monotonic()))
            # Noise is no answer, however much there is of it.
            if data is None or (time.monotonic() >= ends and not self._reader.has_begun):
                raise self._explain(None, silent=True)
            began = self._reader.has_begun
            self._stdout += data[: max(0, _KEPT - len(self._stdout))]
            for frame in self._reader.feed(data):
                if frame.name in {self._turn, "refused"}:
                    self._tail += self._reader.take_rest()
                    return frame
            if self._reader.has_begun and not began:
                # It looks for its user, and measures what is to be sent.
                ends = time.monotonic() + ANSWER_DEADLINE

    def receive(self, timeout: float) -> bytes | None:
        """Bytes of the stream; None once ``timeout`` seconds passed without. Raises what failed."""
        if self._tail:
            data: bytes | None = bytes(self._tail)
            self._tail.clear()
        else:
            data = self._next(timeout)
        self._recent = (self._recent + (data or b""))[-_KEPT:]
        return data

    def early_word(self, timeout: float) -> Frame | None:
        """The last word, should the stream have broken off with it; None where it has not."""
        at = self._recent.find(b"\n" + self._marker)
        return None if at < 0 else self.last(timeout, self._recent[at:])

    def listen(self, timeout: float) -> bool:
        """Whether the far side has said its last word by now. Waits for it; raises what failed."""
        if not self._has_last_word():
            data = self._next(timeout) or b""
            self._tail += data[: max(0, _KEPT - len(self._tail))]
        return self._has_last_word()

    def last(self, timeout: float, data: bytes = b"") -> Frame:
        """The last word: the frame in front of `done`. ``data``: what is here of it already."""
        self._tail[:0] = data[-_KEPT:]
        ends = time.monotonic() + timeout
        while not self.listen(max(0.0, ends - time.monotonic())):
            if time.monotonic() >= ends:
                raise self.stalled()
        return parse_frames(self._marker, bytes(self._tail))[-2]

    def stalled(self) -> LaunchpadError:
        """The error for a stream that stands still."""
        return ContainerSilent(
            f"nothing moves any more between here and {self._contact.target}",
            advice="is the container frozen, or its disk not answering? Try again later",
        )

    def _has_last_word(self) -> bool:
        frames = parse_frames(self._marker, bytes(self._tail))
        return len(frames) > 1 and frames[-1].name == "done"

    def _next(self, timeout: float) -> bytes | None:
        """The next bytes of stdout, if any come in time. Raises what failed at the call's end."""
        ends = time.monotonic() + timeout
        while True:
            match self.channel.receive(max(0.0, ends - time.monotonic())):
                case Output(Stream.STDOUT, data):
                    return data
                case Output(_, data):
                    self._stderr += data[: max(0, _KEPT - len(self._stderr))]
                case Exited(code):
                    raise self._explain(code)
                case None:
                    return None

    def _explain(self, code: int | None, *, silent: bool = False) -> LaunchpadError:
        done = Completed(bytes(self._stdout), bytes(self._stderr), code, silent=silent)
        return self._contact.explain(done, answered=self._reader.has_begun)
