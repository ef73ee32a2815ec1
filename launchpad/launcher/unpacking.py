"""What remote/pull.sh sends, put in place on this machine: below one directory and nowhere else.

The bytes come from a container and may be hostile. Every directory on the way is opened relative
to the one above it without following links (openat(2), O_NOFOLLOW), so that no link, sent or found,
leads anywhere. A file is written without a name and gets its name when it is whole.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from launchpad.archive import DamagedArchive, Kind, Member, safe_parts
from launchpad.command import to_text
from launchpad.errors import ClientError, ContainerError
from launchpad.launcher.ignoring import Excludes
from launchpad.launcher.placing import (
    NewFile,
    can_be_nameless,
    make_hard_link,
    make_symlink,
    open_directory,
    open_named,
    set_time,
)
from launchpad.launcher.tally import Tally
from launchpad.printable import printable

# What a pull leaves free on the disk, however much the container sends: this, or a twentieth of it.
RESERVE = 64 * 1024 * 1024
RESERVED_FILES = 1000


@dataclass(slots=True)
class _Level:
    """A directory on the way to where we are. ``final``: how it is to be once it is complete."""

    name: bytes
    descriptor: int
    final: Member | None


class Unpacker:
    """Takes members and data as :class:`launchpad.archive.Reader` gives them.

    ``destination``: gets the contents, whether or not it exists, but for ``excludes``. Use it with
    ``with``; :meth:`finish` when the archive is complete. Raises :class:`ClientError` where this
    machine refuses, and :class:`ContainerError` where the container sent what must not be.
    """

    def __init__(
        self,
        destination: Path,
        *,
        directory: bool,
        excludes: Excludes | None = None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self.tally = Tally()
        self._destination = destination
        self._is_tree = directory
        self._excludes = excludes or Excludes(())
        self._on_progress = on_progress
        self._levels: list[_Level] = []
        self._file: NewFile | None = None
        self._member: Member | None = None
        self._name = b""
        self._left = 0
        self._nameless = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything; a file that is not whole vanishes."""
        if self._file is not None:
            self._file.close()
            self._file = None
        while self._levels:
            os.close(self._levels.pop().descriptor)

    def take(self, item: Member | bytes) -> None:
        """The next member, or the next piece of the last one's data."""
        with self._translated():
            if isinstance(item, bytes):
                self._data(item)
            else:
                self._begin(item)

    def finish(self) -> None:
        """The archive was whole: directories get their modes and times."""
        with self._translated():
            while self._levels:
                self._leave()

    def _begin(self, member: Member) -> None:
        self._member = member
        self._check_room(member)
        if not self._is_tree:
            if member.kind is not Kind.FILE or self.tally.files:
                raise DamagedArchive("more than the one file that was asked for")
            self._open_destination(self._destination.parent)
            self._begin_file(member, os.fsencode(self._destination.name))
            return
        parts = safe_parts(member.name)
        is_directory = member.kind is Kind.DIRECTORY
        if not parts:
            if not is_directory:
                raise DamagedArchive("a file in the place of the directory that was asked for")
            self._open_destination(self._destination, member)
            return
        if not self._levels:
            self._open_destination(self._destination)
        if self._excludes.ignores(parts, directory=is_directory):
            self._skip(member)
            return
        self._go_to(parts[:-1])
        self._put(member, parts)

    def _put(self, member: Member, parts: tuple[bytes, ...]) -> None:
        here, name = self._levels[-1].descriptor, parts[-1]
        match member.kind:
            case Kind.FILE:
                self._begin_file(member, name)
            case Kind.DIRECTORY:
                self._enter(name, member)
            case Kind.SYMLINK:
                self._symlink(member, parts, here)
            case Kind.HARD_LINK:
                self._hard_link(member, here, name)
            case Kind.CHARACTER_DEVICE | Kind.BLOCK_DEVICE | Kind.FIFO:
                kind = member.kind.name.lower().replace("_", " ")
                self.tally.left_out.add(f"{_shown(member.name)}: a {kind}")

    def _skip(self, member: Member) -> None:
        self._left = member.size

    # Files.

    def _begin_file(self, member: Member, name: bytes) -> None:
        self.tally.files += 1
        self._file = NewFile(self._levels[-1].descriptor, nameless=self._nameless)
        self._name, self._left = name, member.size
        if not member.size:
            self._end_file()

    def _data(self, data: bytes) -> None:
        self._left -= len(data)
        if self._file is None:
            return
        view = memoryview(data)
        while view:
            view = view[os.write(self._file.descriptor, view) :]
        self.tally.size += len(data)
        self._on_progress()
        if not self._left:
            self._end_file()

    def _end_file(self) -> None:
        file, member = self._file, self._member
        if file is None or member is None:
            return
        os.fchmod(file.descriptor, member.mode & 0o777)
        set_time(file.descriptor, member.mtime)
        try:
            file.publish(self._name)
        except IsADirectoryError:
            raise self._conflict(self._name, "is a directory here, and a file there") from None
        finally:
            file.close()
            self._file = None

    # Links.

    def _symlink(self, member: Member, parts: tuple[bytes, ...], here: int) -> None:
        if not member.link or b"\0" in member.link:
            raise DamagedArchive("a link that leads nowhere")
        self.tally.files += 1
        if leads_out(parts, member.link):
            self.tally.outward.add(f"{_shown(member.name)} -> {_shown(member.link)}")
        try:
            make_symlink(member.link, parts[-1], here, member.mtime)
        except IsADirectoryError:
            raise self._conflict(parts[-1], "is a directory here, and a link there") from None

    def _hard_link(self, member: Member, here: int, name: bytes) -> None:
        """Another name for a file of this archive: only one that lies here already can be meant."""
        source = safe_parts(member.link)
        if not source:
            raise DamagedArchive("a hard link to a directory")
        if self._excludes.ignores(source, directory=False):
            self.tally.left_out.add(f"{_shown(member.name)}: another name for a file left out")
            return
        self.tally.files += 1
        try:
            made = make_hard_link(self._levels[0].descriptor, source, name, here)
        except IsADirectoryError:
            raise self._conflict(name, "is a directory here, and a file there") from None
        except FileNotFoundError:
            made = False
        if not made:
            raise DamagedArchive("a hard link to what was not sent")

    # Directories.

    def _open_destination(self, path: Path, member: Member | None = None) -> None:
        if self._levels:
            return
        made = not path.exists()
        if made:
            path.mkdir(parents=True, mode=0o700 if member else 0o777)
        # The destination itself may be a link: it was named by the user.
        descriptor = open_named(path)
        self._levels.append(_Level(b"", descriptor, member if made else None))
        self._nameless = can_be_nameless(descriptor)

    def _go_to(self, parts: tuple[bytes, ...]) -> None:
        """Make the directory at ``parts`` the last level; those on the way may be missing."""
        shared = 0
        for level, part in zip(self._levels[1:], parts, strict=False):
            if level.name != part:
                break
            shared += 1
        while len(self._levels) > shared + 1:
            self._leave()
        for part in parts[shared:]:
            self._enter(part, None)

    def _enter(self, name: bytes, member: Member | None) -> None:
        here = self._levels[-1].descriptor
        made = False
        with suppress(FileExistsError):
            os.mkdir(name, 0o700 if member else 0o777, dir_fd=here)
            made = True
        try:
            descriptor = open_directory(name, here)
        except OSError as error:
            if error.errno in {errno.ENOTDIR, errno.ELOOP}:
                what = "is a link or a file here, and a directory there"
                raise self._conflict(name, what) from None
            raise
        # A directory that was here before keeps its mode: it may be one's own home.
        self._levels.append(_Level(name, descriptor, member if made else None))

    def _leave(self) -> None:
        level = self._levels.pop()
        try:
            if level.final is not None:
                os.fchmod(level.descriptor, level.final.mode & 0o777)
                set_time(level.descriptor, level.final.mtime)
        finally:
            os.close(level.descriptor)

    # What must not be.

    def _check_room(self, member: Member) -> None:
        """A container can send without end: something of the disk stays free."""
        if not self._levels:
            return
        room = os.fstatvfs(self._levels[-1].descriptor)
        free = room.f_bavail * room.f_frsize
        reserve = min(RESERVE, room.f_blocks * room.f_frsize // 20)
        reserved_files = min(RESERVED_FILES, room.f_files // 20)
        if free - member.size < reserve or room.f_favail < reserved_files:
            raise ClientError(
                f"the disk of {_shown(os.fsencode(self._destination))} has no room for more",
                details=f"{_shown(member.name)} has {member.size} bytes; free are {free}",
                advice="what was pulled so far is whole; make room, or leave things out: --exclude",
            )

    def _path(self, name: bytes) -> str:
        base = self._destination if self._is_tree else self._destination.parent
        parts = [os.fsencode(base), *(level.name for level in self._levels[1:]), name]
        return _shown(b"/".join(parts))

    def _conflict(self, name: bytes, what: str) -> ClientError:
        return ClientError(
            f"{self._path(name)} {what}",
            details="neither takes the other's place",
            advice="remove it, or pull to another directory",
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DamagedArchive as error:
            raise hostile(error, self._member, self._destination) from error
        except OSError as error:
            name = self._member.name if self._member else b""
            place = os.fsencode(self._destination) + b"/" + name.removeprefix(b"./")
            raise ClientError(
                f"{_shown(place)} cannot be written: {error.strerror}",
                advice="what was pulled so far is whole",
            ) from error


def hostile(error: DamagedArchive, member: Member | None, destination: Path) -> ContainerError:
    """The error for an archive that cannot be meant well. ``member``: where it was found."""
    return ContainerError(
        f"the container sent what no honest tar would: {error}",
        details=_shown(member.name) if member else "",
        advice=f"nothing was written outside of {_shown(os.fsencode(destination))};"
        " look at what the container's tar is",
    )


def leads_out(parts: tuple[bytes, ...], link: bytes) -> bool:
    """Whether a link at ``parts`` (below some root) points out of the root, judging by its text."""
    if link.startswith(b"/"):
        return True
    depth = len(parts) - 1
    for part in link.split(b"/"):
        if part == b"..":
            depth -= 1
        elif part not in {b"", b"."}:
            depth += 1
        if depth < 0:
            return True
    return False


def _shown(path: bytes) -> str:
    return printable(to_text(path))
