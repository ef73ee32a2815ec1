"""What ``push`` and ``pull`` have in common: TARGET:PATH, the progress bar, the last lines."""

import os
import sys
import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from launchpad.cli.common import Session, say
from launchpad.errors import UsageError
from launchpad.job import check_container_path
from launchpad.target import Target, parse_target, split_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from launchpad.launcher.transfer import Transferred

# How often the bar is drawn at most (seconds).
_STEP = 0.1


@dataclass(frozen=True, slots=True)
class RemotePath:
    """``TARGET:PATH`` as it was written, and what it means."""

    word: str
    target: Target
    path: str
    user: str | None


def remote_path(session: Session, text: str, verb: str) -> RemotePath:
    """What ``TARGET:PATH`` means; raises :class:`UsageError` with the form that was meant."""
    divided = split_path(text)
    if divided is None:
        raise UsageError(f"{text!r} is no TARGET:PATH", advice=_meant(text, verb))
    word, path = divided
    target = parse_target(word, session.config.aliases())
    check_container_path("PATH", path)
    return RemotePath(word, target, path, session.config.settings_for(word).user)


def _meant(text: str, verb: str) -> str:
    host, colon, rest = text.rpartition(":")
    if colon and host and rest and not rest.isdigit():
        return f"a path in the container is absolute, or begins with ~/: {host}:'~/{rest}'"
    if verb == "push":
        return "launchpad push SRC TARGET:/PATH, for instance pve1:101:/workspace"
    return "launchpad pull TARGET:/PATH DEST, for instance pve1:101:/workspace/results results"


def check_order(source: str, destination: str, verb: str) -> None:
    """Raise :class:`UsageError` where the two words stand the other way round."""
    remote, local = (destination, source) if verb == "push" else (source, destination)
    if split_path(remote) is None and split_path(local) is not None:
        other = "pull" if verb == "push" else "push"
        raise UsageError(
            f"{verb} copies {'to' if verb == 'push' else 'from'} a container,"
            " and its words stand the other way round",
            advice=f"launchpad {other} {source} {destination}",
        )


class Bar(AbstractContextManager["Bar"]):
    """A progress bar on stderr, if that is a terminal: bytes, rate, remaining time."""

    def __init__(self, session: Session, label: str) -> None:
        self._stack = ExitStack()
        self._update: Callable[[int, int | None], None] | None = None
        self._due = 0.0
        self._session = session
        self._label = label
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self.enabled = terminal and os.environ.get("TERM") != "dumb"

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Take it away; may be called twice."""
        self._stack.close()
        self._update = None

    def show(self, done: int, total: int | None) -> None:
        """So many bytes have been copied, of ``total`` if that is known."""
        now = time.monotonic()
        if not self.enabled or now < self._due:
            return
        self._due = now + _STEP
        if self._update is None:
            self._begin()
        if self._update is not None:
            self._update(done, total)

    def _begin(self) -> None:
        # Late: rich takes a tenth of a second, and only a terminal needs it.
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        console = Console(file=sys.stderr, no_color=not self._session.colour(sys.stderr))
        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        task = progress.add_task(self._label, total=None)
        self._update = lambda done, total: progress.update(task, completed=done, total=total)
        self._stack.enter_context(progress)


def finish(done: "Transferred", said: str, where: str) -> None:
    """The last lines: ``pushed 1,000 files, 20.0 MB to pve1:101:/w   0.9 s``."""
    from launchpad.printable import printable
    from launchpad.wording import duration_words

    for line in done.remarks:
        say(f"launchpad: {line}")
    files = "1 file" if done.tally.files == 1 else f"{done.tally.files:,} files"
    size = size_words(done.tally.size)
    say(f"{said} {files}, {size} {printable(where)}   {duration_words(done.elapsed)}")


def size_words(size: int) -> str:
    """A number of bytes for people, in powers of 1000: ``20.0 MB``."""
    value = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:  # noqa: PLR2004
            return f"{size} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
