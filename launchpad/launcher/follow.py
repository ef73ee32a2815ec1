"""Following a job's log: each byte exactly once, however often the line breaks.

The far side is ``remote/follow.sh``. It ends itself 15 s after the last heartbeat, so a thread
sends one every 5 s for as long as a follow is open, also while nobody takes the events.
"""

import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

from launchpad.errors import (
    ContainerSilent,
    ContainerUnknown,
    HostKeyChanged,
    HostKeyUnknown,
    JobUnknown,
    LaunchpadError,
    LineLost,
    LoginRefused,
    NotAContainer,
    PctMissing,
    ShellError,
    SshError,
    SudoRefused,
    UsageError,
)
from launchpad.frames import Frame, FrameReader
from launchpad.index import Entry
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.logstream import LogBytes, LogEmptied, LogMoved, LogStream, Piece, StreamEnd
from launchpad.proxmox import ANSWER_DEADLINE
from launchpad.replies import parse_facts, parse_spec
from launchpad.scripts import remote_call
from launchpad.state import Job
from launchpad.transport.base import Channel, Completed, Exited, Output, Stream
from launchpad.verdict import Place, job_of

HEARTBEAT = 5.0

# Pauses between attempts to connect again (seconds): each twice the one before.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0

# How long a line must have been good before the next loss begins with the first pause again.
_GOOD_LINE = 60.0

# How long a container may refuse to be entered before that is the answer: it may be rebooting.
_CONTAINER_PATIENCE = 60.0

_STDERR_LIMIT = 65536

# No second attempt changes these.
_FINAL = (
    LoginRefused,
    HostKeyUnknown,
    HostKeyChanged,
    SudoRefused,
    PctMissing,
    ContainerUnknown,
    NotAContainer,
    JobUnknown,
    UsageError,
)


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
class Notice:
    """Something to tell the user, once. ``text`` is one line, and is safe to show."""

    text: str


FollowEvent = LogBytes | Notice | JobEnded | LogEnded


