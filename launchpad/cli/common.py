"""What all verbs share on the command line: the session, the connection options, the types.

A verb is a function ``(session, …) -> int | None`` (its exit code; None is 0) under :func:`verb`.
It raises :class:`~launchpad.errors.LaunchpadError`; ``__main__`` shows it, as JSON too where
``--json`` was given.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, cast

import click

from launchpad.duration import parse_duration

if TYPE_CHECKING:
    from pathlib import Path

    from click.shell_completion import CompletionItem

    from launchpad.job import JobId
    from launchpad.launcher.desk import Desk
    from launchpad.settings import Config
    from launchpad.sshconfig import Ahead
    from launchpad.transport.base import ConnectOptions

P = ParamSpec("P")


# Each method that dataclass makes costs half a millisecond at every start.
@dataclass(eq=False, repr=False, match_args=False)
class Session:
    """One run of the program: what was said before and behind the verb about how to work.

    ``job`` and ``started`` are filled in by verbs that start something, for the JSON of a failure.
    """

    verb: str = ""
    ssh_config: "Path | None" = None
    config_file: "Path | None" = None
    transport: Literal["auto", "paramiko", "openssh"] | None = None
    verbose: bool = False
    no_color: bool = False
    json: bool = False
    job: "JobId | None" = None
    started: Literal["yes", "no", "unknown"] = "no"
    ahead: "Ahead | None" = None
    _config: "Config | None" = None

    @classmethod
    def begin(cls, ahead: "Ahead | None" = None) -> "Session":
        """A session as the environment has it; options on the command line go before that."""
        return cls(
            ssh_config=_path_from("LAUNCHPAD_SSH_CONFIG"),
            config_file=_path_from("LAUNCHPAD_CONFIG"),
            ahead=ahead,
        )

    @property
    def config(self) -> "Config":
        """The configuration in force; read once. Raises :class:`ClientError` where it is wrong."""
        if self._config is None:
            from launchpad.config import load

            self._config = load(self.config_file)
        return self._config

    @property
    def interactive(self) -> bool:
        """Whether a person can be asked: terminals in front and behind, and no ``--json``."""
        return not self.json and sys.stdin.isatty() and sys.stderr.isatty()

    def colour(self, stream: Any) -> bool:
        """Whether ``stream`` gets colours and movement: a terminal, and nobody said no."""
        return (
            not (self.no_color or self._configured("no_color"))
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") != "dumb"
            and stream is not None
            and stream.isatty()
        )

    def _configured(self, switch: str) -> bool:
        """A switch of the configuration. One that cannot be read is reported by who needs it."""
        from launchpad.errors import LaunchpadError

        try:
            return bool(getattr(self.config, switch))
        except LaunchpadError:
            return False

    def connect_options(self) -> "ConnectOptions":
        """How to reach hosts, before what the configuration says of single targets."""
        from launchpad.transport.base import ConnectOptions

        defaults = self.config.defaults
        return ConnectOptions(
            ssh_config=self.ssh_config or defaults.ssh_config,
            choice=self.transport or defaults.transport or "auto",
            interactive=self.interactive,
            share=bool(defaults.share_connection),
            note=self._note,
            warn=_warn,
            ahead=self.ahead,
        )

    def desk(self) -> "Desk":
        """The place that the verbs of :mod:`launchpad.launcher` work from."""
        from launchpad.launcher.desk import make_desk

        return make_desk(
            self.config,
            self.connect_options(),
            say,
            transport=self.transport,
        )

    def _note(self, line: str) -> None:
        if self.verbose or self._configured("verbose"):
            from launchpad.printable import printable

            say(f"-v {printable(line)}")


def _path_from(variable: str) -> "Path | None":
    value = os.environ.get(variable)
    if not value:
        return None
    from pathlib import Path

    return Path(value).expanduser()


def say(line: str) -> None:
    """One line for the user, on stderr. What comes from elsewhere has been made printable."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _warn(line: str) -> None:
    from launchpad.printable import printable

    say(f"launchpad: {printable(line)}")


def write_json(document: dict[str, Any]) -> None:
    r"""The one document of ``--json``: a line of ASCII; bytes that are not UTF-8 as ``\udcXX``."""
    import json

    sys.stdout.write(f"{json.dumps(document)}\n")
    sys.stdout.flush()


class Duration(click.ParamType[float]):
    """TIME: ``90``, ``90s``, ``5m``, ``2h``, ``1d``; the value is in seconds."""

    name = "TIME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Seconds."""
        if isinstance(value, int | float):
            return float(value)
        seconds = parse_duration(value)
        if seconds is None:
            self.fail(f"{value!r} is not a time: write 90, 90s, 5m, 2h or 1d", param, ctx)
        return seconds


