"""`wait`: until jobs have ended, without asking again and again.

One call for each container tells how each of its jobs ends, when it does (``remote/wait.sh``).
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from launchpad.errors import LAUNCHPAD_FAILED, ClientError, LaunchpadError
from launchpad.frames import Frame, FrameReader
from launchpad.index import Entry, by_container
from launchpad.launcher.asking import Question, job_word, jobs_of
from launchpad.launcher.contact import Contact
from launchpad.launcher.conversation import Conversation, Notice, Opened, Said, clock
from launchpad.launcher.desk import Desk
from launchpad.launcher.ends import known_end, mark_shown, remember
from launchpad.launcher.result import job_exit_code
from launchpad.launcher.side_by_side import SideBySide, Tell
from launchpad.replies import parse_facts
from launchpad.scripts import RemoteCall, remote_call
from launchpad.state import Job, is_ended

_POLL = 0.25


@dataclass(frozen=True, slots=True)
class Ended:
    """One of the jobs has ended, or never will as far as anybody can know."""

    job: Job


@dataclass(frozen=True, slots=True)
class Failed:
    """A container cannot be asked (any more) about these jobs."""

    entries: tuple[Entry, ...]
    error: LaunchpadError


WaitEvent = Ended | Failed | Notice


def wait(
    desk: Desk,
    entries: Sequence[Entry],
    timeout: float | None,
    on_event: Callable[[WaitEvent], None],
) -> int | None:
    """Wait until all jobs have ended; the exit code: the first failure in their order, else 0.

    None once ``timeout`` seconds (None: no limit) have passed before. ``on_event`` is called in
    this thread, as it happens. Jobs are left alone whatever comes.
    """
    ends = None if timeout is None else time.monotonic() + timeout
    codes: dict[str, int] = {}

    def tell(event: WaitEvent) -> None:
        on_event(event)
        match event:
            case Ended(job):
                codes[job.id.text] = job_exit_code(job) if is_ended(job.state) else LAUNCHPAD_FAILED
                with suppress(ClientError):
                    mark_shown(desk.index, [job])
            case Failed(failed, error):
                codes.update((entry.id.text, error.exit_code) for entry in failed)
            case Notice():
                pass

    open_entries = []
    for entry in entries:
        job = known_end(entry)
        if job is None:
            open_entries.append(entry)
        else:
            tell(Ended(job))
    several: SideBySide[WaitEvent] = SideBySide()
    try:
        for group in by_container(open_entries):
            _begin(desk, group, several, tell)
        while len(codes) < len(entries):
            event = several.take(None if ends is None else max(0.0, ends - time.monotonic()))
            if event is None:
                return None
            tell(event)
    finally:
        several.end()
    return next((codes[entry.id.text] for entry in entries if codes[entry.id.text]), 0)


def _begin(
    desk: Desk,
    group: tuple[Entry, ...],
    several: SideBySide[WaitEvent],
    tell: Callable[[WaitEvent], None],
) -> None:
    """Connect in this thread (there may be a passphrase to ask for), and listen in another."""
    try:
        watch = _Watch(desk, group)
    except LaunchpadError as error:
        tell(Failed(group, error))
        return

    def fault(error: Exception) -> WaitEvent:
        what = f"a fault in launchpad itself: {type(error).__name__}: {error}"
        return Failed(group, ClientError(what))

    several.start(lambda put: watch.listen(put, several), fault)


class _Watch:
    """The conversation with one container about some of its jobs."""

    def __init__(self, desk: Desk, group: tuple[Entry, ...]) -> None:
        self._desk = desk
        self._left = {entry.id: entry for entry in group}
        self._target = group[0].place
        self._contact: Contact
        self._frames: list[Frame] = []
        self._conversation = Conversation(desk, self._target, self._call)
        self._reader = FrameReader(self._conversation.open())

    def listen(self, put: Tell[WaitEvent], several: SideBySide[WaitEvent]) -> None:
        """Tell what happens until the last of the jobs has ended."""
        with self._conversation as conversation:
            try:
                while self._left and not several.is_over:
                    match conversation.next(_POLL):
                        case Notice() as notice:
                            put(notice)
                        case Opened(marker):
                            self._reader = FrameReader(marker)
                            self._frames = []
                        case Said(data):
                            self._feed(data, put)
                        case None:
                            pass
            except LaunchpadError as error:
                put(Failed(tuple(self._left.values()), error))

    def _call(self, contact: Contact) -> RemoteCall:
        self._contact = contact
        entries = list(self._left.values())
        words = [job_word(entry.id, entry.identity) for entry in entries]
        return remote_call(
            contact.prefix,
            ("common", "members", "facts", "follow", "wait"),
            [entries[0].state_directory, *words],
        )

    def _feed(self, data: bytes, put: Tell[WaitEvent]) -> None:
        for frame in self._reader.feed(data):
            if frame.name != "done":
                self._frames.append(frame)
                continue
            frames, self._frames = self._frames, []
            if any(each.name == "waiting" for each in frames):
                if self._conversation.answered():
                    put(Notice(f"launchpad: back at {clock()}, still waiting"))
                continue
            facts = parse_facts(frames)
            # Members of other jobs occur in the facts, too.
            names = {each.words[0] for each in frames if each.name == "job" and each.words}
            told = tuple(entry for name, entry in self._left.items() if name.text in names)
            question = Question(self._target, told)
            for job in jobs_of(self._desk, self._contact, question, facts):
                del self._left[job.id]
                with suppress(ClientError):
                    remember(self._desk, [job])
                put(Ended(job))