class _Heart:
    """Sends heartbeats on a channel until it is stopped."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        # A line that is gone is noticed, and reported, by whoever receives on it.
        with suppress(LaunchpadError):
            while not self._stopped.wait(HEARTBEAT):
                self._channel.send(b"\n")

    def stop(self) -> None:
        """No more heartbeats; does not wait for one that is being sent."""
        self._stopped.set()


@dataclass(slots=True)
class _Line:
    """One channel of a follow, from its header to its end."""

    contact: Contact
    channel: Channel
    reader: FrameReader
    heart: _Heart
    answer_by: float
    stream: LogStream | None = None
    stderr: bytearray = field(default_factory=bytearray)

    def close(self) -> None:
        self.heart.stop()
        self.channel.close()
        self.contact.close()

    def explain(self, code: int | None, *, silent: bool = False) -> LaunchpadError:
        done = Completed(b"", bytes(self.stderr), code, silent=silent)
        return self.contact.explain(done, answered=self.stream is not None)


class Follow:
    """A job's log as events; use it with ``with``.

    Raises :class:`LaunchpadError` where it cannot be had, or can no longer be had for good. A line
    that was lost is not such a case: it is told by a :class:`Notice` and mended.
    """

    def __init__(
        self,
        desk: Desk,
        entry: Entry,
        contact: Contact,
        channel: Channel,
        reader: FrameReader,
        *,
        follow: bool = True,
    ) -> None:
        """Go on with a channel whose script is ``follow.sh``; ``contact`` is ours from now on.

        ``reader`` has raw frames ``log`` and may have read some of the reply already.
        """
        self._desk = desk
        self._entry = entry
        self._target = desk.target(entry.target)
        self._follow = follow
        self._queue: deque[FollowEvent] = deque()
        self._ended = False
        self._moved: str | None = None
        self._lost_since: float | None = None
        self._pause = FIRST_PAUSE
        self._next_attempt = 0.0
        self._refused_since: float | None = None
        self._connected_at = time.monotonic()
        self._start = WHOLE
        self._proof = ""
        self._line: _Line | None = self._use(contact, channel, reader)
        try:
            self._take(self._line, b"")
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(cls, desk: Desk, entry: Entry, start: Start = WHOLE, *, follow: bool = True) -> Self:
        """Connect and begin at ``start``. ``follow`` False: what stands there now, and no more."""
        contact = connect(desk.target(entry.target), desk.options_for(desk.target(entry.target)))
        try:
            channel, reader = _call(contact, entry, start, "", follow=follow)
        except BaseException:
            contact.close()
            raise
        made = cls(desk, entry, contact, channel, reader, follow=follow)
        made._start = start
        return made

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
        if self._line is not None:
            self._line.close()
            self._line = None

    def next_event(self, timeout: float | None) -> FollowEvent | None:
        """The next event; None once ``timeout`` seconds (None: no limit) passed without one.

        An attempt to connect is not cut short by ``timeout``. After :class:`JobEnded` or
        :class:`LogEnded` nothing more comes.
        """
        ends = None if timeout is None else time.monotonic() + timeout
        while not self._queue:
            if self._ended:
                return None
            if self._line is None:
                if not self._reconnect(ends):
                    return None
                continue
            try:
                if not self._receive(self._line, ends):
                    return None
            except LineLost as error:
                self._lose(error)
        return self._queue.popleft()

    def _use(self, contact: Contact, channel: Channel, reader: FrameReader) -> _Line:
        answer_by = time.monotonic() + ANSWER_DEADLINE
        return _Line(contact, channel, reader, _Heart(channel), answer_by)

    def _receive(self, line: _Line, ends: float | None) -> bool:
        """Take one event of the channel; False where ``ends`` came first."""
        limits = [] if ends is None else [ends]
        if line.stream is None:
            limits.append(line.answer_by)
        timeout = max(0.0, min(limits) - time.monotonic()) if limits else None
        event = line.channel.receive(timeout)
        match event:
            case Output(Stream.STDOUT, data):
                self._take(line, data)
            case Output(_, data):
                line.stderr += data[: max(0, _STDERR_LIMIT - len(line.stderr))]
            case Exited(code):
                self._broke_off(line, code)
            case None:
                if line.stream is None and time.monotonic() >= line.answer_by:
                    self._broke_off(line, None, silent=True)
                return False
        return True

    def _broke_off(self, line: _Line, code: int | None, *, silent: bool = False) -> None:
        """The channel has ended, or never answered, without the stream's end."""
        error = line.explain(code, silent=silent)
        if line.stream is None and self._lost_since is None:
            raise error
        self._lose(error)

    def _take(self, line: _Line, data: bytes) -> None:
        if line.stream is None:
            for frame in line.reader.feed(data):
                line.stream = self._header(line, frame) or line.stream
            data = line.reader.take_rest() if line.stream else b""
        if line.stream is not None:
            for piece in line.stream.feed(data):
                self._piece(piece)

    def _header(self, line: _Line, frame: Frame) -> LogStream | None:
        if frame.name == "unknown":
            raise JobUnknown(
                f"job {self._entry.id} is not in {self._entry.target}",
                advice="was it pruned, or the container restored from a backup? launchpad status"
                f" {self._entry.target}",
            )
        if frame.name != "log":
            return None
        offset = int(frame.words[0]) if frame.words and frame.words[0].isdecimal() else 0
        if self._lost_since is not None:
            at = time.strftime("%H:%M:%S")
            self._queue.append(
                Notice(f"launchpad: back at {at}, resuming at byte {offset:,}; nothing skipped")
            )
        self._lost_since = self._refused_since = None
        self._connected_at = time.monotonic()
        return LogStream(line.reader.marker, offset)

    def _piece(self, piece: Piece) -> None:
        match piece:
            case LogBytes():
                self._queue.append(piece)
            case LogEmptied(at):
                self._queue.append(
                    Notice(
                        f"launchpad: the log of {self._entry.id} was emptied after byte {at:,}"
                        " (`>/dev/stderr` and `tee` without -a do that): what follows is from its"
                        " beginning"
                    )
                )
            case LogMoved(how, _):
                if how != self._moved:
                    self._moved = how
                    self._queue.append(
                        Notice(
                            f"launchpad: the log of {self._entry.id} was {how}; the job goes on"
                            " writing to the old file, which is followed"
                        )
                    )
            case StreamEnd(facts):
                self._ended = True
                if self._follow:
                    self._queue.append(JobEnded(self._judge(facts)))
                else:
                    self._queue.append(LogEnded())
                self.close()

    def _judge(self, frames: tuple[Frame, ...]) -> Job:
        entry = self._entry
        facts = parse_facts(frames)
        if facts.now is None:
            raise ShellError(f"the shell in {entry.target} broke off its reply")
        place = Place(entry.target, entry.host, entry.node, entry.ctid, entry.state_directory)
        return job_of(
            facts.of(entry.id),
            facts.now,
            place,
            spec=parse_spec(entry.record),
            log=entry.log,
            identity=entry.identity,
        )

    def _lose(self, error: LaunchpadError) -> None:
        """Give up the line, and plan to come back."""
        line, now = self._line, time.monotonic()
        if line is not None:
            if line.stream is not None:
                self._start = Start("byte", line.stream.offset)
                self._proof = line.stream.proof
            self.close()
        if self._lost_since is None:
            if now - self._connected_at > _GOOD_LINE:
                self._pause = FIRST_PAUSE
            self._lost_since = now
            self._queue.append(Notice(self._farewell()))
        self._judge_failure(error, now)
        self._next_attempt = now + self._pause
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def _farewell(self) -> str:
        where = self._entry.host or self._entry.target
        asks = self._desk.options_for(self._target).interactive
        return (
            f"launchpad: line to {where} lost at {time.strftime('%H:%M:%S')}, trying again"
            " (Ctrl-C stops the follow, not the job"
            + ("; ssh may ask for a passphrase or a key's touch again)" if asks else ")")
        )

    def _judge_failure(self, error: LaunchpadError, now: float) -> None:
        """Raise ``error`` where trying again is of no use (any more)."""
        if isinstance(error, _FINAL):
            raise error
        if isinstance(error, SshError | ContainerSilent):
            self._refused_since = None
            return
        if self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since > _CONTAINER_PATIENCE:
            raise error

    def _reconnect(self, ends: float | None) -> bool:
        """Wait for the next attempt and make it; False where ``ends`` comes first."""
        now = time.monotonic()
        if ends is not None and ends < self._next_attempt:
            time.sleep(max(0.0, ends - now))
            return False
        time.sleep(max(0.0, self._next_attempt - now))
        try:
            contact = connect(self._target, self._desk.options_for(self._target))
            try:
                channel, reader = _call(
                    contact, self._entry, self._start, self._proof, follow=self._follow
                )
            except BaseException:
                contact.close()
                raise
        except LaunchpadError as error:
            self._lose(error)
        else:
            self._line = self._use(contact, channel, reader)
        return True


def _call(
    contact: Contact, entry: Entry, start: Start, proof: str, *, follow: bool
) -> tuple[Channel, FrameReader]:
    call = remote_call(
        contact.prefix,
        ("common", "members", "facts", "follow", "tail"),
        [
            entry.id.text,
            entry.state_directory,
            "yes" if follow else "no",
            start.where,
            str(start.number),
            proof,
        ],
    )
    return contact.start(call), FrameReader(call.marker, raw=frozenset({"log"}))
