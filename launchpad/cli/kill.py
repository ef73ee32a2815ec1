"""``launchpad kill``."""

from typing import TYPE_CHECKING

import click

from launchpad.cli.common import DURATION, Session, say, verb
from launchpad.errors import UsageError

if TYPE_CHECKING:
    from launchpad.index import Entry
    from launchpad.launcher.desk import Desk

_EPILOG = """\b
TERM goes to the job's main process; once that has ended, or at half of the
grace time, to the rest of it; at the end KILL, and it is looked at again until
nothing is left. -s SIGNAL (other than TERM and KILL) is delivered once, to the
main process only, and nothing more happens unless --grace is given. -s KILL
ends everything at once. Exit code 1: something survived, and is listed.
"""


@verb(epilog=_EPILOG)
@click.argument("words", metavar="[JOB]...", nargs=-1)
@click.option(
    "-s",
    "--signal",
    "signal_word",
    metavar="SIGNAL",
    default="TERM",
    help="Another signal than TERM.",
)
@click.option(
    "--grace", type=DURATION, help="How long all of it may take to end by itself (default: 10s)."
)
def kill(session: Session, words: tuple[str, ...], signal_word: str, grace: float | None) -> int:
    """End all of a job."""
    from launchpad.cli.errors import show_error
    from launchpad.launcher.kill import KillRequest, choose, kill as end, parse_signal

    number = parse_signal(signal_word)
    desk = session.desk()
    entries = choose(desk, words) if words else [_only_one(session, desk)]
    request = KillRequest(number, grace, on_killed=lambda killed: say(str(killed)))
    report = end(desk, entries, request)
    for _target, error in report.errors:
        show_error(error)
    return report.exit_code


def _only_one(session: Session, desk: "Desk") -> "Entry":
    """The only running job, if somebody says yes to it."""
    from launchpad.launcher.kill import running_jobs
    from launchpad.launcher.selection import list_ids

    entries = {entry.id: entry for entry in desk.index.open_entries()}
    running = [entries[job.id] for job in running_jobs(desk, list(entries.values()))]
    if not running:
        raise UsageError("no job of this machine's index runs", advice="launchpad status")
    if len(running) > 1:
        raise UsageError(
            f"{len(running)} jobs run: {list_ids(running)}", advice="name those that are to end"
        )
    (only,) = running
    if not session.interactive or not click.confirm(
        f"End {only.id} on {desk.name_of(only.target)}?", err=True
    ):
        raise UsageError(f"one job runs: {only.id}", advice=f"launchpad kill {only.id}")
    return only
