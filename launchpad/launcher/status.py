"""`status`: what became of jobs, and which of it is news."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from launchpad.errors import LAUNCHPAD_FAILED, LaunchpadError
from launchpad.index import Entry, by_container
from launchpad.launcher import ends
from launchpad.launcher.asking import (
    Answer,
    Question,
    ask_all,
    ask_status,
    unreachable_job,
)
from launchpad.launcher.desk import Desk
from launchpad.launcher.selection import Everything, select
from launchpad.state import Job, is_ended
from launchpad.target import Target

# Without a word on the command line, an end is shown for this long (seconds).
RECENT = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Choice:
    """What `status` shows: jobs of the index, and targets that are asked for all of theirs.

    ``named``: somebody asked for these by name, so that not reaching them is a failure.
    """

    entries: tuple[Entry, ...]
    targets: tuple[Target, ...]
    named: bool


@dataclass(frozen=True, slots=True)
class Report:
    """Jobs in the order in which they are shown. ``errors``: targets that did not answer.

    ``news``: how many of the first jobs are ends that nobody has seen yet. ``warnings``: what may
    soon go wrong where they are.
    """

    jobs: tuple[Job, ...]
    errors: tuple[tuple[str, LaunchpadError], ...]
    news: int
    named: bool
    warnings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """What the process exits with."""
        return LAUNCHPAD_FAILED if self.named and self.errors else 0


def choose(desk: Desk, words: Sequence[str], *, everything: bool = False) -> Choice:
    """What the words of the command line mean.

    None: what runs, what ended within a day, every end that was not shown before; with
    ``everything`` all of the index. Raises as :func:`~launchpad.launcher.selection.select` does.
    """
    if words:
        return _choose_named(desk, words)
    if everything:
        entries = desk.index.entries()
    else:
        since = desk.now() - RECENT
        recent = [entry for entry in desk.index.entries() if _ended_since(entry, since)]
        entries = _unique([*desk.index.open_entries(), *desk.index.unshown(), *recent])
    return Choice(tuple(entries), (), named=False)


def _choose_named(desk: Desk, words: Sequence[str]) -> Choice:
    entries: list[Entry] = []
    targets: list[Target] = []
    for word in words:
        chosen = select(desk, word, learn)
        if isinstance(chosen, Everything):
            targets.append(chosen.target)
        else:
            entries += chosen.entries
    return Choice(tuple(_unique(entries)), tuple(dict.fromkeys(targets)), named=True)


def _ended_since(entry: Entry, since: float) -> bool:
    job = ends.known_end(entry)
    if job is None:
        return False
    at = job.ended_at or job.last_output_at or entry.created_at
    return at >= since


def _unique(entries: Iterable[Entry]) -> list[Entry]:
    return list({entry.id: entry for entry in entries}.values())


def questions_of(desk: Desk, choice: Choice) -> list[Question]:
    """What must be asked, container by container. Known ends are not asked for again."""
    wanted = {str(target): target for target in choice.targets}
    asked = (entry for entry in choice.entries if entry.end is None and entry.target not in wanted)
    questions = [Question(group[0].place, group) for group in by_container(asked)]
    for name, target in wanted.items():
        own = [entry for entry in desk.index.open_entries() if entry.target == name]
        questions.append(Question(target, tuple(own), everything=True))
    return questions


def status(desk: Desk, words: Sequence[str], *, everything: bool = False) -> Report:
    """Find out how the jobs are that the words mean. Raises as :func:`choose` does."""
    choice = choose(desk, words, everything=everything)
    answers = ask_all(desk, questions_of(desk, choice), ask_status(desk))
    keep(desk, answers)
    return report(desk, choice, answers)


def learn(desk: Desk, target: Target) -> None:
    """Put all jobs of a target into the index. Raises what kept it from answering."""
    choice = Choice((), (target,), named=True)
    (answer,) = ask_all(desk, questions_of(desk, choice), ask_status(desk))
    if answer.error is not None:
        raise answer.error
    keep(desk, [answer])


def keep(desk: Desk, answers: Iterable[Answer]) -> None:
    """Put what was answered into the index: jobs that others started, and ends."""
    for answer in answers:
        if answer.question.everything:
            desk.index.learn([_entry_of(desk, job, answer.question) for job in answer.jobs])
        ends.remember(desk, answer.jobs)


def _entry_of(desk: Desk, job: Job, question: Question) -> Entry:
    known = desk.index.get(job.id)
    record = job.spec.record if job.spec else {}
    return Entry(
        id=job.id,
        target=str(question.target),
        host=job.host,
        node=job.node,
        ctid=job.ctid,
        state_directory=known.state_directory if known else _state_directory(job),
        log=job.log,
        record=json.dumps(record),
        created_at=job.started_at or desk.now(),
        identity=job.identity,
    )


def _state_directory(job: Job) -> str:
    return job.log.removesuffix(f"/jobs/{job.id}/log")


def report(desk: Desk, choice: Choice, answers: Iterable[Answer]) -> Report:
    """Everything that is shown, news first, then what runs, then older ends; each newest first."""
    jobs: dict[str, Job] = {}
    errors: list[tuple[str, LaunchpadError]] = []
    entries = {entry.id.text: entry for entry in choice.entries}
    for entry in choice.entries:
        if (known := ends.known_end(entry)) is not None:
            jobs[entry.id.text] = known
    warnings: list[str] = []
    for answer in answers:
        warnings += [answer.warning] if answer.warning else []
        if answer.error is not None:
            errors.append((str(answer.question.target), answer.error))
            for entry in answer.question.entries:
                jobs[entry.id.text] = unreachable_job(entry, answer.error)
                entries[entry.id.text] = entry
        for job in answer.jobs:
            jobs[job.id.text] = job
    shown = {entry.id for entry in desk.index.entries() if entry.end_shown}
    created = {name: entry.created_at for name, entry in entries.items()}

    def moment(job: Job) -> float:
        return created.get(job.id.text) or job.started_at or 0.0

    newest_first = sorted(jobs.values(), key=moment, reverse=True)
    news = [job for job in newest_first if is_ended(job.state) and job.id not in shown]
    running = [job for job in newest_first if not is_ended(job.state)]
    others = [job for job in newest_first if is_ended(job.state) and job.id in shown]
    return Report(
        (*news, *running, *others), tuple(errors), len(news), choice.named, tuple(warnings)
    )
