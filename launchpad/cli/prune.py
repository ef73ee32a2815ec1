"""``launchpad prune``."""

from typing import TYPE_CHECKING

import click

from launchpad.cli.common import DURATION, Session, say, verb
from launchpad.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from launchpad.launcher.desk import Desk
    from launchpad.launcher.prune import Candidate, Pruning, Survey

_EPILOG = """\b
Goes: the job directory in the container with its log, and the index entry; of
all jobs at TARGET, whoever started them. Stays: a log of --log, and every job
that runs or of which a process lives. TIME is 90, 90s, 5m, 2h or 1d.
"""


@verb(epilog=_EPILOG)
@click.argument("words", metavar="[TARGET]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every target of the index.")
@click.option(
    "--older-than",
    type=DURATION,
    help="Only jobs that ended longer ago than this (default: 7d).",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would go; remove nothing.")
def prune(
    session: Session,
    /,
    *,
    words: tuple[str, ...],
    everything: bool,
    older_than: float | None,
    yes: bool,
    dry_run: bool,
) -> int:
    """Forget jobs that ended some time ago, and their logs."""
    from launchpad.cli.errors import show_error
    from launchpad.errors import LAUNCHPAD_FAILED
    from launchpad.launcher.prune import WEEK, Pruning, targets_of

    desk = session.desk()
    targets = targets_of(desk, words, everything=everything)
    if not (yes or dry_run or session.interactive):
        raise UsageError("nobody can be asked here", advice="--yes removes, --dry-run shows")
    limit = WEEK if older_than is None else older_than
    with Pruning(desk) as pruning:
        surveys = [pruning.survey(target, limit) for target in targets]
        for survey in surveys:
            _show(desk, survey, limit)
            if survey.error is not None:
                show_error(survey.error)
        failed = any(survey.error is not None for survey in surveys)
        todo = [survey for survey in surveys if survey.candidates or survey.gone]
        count = sum(len(survey.candidates) for survey in todo)
        if dry_run or not todo:
            return LAUNCHPAD_FAILED if failed else 0
        if count and not yes and not click.confirm(f"Remove {_jobs(count)}?", err=True):
            return 1
        for survey in todo:
            failed = not _remove(desk, pruning, survey) or failed
    return LAUNCHPAD_FAILED if failed else 0


def _show(desk: "Desk", survey: "Survey", limit: float) -> None:
    from launchpad.cli.transfer_screen import size_words
    from launchpad.render import span

    name = desk.name_of(str(survey.target))
    if survey.error is not None:
        return
    count = len(survey.candidates)
    logs = f", {size_words(survey.size)} of logs" if count else ""
    when = f" more than {span(limit)} ago" if limit else ""
    ended = f"{_jobs(count) if count else 'no job'} ended{when}"
    say(f"{name}: {ended}{logs}; {survey.recent} ended later or running")
    for candidate in survey.candidates:
        say(f"  {_line(candidate)}")
    for job in survey.busy:
        say(f"  stays: {job.id}, {job.processes} of its processes live: launchpad kill {job.id}")


def _line(candidate: "Candidate") -> str:
    from launchpad.cli.transfer_screen import size_words
    from launchpad.printable import printable
    from launchpad.render import span
    from launchpad.wording import state_words

    job = candidate.job
    whose = f"   {printable(job.spec.started_by)}" if job.spec and job.spec.started_by else ""
    parts = (str(job.id), state_words(job.state), f"{span(candidate.age)} ago")
    log = "log elsewhere, stays" if job.spec and job.spec.log else size_words(candidate.size)
    return f"{'   '.join(parts)}   {log}{whose}"


def _remove(desk: "Desk", pruning: "Pruning", survey: "Survey") -> bool:
    """Do it at one target, and say so; whether all went well."""
    from launchpad.cli.errors import show_error
    from launchpad.errors import LaunchpadError
    from launchpad.printable import printable

    name = desk.name_of(str(survey.target))
    try:
        removal = pruning.remove(survey)
    except LaunchpadError as error:
        show_error(error)
        return False
    forgotten = f", {len(survey.gone)} more forgotten here" if survey.gone else ""
    say(f"{name}: {_jobs(len(removal.removed))} removed{forgotten}")
    for line in _left(removal.kept):
        say(line)
    for job, problem in removal.failures:
        say(f"launchpad: {job} could not be removed: {printable(problem)}")
    return not removal.failures


def _left(kept: "Sequence[object]") -> "Iterator[str]":
    for job in kept:
        yield f"launchpad: {job} stays: a process of it lives"


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"
