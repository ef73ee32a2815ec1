"""``launchpad wait``."""

from typing import TYPE_CHECKING, assert_never

import click

from launchpad.cli.common import DURATION, Session, say, verb

if TYPE_CHECKING:
    from launchpad.launcher.wait import WaitEvent

_EPILOG = """\b
The exit code is the job's own (128+N for signal N, 125 if nobody knows); of
several jobs, that of the first failed one in the order of the arguments.
Nothing is asked again and again: the container tells when a job ends. Lost
lines are mended as by tail -f. Ctrl-C ends the waiting, never a job.
"""


@verb(epilog=_EPILOG)
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@click.option("--timeout", type=DURATION, help="Give up after TIME (code 124); jobs run on.")
def wait(session: Session, /, jobs: tuple[str, ...], timeout: float | None) -> int:
    """Wait for jobs to end; exit with the job's own code."""
    from launchpad.errors import TIMED_OUT
    from launchpad.launcher import wait as launcher
    from launchpad.launcher.selection import select_jobs
    from launchpad.launcher.status import learn
    from launchpad.wording import duration_words

    desk = session.desk()
    entries = {}
    for word in jobs:
        chosen = select_jobs(desk, word, learn)
        if chosen.note:
            say(f"==> {chosen.newest.id} ({chosen.note}) <==")
        entries[chosen.newest.id] = chosen.newest
    code = launcher.wait(desk, list(entries.values()), timeout, _show)
    if code is None:
        say(f"launchpad: waited {duration_words(timeout or 0)}; what has not ended runs on")
        return TIMED_OUT
    return code


def _show(event: "WaitEvent") -> None:
    from launchpad.cli.errors import show_error
    from launchpad.launcher.conversation import Notice
    from launchpad.launcher.wait import Ended, Failed
    from launchpad.state import is_ended
    from launchpad.wording import end_sentence

    match event:
        case Ended(job):
            said = end_sentence(job)
            say(said if is_ended(job.state) else f"launchpad: {said}")
        case Failed(entries, error):
            if len(entries) > 1:
                say(f"launchpad: about {' '.join(entry.id.text for entry in entries)}:")
            show_error(error)
        case Notice(text):
            say(text)
        case _:
            assert_never(event)
