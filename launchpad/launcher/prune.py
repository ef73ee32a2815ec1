"""`prune`: forget jobs that ended some time ago, here and in their containers.

First every container is asked what is there (:meth:`Pruning.survey`), then somebody is asked, then
it is done (:meth:`Pruning.remove`): on one connection for each host, which stays open meanwhile.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from launchpad.command import to_text
from launchpad.errors import ContainerError, LaunchpadError, UsageError
from launchpad.frames import Frame
from launchpad.index import Entry
from launchpad.job import JobId
from launchpad.launcher.asking import SCRIPTS, Question, jobs_of, question_words
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.launcher.ends import known_end, remember
from launchpad.replies import Facts, JobFacts, parse_facts
from launchpad.state import Job, is_ended
from launchpad.target import Target, parse_target

WEEK = 7 * 86400.0

# What may be much: thousands of jobs to look at, gigabytes to remove (seconds).
_PATIENCE = 60.0
_REMOVAL = 600.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job to forget. ``age``: seconds since its end, by the container's clock.

    ``size``: bytes of its log, 0 where that is a file of `--log`, which stays.
    """

    job: Job
    age: float
    size: int


@dataclass(frozen=True, slots=True)
class Survey:
    """What there is at a target: jobs to forget, oldest first.

    ``gone``: entries of the index whose jobs are not there any more. ``busy``: ended long ago, but
    processes of theirs live. ``recent``: other jobs, running ones included. ``error``: why nobody
    knows.
    """

    target: Target
    candidates: tuple[Candidate, ...] = ()
    gone: tuple[Entry, ...] = ()
    busy: tuple[Job, ...] = ()
    recent: int = 0
    error: LaunchpadError | None = None

    @property
    def size(self) -> int:
        """Bytes of the logs that go."""
        return sum(candidate.size for candidate in self.candidates)


@dataclass(frozen=True, slots=True)
class Removal:
    """What came of it. ``kept``: jobs of which processes live after all."""

    removed: tuple[JobId, ...]
    kept: tuple[JobId, ...]
    failures: tuple[tuple[JobId, str], ...]


class Pruning:
    """Holds the connections between the survey and the removal. Use it with ``with``."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._open = ExitStack()
        self._contacts: dict[str, Contact] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._open.close()

    def survey(self, target: Target, older_than: float) -> Survey:
        """What of ``target`` has ended more than ``older_than`` seconds ago. Never raises."""
        desk = self._desk
        own = [entry for entry in desk.index.entries() if entry.target == str(target)]
        question = Question(target, tuple(own), everything=True)
        try:
            contact = connect(target, desk.options_for(target))
            self._open.callback(contact.close)
            words = question_words(question, contact.state_directory, "once")
            facts = parse_facts(contact.ask(SCRIPTS, words, deadline=_REMOVAL, pause=_PATIENCE))
            jobs = jobs_of(desk, contact, question, facts)
        except LaunchpadError as error:
            return Survey(target, error=error)
        self._contacts[str(target)] = contact
        return _sort(target, own, jobs, facts, older_than=older_than, now=desk.now())

    def remove(self, survey: Survey) -> Removal:
        """Forget what the survey found. Raises :class:`LaunchpadError` of the layer that failed."""
        contact = self._contacts[str(survey.target)]
        # If the answer is lost, their directories may be gone; how they ended is known even then.
        remember(self._desk, [candidate.job for candidate in survey.candidates])
        ids = [candidate.job.id for candidate in survey.candidates]
        words = [contact.state_directory, *(job.text for job in ids)]
        names = ("common", "members", "facts", "prune")
        frames = contact.ask(names, words, deadline=_REMOVAL)
        _raise_refusal(frames, str(survey.target))
        removal = _read(frames)
        self._desk.index.forget(*removal.removed, *(entry.id for entry in survey.gone))
        return removal


def targets_of(desk: Desk, words: Sequence[str], *, everything: bool) -> list[Target]:
    """The targets that the command line names. Raises :class:`UsageError` where it names none."""
    if everything:
        if words:
            raise UsageError("--all is every target; name some, or write --all")
        known = (entry.target for entry in desk.index.entries())
        return [parse_target(text) for text in dict.fromkeys(known)]
    if not words:
        raise UsageError(
            "no target is named", advice="launchpad prune TARGET, or --all for those of the index"
        )
    return list(dict.fromkeys(desk.target(word) for word in words))


def _sort(
    target: Target,
    own: Sequence[Entry],
    jobs: Sequence[Job],
    facts: Facts,
    *,
    older_than: float,
    now: float,
) -> Survey:
    candidates: list[Candidate] = []
    busy: list[Job] = []
    recent = 0
    clock = facts.now.epoch if facts.now is not None else 0
    present = {name for name, found in facts.jobs.items() if found.directory}
    for job in jobs:
        if job.id not in present:
            continue
        found = facts.of(job.id)
        at = _ended_at(job, found)
        if not is_ended(job.state) or at is None or clock - at < older_than:
            recent += 1
        elif job.processes:
            busy.append(job)
        else:
            elsewhere = job.spec is not None and job.spec.log is not None
            size = 0 if elsewhere else found.log_bytes or 0
            candidates.append(Candidate(job, clock - at, size))
    alive = {job.id for job in jobs if job.processes}
    gone = [
        entry
        for entry in own
        if entry.id not in present
        and entry.id not in alive
        and _is_past(entry)
        and now - entry.created_at >= older_than
    ]
    candidates.sort(key=lambda candidate: -candidate.age)
    return Survey(target, tuple(candidates), tuple(gone), tuple(busy), recent)


def _is_past(entry: Entry) -> bool:
    """Whether nothing more can become of an entry whose job directory is not there."""
    return entry.identity is not None or known_end(entry) is not None


def _ended_at(job: Job, found: JobFacts) -> float | None:
    """When it ended; of one that was lost, when it was last heard of."""
    if found.end is not None:
        return float(found.end.at)
    times = (job.started_at, found.log_at, found.spec_at)
    return max((float(time) for time in times if time is not None), default=None)


def _raise_refusal(frames: Sequence[Frame], where: str) -> None:
    for frame in frames:
        if frame.name == "refused":
            reason = frame.words[0] if frame.words else ""
            if reason == "state-owner":
                said = "is not its owner's alone"
                advice = "look who else may write there, and set it right, before it is used again"
            else:
                said = "cannot be written"
                advice = "is the disk read-only? nothing was removed"
            raise ContainerError(
                f"launchpad's directory in {where} {said}",
                details=to_text(frame.payload),
                advice=advice,
            )


def _read(frames: Sequence[Frame]) -> Removal:
    found: dict[str, list[tuple[JobId, str]]] = {"pruned": [], "kept": [], "failed": []}
    for frame in frames:
        if frame.name in found and len(frame.words) == 1:
            found[frame.name].append((JobId(frame.words[0]), to_text(frame.payload)))
    return Removal(
        tuple(job for job, _text in found["pruned"]),
        tuple(job for job, _text in found["kept"]),
        tuple(found["failed"]),
    )
