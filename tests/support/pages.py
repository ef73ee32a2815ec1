"""Documentation that is executed: the commands of a page in one shell, on a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from support.markdown import Block, Command, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

COLUMNS, ROWS = 100, 40

# How long one command of a page may take (seconds).
PATIENCE = 90.0

_MARK = "\x1e"
ANYTHING = "…"

# What differs from run to run.
_VARIES = (
    (r"(?:launchpad-lab|/tmp/pytest|/tmp/launchpad)[^\s'\"]*", "PATH"),
    (r"\b([A-Za-z0-9][A-Za-z0-9._]*)-[a-z2-7]{6}\b", r"\1-xxxxxx"),
    (r"\bPID \d+", "PID N"),
    # A shell in a loop has a child at times.
    (r"\b\d+ process(?:es)? ended \([^)]*\)", "PROCESSES ended"),
    (r"\b[0-9a-f]{40}\b", "COMMIT"),
    (r"\bSHA256:[A-Za-z0-9+/]+", "SHA256:KEY"),
    (r"\b\d{4}-\d\d-\d\d(?:T[\d:]+Z)?", "DATE"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "ADDRESS"),
    (r"\b\d\d:\d\d(?::\d\d)?\b", "CLOCK"),
    (r"\b[\d.]+ ?[kMGT]?i?B(?:/s)?\b|\b\d+(?:\.\d)?[KMGT]\b", "SIZE"),
    (r"\b\d+(?:\.\d+)?%", "N%"),
    # How far examples/train.py has come.
    (r"\bepoch \d+ step +\d+/\d+ loss [\d.]+", "PROGRESS"),
    (r"\b\d+(?:\.\d+)? ?(?:ms|min|[smhd])\b(?: \d+ ?[smh]\b)?", "TIME"),
    (r"\s+", " "),
)


def normal(line: str) -> str:
    """``line`` without what differs from run to run, and without its exact blanks."""
    for pattern, replacement in _VARIES:
        line = re.sub(pattern, replacement, line)
    return line.strip()


def is_like(expected: list[str], printed: list[str]) -> bool:
    """Whether what was printed is what the page says. ``…`` stands for any text, or any lines."""
    if not expected:
        return not printed
    first, *rest = expected
    if first.strip() == ANYTHING:
        return any(is_like(rest, printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and _is_like_line(first, printed[0]) and is_like(rest, printed[1:])


def _is_like_line(expected: str, printed: str) -> bool:
    pieces = [re.escape(normal(piece)) for piece in expected.split(ANYTHING)]
    return re.fullmatch(r"\s*.*\s*".join(pieces), normal(printed)) is not None


def screen(data: str) -> list[str]:
    """What a terminal shows in the end, line by line."""
    lines: list[list[str]] = [[]]
    row = column = 0
    for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|[\s\S]", data):
        if piece == "\n":
            row, column = row + 1, 0
            while row >= len(lines):
                lines.append([])
        elif piece == "\r":
            column = 0
        elif piece.startswith("\x1b["):
            count = int(re.sub(r"\D", "", piece[2:-1].split(";")[0]) or "0")
            if piece[-1] == "A":
                row = max(0, row - max(1, count))
            elif piece[-1] == "K":
                del lines[row][0 if count == 2 else column :]
        elif piece.isprintable() or piece == "\t":
            line = lines[row]
            line.extend(" " * (column - len(line)))
            line[column : column + 1] = [piece]
            column += 1
    text = ["".join(line).rstrip() for line in lines]
    while text and not text[-1]:
        text.pop()
    return text


@dataclass(slots=True)
class Terminal:
    """A bash whose commands print on a terminal and have nothing to read."""

    environment: Mapping[str, str]
    directory: Path
    _code: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _screen: int = -1
    _rest: str = ""

    def __enter__(self) -> Self:
        ours, theirs = pty.openpty()
        self._screen = ours
        words = ["bash", "--noprofile", "--norc"]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=theirs,
            stderr=theirs,
            env={**self.environment, "COLUMNS": str(COLUMNS), "LINES": str(ROWS)},
            cwd=self.directory,
            start_new_session=True,
        )
        os.close(theirs)
        return self

    def __exit__(self, *_error: object) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)
        os.close(self._screen)

    def run(self, command: str, patience: float = PATIENCE) -> tuple[int, list[str]]:
        """The exit code of ``command`` and what the terminal shows of it."""
        assert self._process is not None
        assert self._process.stdin is not None
        # As typed: $? is that of the command before.
        line = f"(exit {self._code}); eval {shlex.quote(command)} </dev/null\n"
        line += f"printf '{_MARK}%s{_MARK}' $?\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        data, code = self._read_to_mark(command, patience)
        self._code = code
        return code, screen(data.replace("\r\n", "\n"))

    def _read_to_mark(self, command: str, patience: float) -> tuple[str, int]:
        ends = time.monotonic() + patience
        data = self._rest
        while True:
            found = re.search(f"{_MARK}(\\d+){_MARK}", data)
            if found is not None:
                self._rest = data[found.end() :]
                return data[: found.start()], int(found[1])
            left = ends - time.monotonic()
            if not select.select([self._screen], [], [], max(0.0, left))[0]:
                raise AssertionError(f"no end after {patience:g} s: {command}\n{data}")
            data += os.read(self._screen, 65536).decode("utf-8", "replace")


@dataclass(slots=True)
class Page:
    """A page, and what its commands printed where that is not what it says."""

    path: Path
    differences: list[tuple[Command, list[str]]] = field(default_factory=list)
    _others: list[tuple[Command, list[str]]] = field(default_factory=list)

    def execute(self, terminal: Terminal, home: Path) -> None:
        """Run its commands in order; AssertionError for one that ends as it should not."""
        for block in blocks(self.path):
            if block.language == "setup":
                code, printed = terminal.run(block.text)
                assert code == 0, f"{self.path}:{block.line}: {block.text}\n{printed}"
            elif block.mark[0] == "file":
                _write(block, home)
            elif block.is_run:
                self._run(block, terminal)

    def _run(self, block: Block, terminal: Terminal) -> None:
        commands = block.commands()
        for number, command in enumerate(commands):
            code, printed = terminal.run(command.text)
            following = commands[number + 1].text if number + 1 < len(commands) else ""
            is_last = number + 1 == len(commands)
            wanted = int(block.mark[1]) if block.mark[0] == "code" and is_last else 0
            where = f"{self.path}:{command.line}: {command.text}"
            # What is asked for by the next command is told by its output.
            assert code == wanted or "$?" in following, (
                f"{where}\nended with {code}:\n" + "\n".join(printed)
            )
            if command.output and not is_like(command.output, printed):
                self.differences.append((command, printed))
            elif command.output and ANYTHING not in "".join(command.output):
                self._others.append((command, printed))

    def report(self) -> str:
        """The differences, for a person."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for command, printed in self.differences:
            yield f"{self.path}:{command.line}: $ {command.text}"
            yield from (f"  page    | {line}" for line in command.output)
            yield from (f"  printed | {line}" for line in printed)

    def update(self) -> None:
        """Write what was printed into the page: all of it, so that ids agree."""
        lines = self.path.read_text().splitlines()
        everything = sorted([*self.differences, *self._others], key=lambda pair: pair[0].line)
        for command, printed in reversed(everything):
            first = command.line + command.text.count("\n")
            lines[first : first + len(command.output)] = printed
        self.path.write_text("".join(f"{line}\n" for line in lines))


def _write(block: Block, home: Path) -> None:
    name = block.mark[1]
    path = home / name.removeprefix("~/") if name.startswith("~/") else home / name
    assert path.resolve().is_relative_to(home), name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.text)
