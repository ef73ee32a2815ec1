"""Pages of documentation as what can be executed: blocks, commands, what they should print.

A block ```` ```console ```` holds commands behind ``$ `` (going on behind ``> ``) and, below each,
what it prints. A comment right above a block says what is special about it:

    <!-- file: ~/proj/train.py -->   the block is the content of that file
    <!-- not run: WHY -->            it cannot be executed here
    <!-- code: 3 -->                 the last command of the block ends with that code

Blocks of text (```` ```text ````) are there to be read. What a reader has, and a test has not, is
prepared by ``<!-- setup: COMMAND -->``, a line of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READ_ONLY = frozenset({"text", ""})
_SETUP = re.compile(r"<!-- setup: (?P<command>.+) -->")
_MARK = re.compile(r"<!-- (?P<kind>file|not run|code): (?P<value>.+) -->")


@dataclass(slots=True)
class Command:
    """One command. ``line``: where it stands; ``output``: what the page says that it prints."""

    line: int
    text: str
    output: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    """``line``: of its first line, counted from 1. ``mark``: kind and value of the comment."""

    page: Path
    line: int
    language: str
    lines: list[str]
    mark: tuple[str, str] = ("", "")

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def is_run(self) -> bool:
        return self.language == "console" and self.mark[0] != "not run"

    def commands(self) -> list[Command]:
        """The commands of a console block."""
        found: list[Command] = []
        for number, line in enumerate(self.lines, self.line):
            if line.startswith("$ "):
                found.append(Command(number, line[2:]))
            elif line.startswith("> ") and found and not found[-1].output:
                found[-1].text += f"\n{line[2:]}"
            elif found:
                found[-1].output.append(line)
            else:
                raise AssertionError(f"{self.page}:{number}: output before any command")
        return found


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return list(_blocks(page, page.read_text().splitlines()))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    current: Block | None = None
    indent = ""
    for number, line in enumerate(lines, 1):
        fence = re.fullmatch(r"(\s*)```(\w*)", line)
        if current is not None:
            if line.strip() == "```":
                yield current
                current = None
            else:
                current.lines.append(line.removeprefix(indent))
        elif setup := _SETUP.fullmatch(line):
            yield Block(page, number, "setup", [setup["command"]])
        elif fence is not None:
            indent = fence[1]
            mark = _MARK.fullmatch(lines[number - 2].strip()) if number > 1 else None
            kind = (mark["kind"], mark["value"]) if mark else ("", "")
            current = Block(page, number + 1, fence[2], [], kind)
    assert current is None, f"{page}: a block without an end"
