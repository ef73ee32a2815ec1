"""A job, as an object."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from launchpad.api.snapshot import Status
from launchpad.errors import LAUNCHPAD_FAILED, JobSurvived, JobUnknown, LaunchpadError
from launchpad.index import Entry
from launchpad.job import JobId
from launchpad.launcher import kill as killing, wait as waiting
from launchpad.launcher.conversation import Notice
from launchpad.launcher.desk import Desk
from launchpad.launcher.follow import WHOLE, Follow, JobEnded, LogEnded, Start
from launchpad.launcher.result import job_exit_code
from launchpad.launcher.status import status as find_out
from launchpad.logstream import LogBytes
from launchpad.state import is_ended

logger = logging.getLogger("launchpad")
logger.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Job:
    """One job. It is a name for it, and holds nothing: any number of them may be made and dropped.

    ``id``: unique for ever. ``target``: where it runs, without any alias. Where :func:`run` gave
    it, ``start`` is how it stood when that returned, and ``first_lines`` holds up to ten first
    lines of its log; else None and nothing.
    """

    id: str
    target: str
    start: Status | None = field(default=None, repr=False, compare=False)
    first_lines: tuple[bytes, ...] = field(default=(), repr=False, compare=False)
    _desk: Desk | None = field(default=None, repr=False, compare=False)

    def __reduce__(self) -> tuple[type["Job"], tuple[object, ...]]:
        """For pickle: connections stay with the client that has them."""
        return Job, (self.id, self.target, self.start, self.first_lines)

    @property
    def name(self) -> str:
        """Its name: the id without the random end."""
        return JobId(self.id).name

    @property
    def ready(self) -> bool | None:
        """Whether a line matched ``ready`` before :func:`run` returned; None: not asked for."""
        return self.start.ready if self.start else None

    def status(self) -> Status:
        """How it stands now. A known end is not asked for again.

        Where it cannot be asked the state is ``unreachable``; that raises nothing.
        """
        (status,) = status_of(self._at(), (self.id,))
        return status

    def wait(self, timeout: float | None = None) -> int:
        """Block until it has ended; its exit code, 128+N for signal N, 125 where nobody knows.

        Lost lines are mended meanwhile. Raises TimeoutError after ``timeout`` seconds (None: no
        limit), and the error of the layer that failed where it cannot be asked any more.
        """
        return wait_for(self._at(), [self], timeout)[0]

    def tail(self, lines: int | None = 10) -> str:
        """The last ``lines`` lines of its log, None: all; what is not UTF-8 as U+FFFD."""
        return self.log(lines).decode("utf-8", "replace")

    def log(self, lines: int | None = None) -> bytes:
        """Its log as it stands now, byte for byte; or the last ``lines`` lines of it."""
        start = WHOLE if lines is None else Start("last", lines)
        with Follow(self._at(), self.entry(), start, follow=False) as follow:
            return b"".join(_bytes(follow))

    def follow(self, lines: int | None = None) -> Iterator[bytes]:
        """Its log as it grows, in pieces, to the job's end; from the last ``lines`` lines on.

        Each byte comes exactly once, however often the line is lost. Leaving the loop early leaves
        the job alone.
        """
        start = WHOLE if lines is None else Start("last", lines)
        with Follow(self._at(), self.entry(), start) as follow:
            yield from _bytes(follow)

    def kill(self, signal: str | int = "TERM", grace: float | None = None) -> Status:
        """End all of it, and see that nothing is left; how it stands then.

        TERM goes to the main process; once it has ended, or at half of ``grace`` (10 s), to the
        rest; at the end KILL. Another ``signal`` than TERM and KILL is delivered once, to the main
        process only, and nothing more happens unless ``grace`` is given; ``"KILL"`` ends
        everything at once. Nothing happens to a job that has ended.

        Raises :class:`JobSurvived` where something of it is left.
        """
        number = killing.parse_signal(str(signal))
        request = killing.KillRequest(number, grace)
        report = killing.kill(self._at(), [self.entry()], request)
        for _target, error in report.errors:
            raise error
        (killed,) = report.killed
        if killed.ended.left:
            raise JobSurvived(str(killed), advice=f"launchpad kill -s KILL {self.id}")
        logger.info("%s", killed)
        return Status.of(killed.job)

    def _at(self) -> Desk:
        if self._desk is not None:
            return self._desk
        from launchpad.api import default

        return default.desk

    def entry(self) -> Entry:
        """What this machine's index holds of it. Raises :class:`JobUnknown`."""
        entry = self._at().index.get(JobId(self.id))
        if entry is None:
            raise JobUnknown(
                f"no job {self.id} in this machine's index",
                advice=f"was it pruned? launchpad status {self.target}",
            )
        return entry


def status_of(desk: Desk, words: Sequence[str], *, everything: bool = False) -> list[Status]:
    """See :meth:`launchpad.api.client.Client.status`."""
    report = find_out(desk, words, everything=everything)
    asked = {job.target for job in report.jobs}
    for target, error in report.errors:
        if target not in asked:
            raise error
    return [Status.of(job) for job in report.jobs]


def wait_for(desk: Desk, jobs: Sequence[Job], timeout: float | None) -> list[int]:
    """See :meth:`launchpad.api.client.Client.wait`."""
    codes: dict[str, int] = {}
    errors: list[LaunchpadError] = []

    def hear(event: waiting.WaitEvent) -> None:
        match event:
            case waiting.Ended(job):
                codes[job.id.text] = job_exit_code(job) if is_ended(job.state) else LAUNCHPAD_FAILED
            case waiting.Failed(_entries, error):
                errors.append(error)
            case Notice(text):
                logger.warning(text)

    entries = [job.entry() for job in jobs]
    if waiting.wait(desk, entries, timeout, hear) is None:
        running_on = " ".join(job.id for job in jobs if job.id not in codes)
        raise TimeoutError(f"after {timeout:g} s these jobs run on: {running_on}")
    if errors:
        raise errors[0]
    return [codes[job.id] for job in jobs]


def _bytes(follow: Follow) -> Iterator[bytes]:
    while True:
        match follow.next_event(None):
            case LogBytes(data):
                yield data
            case Notice(text):
                logger.warning(text)
            case JobEnded() | LogEnded() | None:
                return
