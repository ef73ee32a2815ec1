"""`tail`: the logs of jobs, now or as they grow.

One job is followed in the calling thread. Several are followed side by side, a thread each, and
their lines are told one by one in the calling thread, so that nobody else ever prints.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, assert_never

from launchpad.errors import LAUNCHPAD_FAILED, ClientError, LaunchpadError
from launchpad.index import Entry
from launchpad.launcher.conversation import Notice
from launchpad.launcher.desk import Desk
from launchpad.launcher.follow import Follow, FollowEvent, JobEnded, LogEnded, Start
from launchpad.launcher.result import job_exit_code
from launchpad.launcher.side_by_side import SideBySide, Tell
from launchpad.logstream import LogBytes
from launchpad.state import Job, is_ended

# After this much silence an unfinished line is shown (seconds).
SHORT_WAIT = 0.1

# Of a line without an end, among several jobs, no more than this is held back (bytes).
_LINE_LIMIT = 65536

_POLL = 0.25


class LogView(Protocol):
    """Whoever shows logs."""

    def write(self, entry: Entry, data: bytes) -> None:
        """The log of that job goes on with ``data``."""

    def idle(self) -> None:
        """Nothing has come for a moment: show what is unfinished."""

    def notice(self, text: str) -> None:
        """A line about the follow itself; safe to show."""

    def ended(self, entry: Entry, job: Job) -> None:
        """The job has ended, and its log was shown to the last byte."""

    def failed(self, entry: Entry, error: LaunchpadError) -> None:
        """One of several jobs cannot be followed (any more)."""


def show_log(desk: Desk, entry: Entry, start: Start, view: LogView) -> None:
    """Show what a job's log holds now, from ``start`` on. Raises :class:`LaunchpadError`."""
    with Follow(desk, entry, start, follow=False) as follow:
        _drive(follow, entry, view)


def follow_log(desk: Desk, entry: Entry, start: Start, view: LogView) -> int:
    """Show a job's log until the job has ended; its exit code. Raises :class:`LaunchpadError`."""
    with Follow(desk, entry, start) as follow:
        job = _drive(follow, entry, view)
    return exit_code(desk, entry, job)


def exit_code(desk: Desk, entry: Entry, job: Job | None) -> int:
    """The exit code of a job whose end the user has been shown; 125 where that was no end."""
    if job is None or not is_ended(job.state):
        return LAUNCHPAD_FAILED
    desk.index.mark_shown([entry.id])
    return job_exit_code(job)


def _drive(follow: Follow, entry: Entry, view: LogView) -> Job | None:
    unfinished = False
    while True:
        event = follow.next_event(SHORT_WAIT if unfinished else None)
        match event:
            case None:
                view.idle()
                unfinished = False
            case LogBytes(data):
                view.write(entry, data)
                unfinished = True
            case Notice(text):
                view.notice(text)
            case JobEnded(job):
                view.ended(entry, job)
                return job
            case LogEnded():
                return None


@dataclass(slots=True)
class LineCutter:
    """Whole lines of one job, for a screen that several share. Pure.

    Of a line that grows beyond all measure the pieces come early; nothing is ever held for long.
    """

    _held: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> bytes:
        """What can be shown now: whole lines."""
        cut = data.rfind(b"\n") + 1
        if not cut:
            self._held += data
            return self.rest() if len(self._held) > _LINE_LIMIT else b""
        lines = bytes(self._held) + data[:cut]
        self._held = bytearray(data[cut:])
        return lines

    def rest(self) -> bytes:
        """What is held back, now."""
        rest, self._held = bytes(self._held), bytearray()
        return rest

    def last(self) -> bytes:
        """What is held back at the end, as a line: others' lines follow it."""
        rest = self.rest()
        return rest + b"\n" if rest else b""


@dataclass(frozen=True, slots=True)
class _Told:
    """An event of one of several follows, on its way to the calling thread."""

    number: int
    event: FollowEvent | LaunchpadError


def follow_logs(desk: Desk, entries: Sequence[Entry], start: Start, view: LogView) -> int:
    """Show the logs of several jobs, whole lines interleaved, until all of them have ended.

    The exit code is the first failure in the order of ``entries``, else 0.
    """
    several = _Several(desk, entries, view)
    try:
        several.begin(start)
        while several.running:
            several.take()
    finally:
        several.end()
    return next((code for code in several.codes if code), 0)


class _Several:
    """Several follows, a thread each."""

    def __init__(self, desk: Desk, entries: Sequence[Entry], view: LogView) -> None:
        self._desk = desk
        self._entries = entries
        self._view = view
        self.codes = [LAUNCHPAD_FAILED] * len(entries)
        self.running: dict[int, LineCutter] = {}
        self._threads: SideBySide[_Told] = SideBySide()

    def begin(self, start: Start) -> None:
        """Open them one after the other: each may have to ask for a passphrase."""
        for number, entry in enumerate(self._entries):
            try:
                follow = Follow(self._desk, entry, start)
            except LaunchpadError as error:
                self._fail(number, error)
                continue
            self.running[number] = LineCutter()
            self._threads.start(partial(self._listen, number, follow), partial(_fault, number))

    def take(self) -> None:
        """Wait for one event of any of them, and show it."""
        told = self._threads.take()
        if told is None:
            return
        entry, cutter = self._entries[told.number], self.running[told.number]
        match told.event:
            case LogBytes(data):
                self._write(entry, cutter.feed(data))
            case Notice(text):
                self._view.notice(text)
            case JobEnded(job):
                self._write(entry, cutter.last())
                self._view.ended(entry, job)
                self.codes[told.number] = exit_code(self._desk, entry, job)
                del self.running[told.number]
            case LaunchpadError():
                self._write(entry, cutter.last())
                self._fail(told.number, told.event)
                del self.running[told.number]
            case LogEnded():
                pass
            case _:
                assert_never(told.event)

    def end(self) -> None:
        """Let the follows give up their lines."""
        self._threads.end()

    def _write(self, entry: Entry, lines: bytes) -> None:
        if lines:
            self._view.write(entry, lines)

    def _fail(self, number: int, error: LaunchpadError) -> None:
        self.codes[number] = error.exit_code
        self._view.failed(self._entries[number], error)

    def _listen(self, number: int, follow: Follow, tell: Tell[_Told]) -> None:
        """The thread of one follow."""
        with follow:
            try:
                while not self._threads.is_over:
                    event = follow.next_event(_POLL)
                    if event is not None:
                        tell(_Told(number, event))
                        if isinstance(event, JobEnded):
                            return
            except LaunchpadError as error:
                tell(_Told(number, error))


def _fault(number: int, error: Exception) -> _Told:
    what = f"a fault in launchpad itself: {type(error).__name__}: {error}"
    return _Told(number, ClientError(what))
