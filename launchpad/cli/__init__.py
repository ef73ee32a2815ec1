"""The command line. Each verb is a module of this package, and is loaded only when it is called.

This is the only place that imports click. ``launchpad --help`` must stay fast, so this module
knows the first line of each verb's help (a test compares it with the verb's own).
"""

import importlib
from typing import cast

import click

from launchpad.cli.common import connection_options, write_options
from launchpad.version import __version__

# What follows each verb, and the first line of its help; in the order of the help.
VERBS = {
    "run": ("TARGET -- COMMAND [ARG...]", "Start a job, and prove that it started."),
    "tail": ("[JOB...]", "Show a job's log."),
    "status": ("[JOB|TARGET...]", "Show what became of jobs."),
    "kill": ("[JOB...]", "End all of a job."),
    "wait": ("JOB...", "Wait for jobs to end; exit with the job's own code."),
    "attach": ("JOB", "Show the terminal of a job with tmux."),
    "exec": ("TARGET [-- COMMAND [ARG...]]", "Run a command in the foreground, or a login shell."),
    "push": ("SRC TARGET:PATH", "Copy a file or directory into the container."),
    "pull": ("TARGET:PATH DEST", "Copy a file or directory out of the container."),
    "rerun": ("JOB", "Start what a job was once more: command, directory, options."),
    "prune": ("TARGET...|--all", "Forget jobs that ended some time ago, and their logs."),
    "doctor": ("TARGET", "Check each layer of a target, and name the fix of each fault."),
    "completion": (
        "bash|zsh|fish",
        "Print the script that completes launchpad's words in a shell.",
    ),
    "config": ("show", "Show the configuration in force, and where it comes from."),
}

_EPILOG = """\b
TARGET is HOST:CTID, HOST:NAME, USER@HOST:CTID, ssh://USER@HOST:PORT/CTID,
an alias of the configuration, or local. JOB is an id, a name, the beginning
of an id, or TARGET/NAME.

\b
Exit codes: the job's own from wait, run --wait, run -f, tail -f and exec, and
from run when the job has already failed (128+N for signal N); 124 a time ran
out; 125 launchpad or a layer below it failed, or wrong usage of these verbs;
126 found but not executable; 127 not found; 130 Ctrl-C, which never harms the
job; 2 wrong usage of the other verbs; 1 from kill: something survived.
"""


class Launchpad(click.Group):
    """The group of all verbs: loads a verb's module when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order of the help."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of that name."""
        del ctx
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"launchpad.cli.{cmd_name}")
        return cast("click.Command", getattr(module, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb, or an error that names the nearest one."""
        if args[0] not in VERBS:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=VERBS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs, from the table above: no module is loaded for it."""
        del ctx
        with formatter.section("Verbs"):
            formatter.write_dl(
                [(f"{name} {usage}", text) for name, (usage, text) in VERBS.items()],
                col_max=34,
            )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The verbs first: they are what one looks for."""
        self.format_commands(ctx, formatter)
        write_options(self, ctx, formatter)


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:  # noqa: FBT001
    del param
    if value and not ctx.resilient_parsing:
        click.echo(f"launchpad {__version__}")
        ctx.exit()


@click.group(
    cls=Launchpad,
    epilog=_EPILOG,
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version.",
)
@connection_options
@click.pass_context
def launchpad(ctx: click.Context) -> None:
    """Start a process inside a Proxmox container, detached, and know what became of it."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        ctx.exit()
