"""``launchpad status``."""

import sys
from typing import TYPE_CHECKING

import click

from launchpad.cli.common import Session, say, verb, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from launchpad.launcher.desk import Desk
    from launchpad.launcher.status import Report
    from launchpad.render import View

_EPILOG = """\b
Without a word: what runs, what ended within a day, and every end that was not
shown before; those come first. A TARGET is asked for everybody's jobs, which
are added to this machine's index. Exit code 125: something that was named
could not be asked.
"""


@verb(epilog=_EPILOG)
@click.argument("words", metavar="[JOB|TARGET]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every job of this machine's index.")
@click.option("-q", "--quiet", is_flag=True, help="Only the ids.")
@click.option("--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def status(
    session: Session,
    /,
    words: tuple[str, ...],
    *,
    everything: bool,
    quiet: bool,
    watch: bool,
    as_json: bool,
) -> int:
    """Show what became of jobs."""
    from launchpad.launcher.status import status as find_out

    desk = session.desk()
    if watch:
        if as_json or quiet:
            raise click.UsageError("--watch shows a table: not with --json or -q")
        return _watch(session, desk, words, everything=everything)
    report = find_out(desk, words, everything=everything)
    if as_json:
        from launchpad.document import status_document

        write_json(status_document(report.jobs, report.errors, report.warnings))
    elif quiet:
        sys.stdout.writelines(f"{job.id}\n" for job in report.jobs)
    else:
        show(session, desk, report)
    return report.exit_code


def _view(desk: "Desk") -> "View":
    from launchpad.record import started_by
    from launchpad.render import View

    return View(desk.now(), desk.name_of, started_by())


def show(session: Session, desk: "Desk", report: "Report") -> None:
    """Print the table, then what it has no room for; ends in it are no news from now on."""
    from launchpad.cli.errors import show_error
    from launchpad.launcher.ends import mark_shown
    from launchpad.printable import printable
    from launchpad.render import plain_lines, remarks

    if session.colour(sys.stdout):
        console = _console()
        if report.jobs:
            from launchpad.render import table

            console.print(table(report.jobs, _view(desk), console.width))
    else:
        sys.stdout.writelines(f"{line}\n" for line in plain_lines(report.jobs, _view(desk)))
    sys.stdout.flush()
    if not report.jobs and not report.errors:
        say("launchpad: no jobs; launchpad run TARGET -- COMMAND starts one, --all shows old ones")
    for line in remarks(report.jobs, _view(desk)):
        say(line)
    for warning in report.warnings:
        say(f"launchpad: {printable(warning)}")
    for _target, error in report.errors:
        show_error(error)
    mark_shown(desk.index, report.jobs)


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def _watch(session: Session, desk: "Desk", words: tuple[str, ...], *, everything: bool) -> int:
    """Show the table again and again; in a pipe, whenever it says something new."""
    from launchpad.launcher.watching import watch

    reports = watch(desk, words, everything=everything)
    if not session.colour(sys.stdout):
        return _watch_plainly(desk, reports)
    from rich.live import Live

    from launchpad.render import table

    console = _console()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for report in reports:
            rows = report.jobs[: max(1, console.height - 2)]
            live.update(table(rows, _view(desk), console.width), refresh=True)
    return 0


def _watch_plainly(desk: "Desk", reports: "Iterator[Report]") -> int:
    from launchpad.render import plain_lines

    before: list[str] = []
    for report in reports:
        lines = list(plain_lines(report.jobs, _view(desk)))
        if lines != before:
            sys.stdout.writelines(f"{line}\n" for line in lines)
            sys.stdout.flush()
        before = lines
    return 0
