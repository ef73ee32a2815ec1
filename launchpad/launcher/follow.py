"""Following a job's log: each byte exactly once, however often the line breaks.

The far side is ``remote/follow.sh``.
"""

import re
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, assert_never

from launchpad.errors import ClientError, JobUnknown
from launchpad.frames import Frame, FrameReader
from launchpad.index import Entry
from launchpad.launcher.asking import Question, job_word, jobs_of
from launchpad.launcher.contact import Contact
from launchpad.launcher.conversation import Conversation, Notice, Opened, Said, clock
from launchpad.launcher.desk import Desk
from launchpad.launcher.ends import remember
from launchpad.logstream import LogBytes, LogEmptied, LogMoved, LogStream, Piece, StreamEnd
from launchpad.replies import parse_facts
from launchpad.scripts import RemoteCall, remote_call
from launchpad.state import Job
from launchpad.transport.base import Channel

RAW = frozenset({"log"})


@dataclass(frozen=True, slots=True)
class Start:
    """Where a log is shown from: the last ``number`` lines, a line's number, a byte's offset."""

    where: Literal["last", "line", "byte"]
    number: int


WHOLE = Start("byte", 0)


@dataclass(frozen=True, slots=True)
class JobEnded:
    """The log's last byte has come and the job has ended; ``job`` tells how."""

    job: Job


@dataclass(frozen=True, slots=True)
class LogEnded:
    """The last byte of what was asked for has come; the job was not asked about."""


@dataclass(frozen=True, slots=True)
class OpenLine:
    """A channel whose script has come to ``follow`` in follow.sh, as after a launch.

    ``reader`` has raw frames ``log`` (:data:`RAW`), and may have read some of the reply already.
    """

    contact: Contact
    channel: Channel
    reader: FrameReader


FollowEvent = LogBytes | Notice | JobEnded | LogEnded


class Follow:
    """A job's log as events; use it with ``with``.

    Raises :class:`LaunchpadError` where it cannot be had, or can no longer be had for good. A line
    that was lost is not such a case: it is told by a :class:`Notice` and mended.
    """

    def __init__(
        self,
        desk: Desk,
        entry: Entry,
        start: Start = WHOLE,
        *,
        follow: bool = True,
        line: OpenLine | None = None,
    ) -> None:
        """Begin at ``start``, on a new connection or on ``line``, which is ours from now on.

        ``follow`` False: what stands there now, and no more. Raises :class:`LaunchpadError`.
        """
        self._desk = desk
        self._entry = entry
        self._start = start
        self._proof = ""
        self._follow = follow
        self._stream: LogStream | None = None
        self._queue: deque[FollowEvent] = deque()
        self._ended = False
        self._moved: str | None = None
        self._question = Question(entry.place, (entry,))
        self._conversation = Conversation(desk, self._question.target, self._call)
        self._contact: Contact
        if line is None:
            self._reader = FrameReader(self._conversation.open(), RAW)
            return
        self._contact = line.contact
        self._reader = line.reader
        self._conversation.use(line.contact, line.channel)
        try:
            self._feed(b"")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the job alone and give up the line; never raises, may be called twice."""
        self._conversation.close()

    def next_event(self, timeout: float | None) -> FollowEvent | None:
        """The next event; None once ``timeout`` seconds (None: no limit) passed without one.

        An attempt to connect is not cut short by ``timeout``. After :class:`JobEnded` or
        :class:`LogEnded` nothing more comes.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        while not self._queue and not self._ended:
            left = None if ends is None else max(0.0, ends - time.monotonic())
            match self._conversation.next(left):
                case None:
                    return None
                case Notice() as notice:
                    return notice
                case Opened(marker):
                    self._stream = None
                    self._reader = FrameReader(marker, RAW)
                case Said(data):
                    self._feed(data)
        return self._queue.popleft() if self._queue else None

    @property
    def is_ending(self) -> bool:
        """Whether the job was seen to be gone: :class:`JobEnded` is on its way."""
        return self._stream is not None and self._stream.is_ending

    def _call(self, contact: Contact) -> RemoteCall:
        if self._stream is not None:
            self._start = Start("byte", self._stream.offset)
            self._proof = self._stream.proof
        self._contact = contact
        return remote_call(
            contact.prefix,
            ("common", "members", "facts", "follow", "tail"),
            [
                job_word(self._entry.id, self._entry.identity),
                self._entry.state_directory,
                "yes" if self._follow else "no",
                self._start.where,
                str(self._start.number),
                self._proof,
            ],
        )

    def _feed(self, data: bytes) -> None:
        if self._stream is None:
            for frame in self._reader.feed(data):
                self._stream = self._header(frame) or self._stream
            data = self._reader.take_rest() if self._stream else b""
        if self._stream is not None:
            for piece in self._stream.feed(data):
                self._queue.extend(self._event(piece))

    def _header(self, frame: Frame) -> LogStream | None:
        entry = self._entry
        if frame.name == "unknown":
            raise JobUnknown(
                f"job {entry.id} is not in {entry.target}",
                advice="was it pruned, or the container restored from a backup?"
                f" launchpad status {entry.target}",
            )
        if frame.name != "log":
            return None
        offset = int(frame.words[0]) if re.fullmatch(r"[0-9]{1,18}", "".join(frame.words)) else 0
        if self._conversation.answered():
            text = f"launchpad: back at {clock()}, resuming at byte {offset:,}; nothing skipped"
            self._queue.append(Notice(text))
        return LogStream(self._reader.marker, offset)

    def _event(self, piece: Piece) -> Iterator[FollowEvent]:
        log = f"launchpad: the log of {self._entry.id}"
        match piece:
            case LogBytes():
                yield piece
            case LogEmptied(at):
                yield Notice(
                    f"{log} was emptied when it had {at:,} bytes (a job's own `>/dev/stderr`, or"
                    " `tee` without -a, does that); what follows is from its beginning"
                )
            case LogMoved(how, _):
                if how != self._moved:
                    self._moved = how
                    yield Notice(f"{log} was {how}; what the job goes on writing is followed")
            case StreamEnd(facts):
                self._ended = True
                self.close()
                yield JobEnded(self._judge(facts)) if self._follow else LogEnded()
            case _:
                assert_never(piece)

    def _judge(self, frames: tuple[Frame, ...]) -> Job:
        (job,) = jobs_of(self._desk, self._contact, self._question, parse_facts(frames))
        # The index is a convenience: what is wrong with it does not end a follow.
        with suppress(ClientError):
            remember(self._desk, [job])
        return job
