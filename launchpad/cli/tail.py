"""``launchpad tail``."""

import re
from typing import TYPE_CHECKING, Any

import click

from launchpad.cli.common import Session, say, verb

if TYPE_CHECKING:
    from launchpad.index import Entry
    from launchpad.launcher.desk import Desk
    from launchpad.launcher.follow import Start

_LINES = 10

_EPILOG = """\b
To a pipe or a file the log goes byte for byte. On a terminal colours pass,
what would move the cursor, clear the screen, set titles or write the clipboard
does not (--raw lets it), and a line redrawn with carriage returns, such as a
progress bar, counts as one line and shows its last state.

\b
-f ends by itself when the job has ended, after the log's last byte, with the
job's own exit code. It survives lost lines: it connects again and goes on at
the byte where it stopped. Ctrl-C ends the follow, never the job.

\b
There are no time stamps and no --since: the log is a plain file that the job
writes itself, with no process in between that could note times. Let the job
print them, or pipe: launchpad tail -f JOB | ts

\b
A job can empty its own log: `echo x >/dev/stderr` opens it anew and truncates
it, and so does `tee` without -a. Write `echo x >&2` instead. tail says when it
sees that happen, and goes on at the new beginning; status notes it.
"""


class Lines(click.ParamType["Start"]):
    """N, +N or all."""

    name = "N|+N|all"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Start":
        """Where to begin."""
        from launchpad.launcher.follow import WHOLE, Start

        if isinstance(value, Start):
            return value
        if value == "all":
            return WHOLE
        match = re.fullmatch(r"([+]?)([0-9]{1,12})", str(value))
        if match is None:
            self.fail(f"{value!r} is not a number of lines: write 10, +10 or all", param, ctx)
        number = int(match[2])
        return Start("line", max(1, number)) if match[1] else Start("last", number)


@verb(epilog=_EPILOG)
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option(
    "-f",
    "--follow/--no-follow",
    default=False,
    help="Go on until the job ends; exit with its own code.",
)
@click.option(
    "-n",
    "--lines",
    "start",
    type=Lines(),
    default=_LINES,
    help="The last N lines (10), from line N on, or all.",
)
@click.option("--raw/--no-raw", default=False, help="To a terminal, too, byte for byte.")
@click.option(
    "--prefix/--no-prefix",
    default=None,
    help="With several jobs: each line behind its job's id (on a terminal: yes).",
)
def tail(session: Session, /, jobs: tuple[str, ...], **options: Any) -> int:
    """Show a job's log."""
    from launchpad.cli.log_view import LogView, job_prefixes
    from launchpad.launcher import tail as launcher

    desk = session.desk()
    entries = _entries(desk, jobs)
    start: Start = options["start"]
    view = LogView(session, raw=options["raw"])
    if not options["follow"]:
        for entry in entries:
            if len(entries) > 1:
                view.notice(f"==> {entry.id} on {desk.name_of(entry.target)} <==")
            launcher.show_log(desk, entry, start, view)
            view.finish(entry.id)
        return 0
    if len(entries) == 1:
        return launcher.follow_log(desk, entries[0], start, view)
    view.prefixes = job_prefixes(session, entries, wanted=options["prefix"])
    return launcher.follow_logs(desk, entries, start, view)


def _entries(desk: "Desk", words: tuple[str, ...]) -> "list[Entry]":
    """The jobs that are meant, each once; says which where that is not plain."""
    from launchpad.launcher.selection import select_jobs, select_newest
    from launchpad.launcher.status import learn

    if not words:
        entry = select_newest(desk)
        say(f"==> {entry.id} on {desk.name_of(entry.target)} <==")
        return [entry]
    entries = {}
    for word in words:
        jobs = select_jobs(desk, word, learn)
        if jobs.note:
            newest = jobs.newest
            say(f"==> {newest.id} on {desk.name_of(newest.target)} ({jobs.note}) <==")
        entries[jobs.newest.id] = jobs.newest
    return list(entries.values())
