"""``launchpad rerun``."""

from pathlib import Path

import click

from launchpad.cli.common import DURATION, LOCAL_PATH, Session, verb

_EPILOG = """\b
Command, directory, user, log (added to) and options are those of JOB. Values of
variables are stored nowhere: each is taken from -e, else from --env-file, the
env file or job file of the first start if they are on this machine, else from
your environment, else asked for on a terminal. If one is missing nothing is
started, and it is named.
"""


@verb(epilog=_EPILOG)
@click.argument("job", metavar="JOB")
@click.option(
    "-e",
    "--env",
    "environment",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="A variable for the job, an old one or a new one; KEY alone takes your own value.",
)
@click.option(
    "--env-file",
    "env_files",
    multiple=True,
    type=LOCAL_PATH,
    help="Variables from a file of this machine (dotenv syntax).",
)
@click.option("--no-push", is_flag=True, help="Start without the --push that JOB began with.")
@click.option("--confirm", type=DURATION, help="Watch the new job this long (as JOB was).")
@click.option(
    "-f",
    "--follow/--no-follow",
    default=None,
    help="Print the log to the job's end; exit with its code.",
)
@click.option("--wait/--no-wait", default=None, help="Wait for the job's end; exit with its code.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option(
    "--dry-run", is_flag=True, help="Show the command that does the same by hand; start nothing."
)
def rerun(
    session: Session,
    /,
    *,
    job: str,
    environment: tuple[str, ...],
    env_files: tuple[Path, ...],
    no_push: bool,
    confirm: float | None,
    follow: bool | None,
    wait: bool | None,
    as_json: bool,
    dry_run: bool,
) -> int:
    """Start what a job was once more: command, directory, options."""
    del as_json  # the session knows
    from launchpad.cli.defaults import chosen_mode
    from launchpad.cli.rerun_request import Rerun, build_request
    from launchpad.cli.run_screen import start_and_show

    follow, wait = chosen_mode(session, "rerun", follow=follow, wait=wait)
    wanted = Rerun(job, environment, env_files, not no_push, confirm, follow, wait)
    request = build_request(session, wanted)
    if dry_run:
        from launchpad.cli.run_dry import show

        return show(session, request)
    return start_and_show(session, request)
