"""``launchpad attach``."""

import os

import click

from launchpad.cli.common import Session, say, verb
from launchpad.errors import UsageError

_EPILOG = """\b
For a job that was started with run --tmux. Its pane shows the log; what you
type goes to the job's stdin, Ctrl-C and Ctrl-\\ to the job. Ctrl-b d leaves it
running. A full-screen program has no place in a job: launchpad exec -t.
"""


@verb(epilog=_EPILOG)
@click.argument("job", metavar="JOB")
def attach(session: Session, job: str) -> int:
    """Show the terminal of a job with tmux."""
    from launchpad import console
    from launchpad.launcher.attach import attach as show
    from launchpad.launcher.selection import select_jobs
    from launchpad.launcher.status import learn
    from launchpad.state import is_ended
    from launchpad.wording import end_sentence

    if not (console.is_terminal(console.STDIN) and console.is_terminal(console.STDOUT)):
        raise UsageError(
            "attach needs a terminal as stdin and stdout",
            advice=f"launchpad tail -f {job}   shows what the job prints",
        )
    if os.environ.get("TERM") == "dumb":
        raise UsageError(
            "this terminal cannot move its cursor (TERM=dumb), and tmux must",
            advice=f"launchpad tail -f {job}   shows what the job prints",
        )
    desk = session.desk()
    jobs = select_jobs(desk, job, learn)
    entry = jobs.newest
    if jobs.note:
        say(f"==> {entry.id} on {desk.name_of(entry.target)} ({jobs.note}) <==")
    done = show(desk, entry)
    if done.job is None:
        return done.exit_code
    if is_ended(done.job.state):
        say(end_sentence(done.job))
    else:
        say(f"{entry.id} runs on: launchpad attach {entry.id}")
    return done.exit_code
