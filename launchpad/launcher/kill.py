"""`kill`: end all of a job, and know that nothing of it is left."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from launchpad.errors import LaunchpadError, UsageError
from launchpad.index import Entry, by_container
from launchpad.job import TICKS_PER_SECOND
from launchpad.kill_reply import Ended, kill_sentence, parse_ended
from launchpad.launcher import ends
from launchpad.launcher.asking import (
    Answer,
    Manner,
    Question,
    ask_all,
    ask_status,
    job_word,
    jobs_of,
)
from launchpad.launcher.contact import Contact
from launchpad.launcher.desk import Desk
from launchpad.launcher.selection import Jobs, list_ids, select_jobs
from launchpad.launcher.status import Choice, keep, learn, questions_of
from launchpad.proxmox import ANSWER_DEADLINE
from launchpad.record import started_by
from launchpad.replies import parse_facts
from launchpad.state import Job, is_ended

GRACE = 10.0

# What the far side may need beyond the grace time: to stop a storm, and to look again (seconds).
_AFTER_GRACE = 20.0

SURVIVORS = 1

SCRIPTS = ("common", "members", "facts", "end", "kill")


@dataclass(frozen=True, slots=True)
class Killed:
    """What a kill did to one job, and how the job stands now."""

    job: Job
    ended: Ended

    def __str__(self) -> str:
        return kill_sentence(self.ended, self.job)


@dataclass(frozen=True, slots=True)
class KillRequest:
    """How jobs are to be ended.

    ``grace``: seconds, None: the usual time; with another signal than TERM and KILL None means that
    it is delivered once and nothing more happens. ``on_killed`` is called for each job when done.
    """

    signal: int = signal.SIGTERM
    grace: float | None = None
    on_killed: Callable[[Killed], None] = field(default=lambda _killed: None)

    @property
    def grace_word(self) -> str:
        """As remote/end.sh wants it: ticks, or "once"."""
        if self.grace is None and self.signal not in {signal.SIGTERM, signal.SIGKILL}:
            return "once"
        grace = GRACE if self.grace is None else self.grace
        return str(round(grace * TICKS_PER_SECOND))


@dataclass(frozen=True, slots=True)
class KillReport:
    """``errors``: the targets that did not answer."""

    killed: tuple[Killed, ...]
    errors: tuple[tuple[str, LaunchpadError], ...]

    @property
    def exit_code(self) -> int:
        """What the process exits with."""
        if self.errors:
            return self.errors[0][1].exit_code
        return SURVIVORS if any(each.ended.left for each in self.killed) else 0


def parse_signal(text: str) -> int:
    """The number of a signal: ``USR1``, ``SIGUSR1``, ``sigusr1`` or ``10``.

    Raises :class:`UsageError`. Numbers are those of Linux on amd64, on both sides.
    """
    name = text.upper()
    if name.isdecimal():
        number = int(name)
        if 0 < number <= signal.SIGRTMAX:
            return number
    elif (member := signal.Signals.__members__.get(f"SIG{name.removeprefix('SIG')}")) is not None:
        return member.value
    names = " ".join(each.name.removeprefix("SIG") for each in signal.Signals if each.value < 20)  # noqa: PLR2004
    raise UsageError(f"{text!r} is not a signal", advice=f"a number, or one of {names} …")


def running_jobs(desk: Desk, entries: Sequence[Entry]) -> list[Job]:
    """Those of the entries of which something lives, or may live where nobody answers."""
    answers = ask_all(
        desk, questions_of(desk, Choice(tuple(entries), (), named=True)), ask_status(desk)
    )
    keep(desk, answers)
    found = {job.id: job for answer in answers for job in answer.jobs}
    living = []
    for entry in entries:
        job = found.get(entry.id)
        if entry.end is None and job is None:
            error = next(
                answer.error
                for answer in answers
                if entry in answer.question.entries and answer.error
            )
            raise error
        if job is not None and (not is_ended(job.state) or job.processes):
            living.append(job)
    return living


def choose(desk: Desk, words: Sequence[str]) -> list[Entry]:
    """The jobs that the words mean.

    A name must mean exactly one job that runs. Raises :class:`UsageError` where it means several,
    and as :func:`~launchpad.launcher.selection.select_jobs` does.
    """
    chosen = {
        entry.id: entry for word in words for entry in [_one(desk, select_jobs(desk, word, learn))]
    }
    return list(chosen.values())


def _one(desk: Desk, jobs: Jobs) -> Entry:
    possible = [entry for entry in jobs.entries if entry.end is None]
    if not possible:
        return jobs.newest
    if len(possible) == 1:
        return possible[0]
    living = {job.id for job in running_jobs(desk, possible)}
    running = [entry for entry in possible if entry.id in living]
    if len(running) > 1:
        raise UsageError(
            f"{len(running)} running jobs are named {jobs.newest.name}: {list_ids(running)}",
            advice=f"name one, or: launchpad kill $(launchpad status -q {jobs.word})",
        )
    return running[0] if running else jobs.newest


def kill(desk: Desk, entries: Sequence[Entry], request: KillRequest) -> KillReport:
    """End the jobs: containers side by side, one call for each of them.

    What is known to have ended wholly is not asked about again.
    """
    done: dict[str, Killed] = {}
    for entry in entries:
        if (known := ends.known_end(entry)) is not None:
            done[entry.id.text] = Killed(known, Ended())
            request.on_killed(done[entry.id.text])
    groups = by_container(entry for entry in entries if entry.id.text not in done)
    questions = [Question(group[0].place, group) for group in groups]

    def take(answer: Answer) -> None:
        ends.remember(desk, answer.jobs)
        ended = parse_ended(answer.frames)
        for job in answer.jobs:
            done[job.id.text] = Killed(job, ended.get(job.id, Ended()))
            request.on_killed(done[job.id.text])

    answers = ask_all(desk, questions, _manner(desk, request), take)
    ends.mark_shown(desk.index, [each.job for each in done.values()])
    errors = tuple(
        (str(answer.question.target), answer.error)
        for answer in answers
        if answer.error is not None
    )
    return KillReport(
        tuple(done[entry.id.text] for entry in entries if entry.id.text in done), errors
    )


def _manner(desk: Desk, request: KillRequest) -> Manner:
    patience = GRACE if request.grace is None else request.grace

    def ask(contact: Contact, question: Question) -> Answer:
        words = [
            question.entries[0].state_directory,
            started_by(),
            str(int(request.signal)),
            request.grace_word,
            *(job_word(entry.id, entry.identity) for entry in question.entries),
        ]
        deadline = ANSWER_DEADLINE + patience + _AFTER_GRACE
        frames = tuple(contact.ask(SCRIPTS, words, deadline=deadline))
        jobs = jobs_of(desk, contact, question, parse_facts(frames))
        return Answer(question, jobs, frames=frames)

    return Manner(ask, patience=15.0, one_by_one=False)
