"""Logs on stdout: raw bytes to a pipe or a file, made safe for a terminal.

Messages go to stderr, and never into the middle of a line that a terminal shows.
"""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from launchpad.cli.common import Session, say
from launchpad.cli.errors import show_error
from launchpad.errors import LaunchpadError
from launchpad.index import Entry
from launchpad.job import JobId
from launchpad.state import Job, is_ended
from launchpad.terminal import TerminalFilter
from launchpad.wording import end_sentence

_COLOURS = (36, 33, 32, 35, 34, 31)  # SGR 36: cyan, …


@dataclass(slots=True)
class LogView:
    """See :class:`launchpad.launcher.tail.LogView`. ``prefixes``: what stands before each line."""

    session: Session
    raw: bool = False
    prefixes: Mapping[JobId, bytes] = field(default_factory=dict)
    _stdout: BinaryIO = field(default_factory=lambda: sys.stdout.buffer)
    _filters: dict[JobId, TerminalFilter] = field(default_factory=dict)
    _current: JobId | None = None
    # Whether a terminal shows what we write, and must be protected.
    _is_safe: bool = field(init=False)

    def __post_init__(self) -> None:
        self._is_safe = not self.raw and self._stdout.isatty()

    def write(self, entry: Entry, data: bytes) -> None:
        """The log of that job goes on with ``data``."""
        self._current = entry.id
        text = self._encode(self._filter(entry.id).feed(data)) if self._is_safe else data
        if prefix := self.prefixes.get(entry.id):
            lines = text.split(b"\n")
            rest = lines.pop()
            text = b"".join(b"%s%s\n" % (prefix, line) for line in lines)
            text += prefix + rest if rest else b""
        self._write(text)

    def idle(self) -> None:
        """Nothing has come for a moment: show what is unfinished."""
        if self._current is not None and self._is_safe:
            self._write(self._encode(self._filter(self._current).flush()))

    def notice(self, text: str) -> None:
        """A line about the follow itself."""
        self._leave_line()
        say(text)

    def ended(self, entry: Entry, job: Job) -> None:
        """The job has ended, and its log was shown to the last byte."""
        self.finish(entry.id)
        said = end_sentence(job)
        say(said if is_ended(job.state) else f"launchpad: {said}")

    def failed(self, entry: Entry, error: LaunchpadError) -> None:
        """One of several jobs cannot be followed (any more)."""
        self.finish(entry.id)
        show_error(error)

    def finish(self, job: JobId) -> None:
        """The last of a log has come: show what is held back, and end its line on a terminal."""
        held = self._filters.get(job)
        if held is None:
            return
        text = held.finish()
        in_line = held.in_line
        del self._filters[job]
        if text and (prefix := self.prefixes.get(job)):
            self._write(prefix)
        self._write(self._encode(text) + (b"\n" if in_line else b""))

    def _leave_line(self) -> None:
        if self._current is not None and self._is_safe:
            self._write(self._encode(self._filter(self._current).break_line()))

    def _filter(self, job: JobId) -> TerminalFilter:
        if job not in self._filters:
            self._filters[job] = TerminalFilter(
                columns=shutil.get_terminal_size().columns,
                colour=self.session.colour(sys.stdout),
            )
        return self._filters[job]

    def _encode(self, text: str) -> bytes:
        return text.encode(sys.stdout.encoding or "utf-8", "replace")

    def _write(self, data: bytes) -> None:
        if data:
            self._stdout.write(data)
            self._stdout.flush()


def job_prefixes(
    session: Session, entries: list[Entry], *, wanted: bool | None
) -> dict[JobId, bytes]:
    """What stands before the lines of several jobs: their ids, coloured on a terminal.

    ``wanted`` None: on a terminal only.
    """
    if not (sys.stdout.isatty() if wanted is None else wanted):
        return {}
    width = max(len(entry.id.text) for entry in entries)
    prefixes = {}
    for number, entry in enumerate(entries):
        word = f"{entry.id.text:<{width}} | "
        if session.colour(sys.stdout):
            word = f"\x1b[{_COLOURS[number % len(_COLOURS)]}m{word}\x1b[0m"
        prefixes[entry.id] = word.encode()
    return prefixes
