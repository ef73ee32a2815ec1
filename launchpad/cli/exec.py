"""``launchpad exec``."""

import click

from launchpad.cli import guards
from launchpad.cli.arguments import CommandVerb, command_words
from launchpad.cli.common import Session, join_words, verb
from launchpad.command import Argv
from launchpad.errors import UsageError

_EPILOG = """\b
stdin, stdout and stderr are the command's own, byte for byte, and apart:
  tar c . | launchpad exec pve1:101 -- tar x -C /data
It starts in the home of the container's user, with a clean environment; what
.bashrc adds is for interactive shells only. Nothing is detached: where the line
breaks, it is hung up. Its exit code is passed on (126, 127 as a shell has them).

\b
Ctrl-C reaches the command; a second one within three seconds gives up on it.
In a loop that reads its list from stdin use -n, or the command eats the list.

\b
With -t it has a terminal, with the size of yours. Without a command you get
a login shell (with a terminal, if stdin is one).
"""


class ExecVerb(CommandVerb):
    """The command may be left away."""

    command_usage = "[-- COMMAND [ARG...]]"


@verb(cls=ExecVerb, epilog=_EPILOG)
@click.argument("target", metavar="TARGET")
@click.option("-t", "--tty", "terminal", is_flag=True, help="Give it a terminal.")
@click.option("-n", "--no-stdin", "no_stdin", is_flag=True, help="Close its stdin.")
@click.pass_context
def exec_(
    ctx: click.Context, session: Session, /, target: str, *, terminal: bool, no_stdin: bool
) -> int:
    """Run a command in the foreground, or a login shell."""
    from launchpad import console
    from launchpad.launcher.foreground import ExecRequest, execute

    words = command_words(ctx)
    if words == ():
        raise UsageError(
            "no command behind --", advice="leave -- away for a login shell, or write the command"
        )
    command = Argv(words) if words else None
    if command is not None:
        try:
            guards.check_command(command, target)
        except UsageError as error:
            line = join_words([*ctx.command_path.split(), target, "--", "sh", "-c"])
            error.advice = f"let a shell read it: {line} '…'"
            raise
    if no_stdin and (terminal or command is None):
        raise UsageError(
            "-n closes stdin, and " + ("-t needs it" if terminal else "a login shell reads it"),
            advice="leave one of the two away",
        )
    on_terminal = console.is_terminal(console.STDIN)
    if terminal and not on_terminal:
        raise UsageError("-t needs a terminal as stdin", advice="leave -t away")
    desk = session.desk()
    request = ExecRequest(
        desk.target(target),
        command,
        terminal=terminal or (command is None and on_terminal),
        stdin=not no_stdin,
    )
    return execute(desk, request)


exec = exec_  # noqa: A001 # the verb's own name, as for all others