class LocalPath(click.ParamType["Path"]):
    """A path on this machine, whatever bytes its name has."""

    name = "FILE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> "Path":
        """The path; ``~`` stands for the home of this machine."""
        from pathlib import Path

        from launchpad.command import to_bytes

        if isinstance(value, Path):
            return value
        if not value or "\0" in value:
            self.fail(f"{value!r} is not a path", param, ctx)
        return Path(os.fsdecode(to_bytes(value))).expanduser()

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """The shell knows the names of files."""
        del ctx, param
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class KnownWord(click.ParamType[str]):
    """A job, a target or ``TARGET:PATH``: any text, but the known ones can be completed."""

    name = "text"

    def __init__(self, metavar: str) -> None:
        self._metavar = metavar

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text itself."""
        del param, ctx
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Jobs of the index, aliases and targets, as the metavar promises."""
        del param
        from click.shell_completion import CompletionItem

        from launchpad.cli import completion

        session = ctx.ensure_object(Session)
        words: list[str] = []
        if "JOB" in self._metavar:
            words += completion.job_words(session)
        if "TARGET:" in self._metavar:
            words += [f"{word}:" for word in completion.target_words(session)]
        elif "TARGET" in self._metavar:
            words += completion.target_words(session)
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


DURATION = Duration()
LOCAL_PATH = LocalPath()


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Put a connection option into the session; the last one that was given counts."""
    if value is not None and value is not False:
        setattr(ctx.ensure_object(Session), param.name or "", value)


class ConnectionOption(click.Option):
    """An option that may stand before and behind the verb, shown in a section of its own."""


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the connection options to a click command or group."""
    for names, settings in reversed(
        [
            (
                ("--transport",),
                {
                    "type": click.Choice(["auto", "paramiko", "openssh"]),
                    "help": "How to reach the host.",
                },
            ),
            (
                ("-F", "--ssh-config"),
                {
                    "type": LOCAL_PATH,
                    "metavar": "FILE",
                    "help": "Read instead of ~/.ssh/config (LAUNCHPAD_SSH_CONFIG).",
                },
            ),
            (
                ("--config", "config_file"),
                {
                    "type": LOCAL_PATH,
                    "metavar": "FILE",
                    "help": "launchpad's configuration (LAUNCHPAD_CONFIG).",
                },
            ),
            (("-v", "verbose"), {"is_flag": True, "help": "Say what is being done, and why."}),
            (("--no-color",), {"is_flag": True, "help": "No colours (as NO_COLOR)."}),
        ]
    ):
        command = click.option(
            *names,
            cls=ConnectionOption,
            expose_value=False,
            callback=_remember,
            **cast("dict[str, Any]", settings),
        )(command)
    return command


# Verbs whose options may stand in [defaults.VERB]. (run and rerun look there themselves, because a
# job file, or the record of a job, goes before that.)
_TAKE_DEFAULTS = frozenset({"tail", "kill", "wait", "push", "pull", "prune"})


class Verb(click.Command):
    """A verb: knows where its usage errors belong, and shows the connection options apart.

    Options that were not given are as the configuration has them, in ``[defaults.VERB]``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note the verb, and ``--json``, before anything can go wrong."""
        self.note(ctx, args)
        if self.name in _TAKE_DEFAULTS and not ctx.resilient_parsing:
            from launchpad.cli.defaults import Defaults

            ctx.default_map = Defaults(ctx.ensure_object(Session), self)
        return super().parse_args(ctx, args)

    def note(self, ctx: click.Context, args: Sequence[str]) -> None:
        """What must be known to report even the first error rightly."""
        session = ctx.ensure_object(Session)
        session.verb = self.name or ""
        session.json = session.json or "--json" in args

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of the verb, then those of the connection."""
        write_options(self, ctx, formatter)


def write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """The sections "Options" and "Connection options" of a help text."""
    for title, wanted in (("Options", False), ("Connection options", True)):
        rows = [
            row
            for param in command.get_params(ctx)
            if isinstance(param, click.Option)
            and isinstance(param, ConnectionOption) is wanted
            and (row := param.get_help_record(ctx)) is not None
        ]
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


def verb(
    *, cls: type[Verb] = Verb, epilog: str | None = None
) -> Callable[[Callable[Concatenate[Session, P], int | None]], click.Command]:
    """Make a click command of a function; its name is the verb, its docstring the help."""

    def decorate(function: Callable[Concatenate[Session, P], int | None]) -> click.Command:
        decorated = click.command(cls=cls, name=function.__name__.rstrip("_"), epilog=epilog)
        command = decorated(connection_options(click.pass_obj(function)))
        for param in command.params:
            # What a word means stands in its metavar; completion goes by that.
            if isinstance(param, click.Argument) and param.type is click.STRING and param.metavar:
                param.type = KnownWord(param.metavar)
        return command

    return decorate


def join_words(words: Iterable[str]) -> str:
    """Words as a line that a shell reads back as the same words, for messages."""
    from launchpad.command import quote_words, to_text

    return to_text(quote_words(words))
