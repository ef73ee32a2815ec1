"""Writes reference.md, the reference of the command line, from the command line itself.

``python3 docs/make_reference.py`` writes it; with ``--check`` nothing is written, and the exit
code is 1 where it is not current.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from launchpad.cli import VERBS, launchpad

PAGE = Path(__file__).with_name("reference.md")

_HEAD = """\
# The command line

Written by `docs/make_reference.py` from the program itself: what `--help` says, for all verbs.
The documents of `--json` are described by the JSON Schemas in [schema](schema); what they are for,
[Driving launchpad from a script or an agent](agents.md) says.
"""


def render() -> str:
    """The whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    with launchpad.make_context("launchpad", [], resilient_parsing=True) as context:
        yield _HEAD
        yield from _section("launchpad", launchpad, context)
        for name in VERBS:
            command = launchpad.get_command(context, name)
            if command is not None:
                yield from _verb(f"launchpad {name}", command, context)


def _verb(title: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    name = title.rpartition(" ")[2]
    with command.make_context(name, [], parent=parent, resilient_parsing=True) as context:
        yield from _section(title, command, context)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                if below is not None:
                    yield from _verb(f"{title} {name}", below, context)


def _section(title: str, command: click.Command, context: click.Context) -> Iterator[str]:
    context.terminal_width = 88
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    if context.parent is not None:
        # They are the same for all verbs.
        text = re.sub(r"\n\nConnection options:\n(?:  .*\n?)+", "\n", text)
    yield f"## {title}\n\n```text\n{text.strip()}\n```\n"


def main() -> int:
    """Write the page, or compare it; the exit code."""
    text = render()
    if sys.argv[1:] == ["--check"]:
        return int(not PAGE.exists() or PAGE.read_text() != text)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
