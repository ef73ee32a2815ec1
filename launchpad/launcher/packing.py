"""A local file or directory as a tar archive, in pieces, for remote/push.sh.

The archive holds what push.sh describes: ``tree``, ``modes``, and at its end ``directories``.
Memory does not grow with the tree: a directory's names are held only while it is being read.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from launchpad.archive import DEPTH_LIMIT, Kind, Member, end, header, padding
from launchpad.command import quote_words, to_text
from launchpad.errors import ClientError
from launchpad.launcher.ignoring import Excludes, Ignoring
from launchpad.launcher.tally import Tally
from launchpad.printable import printable

_PIECE = 256 * 1024
_TREE = b"tree"

# What whoever fills a directory needs of it.
_OPEN = 0o700


class Packer:
    """Packs ``source``; ``tally`` counts while :meth:`pieces` is being read.

    ``ignoring``: None takes everything. ``on_progress`` is called after each piece of a file.
    """

    def __init__(
        self,
        source: Path,
        ignoring: Ignoring | None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self.tally = Tally()
        self._source = os.fsencode(source)
        self._ignoring = ignoring
        self._on_progress = on_progress
        self._written = 0

    def pieces(self) -> Iterator[bytes]:
        """The archive. Raises :class:`ClientError` for what cannot be read, or not as it was."""
        buffer = bytearray()
        for block in self._blocks():
            buffer += block
            self._written += len(block)
            if len(buffer) >= _PIECE:
                yield bytes(buffer)
                buffer.clear()
        yield bytes(buffer) + end(self._written)

    def _blocks(self) -> Iterator[bytes]:
        # What is said of directories grows with the tree, so it waits in files that have no name.
        with (
            _reading(self._source),
            tempfile.TemporaryFile() as directories,
            tempfile.TemporaryFile() as modes,
        ):
            status = os.stat(self._source)  # noqa: PTH116 # any bytes
            if not stat.S_ISDIR(status.st_mode):
                yield from self._file(self._source, _TREE, follow=True)
            else:
                for step in walk(self._source, self._ignoring):
                    name = b"/".join((_TREE, *step.parts))
                    if not step.is_directory:
                        yield from self._entry(step, name)
                    elif not step.leaving:
                        yield header(_directory(name, step.status))
                    else:
                        directories.write(header(_directory(name, step.status)))
                        mode = step.status.st_mode & 0o777
                        if mode | _OPEN != mode:
                            modes.write(quote_words([f"{mode:o}", name]) + b" ")
            directories.write(end(directories.tell()))
            yield from _copy(b"modes", modes)
            yield from _copy(b"directories", directories)

    def _entry(self, step: "Step", name: bytes) -> Iterator[bytes]:
        mode = step.status.st_mode
        if stat.S_ISREG(mode):
            yield from self._file(step.path, name, follow=False)
        elif stat.S_ISLNK(mode):
            self.tally.files += 1
            target = os.readlink(step.path)  # noqa: PTH115 # any bytes
            yield header(Member(Kind.SYMLINK, name, 0, 0o777, int(step.status.st_mtime), target))
        else:
            self.tally.left_out.add(f"{_shown(step.path)}: neither a file nor a link")

    def _file(self, path: bytes, name: bytes, *, follow: bool) -> Iterator[bytes]:
        # Non-blocking, in case it has become a FIFO meanwhile.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
        try:
            descriptor = os.open(path, flags)
        except FileNotFoundError:
            self.tally.left_out.add(f"{_shown(path)}: vanished before it was read")
            return
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                if follow:
                    raise ClientError(f"{_shown(path)} is neither a file nor a directory")
                self.tally.left_out.add(f"{_shown(path)}: neither a file nor a link")
                return
            self.tally.files += 1
            left = status.st_size
            yield header(_regular(name, status))
            while left:
                piece = file.read(min(left, _PIECE))
                if not piece:
                    raise ClientError(
                        f"{_shown(path)} became shorter while it was read",
                        details="nothing in the container was changed",
                        advice="push again when nobody writes to it, or leave it out: --exclude",
                    )
                left -= len(piece)
                self.tally.size += len(piece)
                yield piece
                self._on_progress()
            # What was appended meanwhile is not part of this copy.
            yield padding(status.st_size)


@dataclass(frozen=True, slots=True)
class Step:
    """An entry of a tree. ``parts``: its path below the root, none for the root itself.

    A directory comes twice: before what is in it, and ``leaving`` it.
    """

    path: bytes
    parts: tuple[bytes, ...]
    status: os.stat_result
    leaving: bool = False

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


def walk(root: bytes, ignoring: Ignoring | None) -> Iterator[Step]:
    """Everything in a directory that is not ignored, in the order of names. Raises OSError."""
    status = os.stat(root)  # noqa: PTH116 # any bytes
    stack = [_enter(Step(root, (), status), ignoring)]
    yield stack[-1][0]
    while stack:
        directory, entries = stack[-1]
        entry = next(entries, None)
        if entry is None:
            yield replace(directory, leaving=True)
            stack.pop()
            continue
        parts = (*directory.parts, entry.name)
        is_directory = entry.is_dir(follow_symlinks=False)
        if ignoring is not None and ignoring.ignores(parts, directory=is_directory):
            continue
        try:
            step = Step(entry.path, parts, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            continue  # a temporary file of somebody's
        yield step
        if step.is_directory:
            stack.append(_enter(step, ignoring))


def _enter(
    directory: Step, ignoring: Ignoring | None
) -> tuple[Step, Iterator["os.DirEntry[bytes]"]]:
    if len(directory.parts) > DEPTH_LIMIT:
        raise OSError(errno.ELOOP, "nested too deep", directory.path)
    with os.scandir(directory.path) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    if ignoring is not None:
        ignoring.enter(directory.parts, {entry.name for entry in entries})
    return directory, iter(entries)


def measure(source: Path, ignoring: Ignoring | None) -> int:
    """About how many bytes of files a :class:`Packer` will pack. Raises OSError."""
    if not source.is_dir():
        return source.stat().st_size
    steps = walk(os.fsencode(source), ignoring)
    return sum(step.status.st_size for step in steps if stat.S_ISREG(step.status.st_mode))


def make_ignoring(source: Path, excludes: Sequence[str], *, gitignore: bool) -> Ignoring | None:
    """What to leave behind of ``source``; a single file is never ignored."""
    rules = Excludes(excludes)
    return Ignoring(source.resolve(), rules, gitignore=gitignore) if source.is_dir() else None


def _copy(name: bytes, file: IO[bytes]) -> Iterator[bytes]:
    size = file.tell()
    yield header(Member(Kind.FILE, name, size))
    file.seek(0)
    while piece := file.read(_PIECE):
        yield piece
    yield padding(size)


def _directory(name: bytes, status: os.stat_result) -> Member:
    # Set-id bits are for the owner that somebody gave them to, who is another one over there.
    mode = status.st_mode & 0o777 | _OPEN
    return Member(Kind.DIRECTORY, name, 0, mode, int(status.st_mtime))


def _regular(name: bytes, status: os.stat_result) -> Member:
    return Member(Kind.FILE, name, status.st_size, status.st_mode & 0o777, int(status.st_mtime))


def _shown(path: bytes) -> str:
    return printable(to_text(path))


@contextmanager
def _reading(source: bytes) -> Iterator[None]:
    """Turn what reading local files raises into :class:`ClientError`."""
    try:
        yield
    except OSError as error:
        path = os.fsencode(error.filename) if isinstance(error.filename, bytes | str) else source
        raise ClientError(
            f"{_shown(path)} cannot be read: {error.strerror}",
            details="nothing in the container was changed",
            advice="leave it out with --exclude, or make it readable",
        ) from error
