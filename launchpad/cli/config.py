"""``launchpad config``."""

import os
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from launchpad.cli.common import Session, connection_options, verb, write_options

_BUILT_IN = {
    "login": "true",
    "launcher": "setsid",
    "transport": "auto",
    "share_connection": "false",
}


class _Group(click.Group):
    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        write_options(self, ctx, formatter)


@click.group(cls=_Group, no_args_is_help=False)
@connection_options
def config() -> None:
    """Show the configuration in force, and where it comes from."""


@verb()
def show(session: Session) -> None:
    """Print each setting that is in force, and where it comes from."""
    from launchpad.printable import printable

    rows = [tuple(map(printable, row)) for row in _rows(session)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, value, source in rows:
        sys.stdout.write(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {source}\n")


config.add_command(show)


def _rows(session: Session) -> Iterator[tuple[str, str, str]]:
    """Name, value and origin of each setting, the file itself first."""
    from launchpad.config import default_path

    settings = session.config
    chosen = session.config_file
    if chosen is not None:
        yield "file", str(chosen), _said("--config", "LAUNCHPAD_CONFIG", chosen)
    else:
        yield "file", str(default_path()), "default" if settings.path else "default, not there"
    if session.transport is not None:
        yield "transport", session.transport, "--transport"
    if session.ssh_config is not None:
        source = _said("--ssh-config", "LAUNCHPAD_SSH_CONFIG", session.ssh_config)
        yield "ssh_config", str(session.ssh_config), source
    yield from _section(session, "defaults", settings.defaults, _BUILT_IN)
    for switch in ("no_color", "verbose"):
        if f"defaults.{switch}" in settings.lines:
            text = str(getattr(settings, switch)).lower()
            yield f"defaults.{switch}", text, _place(session, f"defaults.{switch}")
    for verb_name, said in settings.verbs.items():
        for key, value in said.items():
            name = f"defaults.{verb_name}.{key}"
            yield name, _plain(value), _place(session, name)
    for name, alias in settings.targets.items():
        where = f"targets.{name}"
        yield f"{where}.target", alias.target, _place(session, f"{where}.target")
        yield from _section(session, where, alias.settings, {})


def _section(
    session: Session, where: str, settings: Any, built_in: dict[str, str]
) -> Iterator[tuple[str, str, str]]:
    for item in fields(settings):
        value = getattr(settings, item.name)
        name = f"{where}.{item.name}"
        if item.name == "env":
            # Values are nobody's business but the job's.
            for variable, said in value:
                text = "(your own value)" if said is None else "(a value)"
                yield f"{name}.{variable}", text, _place(session, name)
        elif value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield name, text, _place(session, name)
        elif item.name in built_in:
            yield name, built_in[item.name], "built in"


def _plain(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}s"
        case tuple():
            return " ".join(map(str, value))
        case _:
            return str(value)


def _place(session: Session, name: str) -> str:
    settings = session.config
    line = settings.lines.get(name) or settings.lines.get(name.rpartition(".")[0])
    return f"{settings.path}:{line}" if line else str(settings.path)


def _said(option: str, variable: str, value: Path) -> str:
    from_variable = os.environ.get(variable)
    return variable if from_variable and Path(from_variable).expanduser() == value else option
