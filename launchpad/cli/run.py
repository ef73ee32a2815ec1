"""``launchpad run``."""

from typing import Any

import click

from launchpad.cli.arguments import CommandVerb, command_words
from launchpad.cli.common import DURATION, LOCAL_PATH, Session, verb

_EPILOG = """\b
Everything behind the first -- reaches the program byte for byte; nothing is
expanded on the way. For a line of shell use -c. A directory in the container
user's home: -C '~/proj' (quoted, or your own shell puts your home there).

\b
The job id is printed on stdout, everything else on stderr:
  id=$(launchpad run pve1:101 -- python3 train.py)
Values of -e KEY and --env-file stand in no process list and in no file.
The line of --on-exit runs in the container, as the job's user, 60 s at most,
with LAUNCHPAD_ENDED_JOB, LAUNCHPAD_STATE, LAUNCHPAD_CODE, LAUNCHPAD_LOG.
TIME is 90, 90s, 5m, 2h or 1d.
"""


@verb(cls=CommandVerb, epilog=_EPILOG)
@click.argument("target", metavar="TARGET", required=False)
@click.option(
    "-c",
    "shell",
    metavar="'SHELL STRING'",
    help="A line for the container's bash (or sh), instead of -- COMMAND.",
)
@click.option("-n", "--name", help="The job's name (default: made from the command).")
@click.option(
    "-C", "--cwd", metavar="DIR", help="Directory in the container; ~ is its user's home."
)
@click.option(
    "-e",
    "--env",
    "environment",
    multiple=True,
    metavar="KEY[=VALUE]",
    help="A variable for the job; KEY alone takes your own value.",
)
@click.option(
    "--env-file",
    "env_files",
    multiple=True,
    type=LOCAL_PATH,
    help="Variables from a file of this machine (dotenv syntax).",
)
@click.option("-u", "--user", help="User in the container (default: root).")
@click.option("--log", metavar="PATH", help="Log file in the container; must not exist.")
@click.option("--append", is_flag=True, help="Let --log be a file that exists.")
@click.option(
    "--tmux/--no-tmux", default=None, help="Lend it a terminal (launchpad attach JOB), or not."
)
@click.option(
    "--login/--no-login", default=None, help="Read the login profile first (default), or not."
)
@click.option(
    "--confirm",
    type=DURATION,
    help="Watch a new job this long (2 s); 0 proves its process only.",
)
@click.option("--ready", metavar="REGEX", help="Return when a line of the log matches.")
@click.option(
    "--ready-timeout",
    type=DURATION,
    help="Give up waiting for --ready (code 124); the job goes on.",
)
@click.option("--time-limit", type=DURATION, help="End all of the job after this time.")
@click.option(
    "--on-exit", metavar="SHELL", help="A line for the container's shell once the job has ended."
)
@click.option(
    "-f",
    "--follow/--no-follow",
    default=None,
    help="Print the log to the job's end; exit with its code.",
)
@click.option("--wait/--no-wait", default=None, help="Wait for the job's end; exit with its code.")
@click.option(
    "--push",
    type=LOCAL_PATH,
    metavar="DIR",
    help="Copy DIR to ~/BASENAME first (as push does), and run there unless -C.",
)
@click.option(
    "--file",
    type=LOCAL_PATH,
    metavar="JOB.toml",
    help="Take what is not said here from a job file.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Over a key of --file; repeat it."
)
@click.option(
    "--idempotency-key", metavar="KEY", help="Start nothing if a job of this target has KEY."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option(
    "--dry-run", is_flag=True, help="Show the command that does the same by hand; start nothing."
)
@click.pass_context
def run(ctx: click.Context, session: Session, /, as_json: bool, **values: Any) -> int:  # noqa: FBT001
    """Start a job, and prove that it started."""
    del as_json  # the session knows
    # Late: a usage error or --help must not wait for what a start needs.
    from launchpad.cli.defaults import chosen_mode
    from launchpad.cli.run_request import Options, build_request, with_defaults, with_file
    from launchpad.cli.run_screen import start_and_show

    dry_run = values.pop("dry_run")
    file, settings = values.pop("file"), values.pop("settings")
    follow, wait = chosen_mode(session, "run", follow=values.pop("follow"), wait=values.pop("wait"))
    options = Options(words=command_words(ctx), follow=follow, wait=wait, **values)
    options = with_defaults(with_file(options, file, settings), session.config)
    request = build_request(session, options)
    if dry_run:
        from launchpad.cli.run_dry import show

        return show(session, request)
    return start_and_show(session, request)
