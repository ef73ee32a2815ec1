"""Files, links and directories put in place below an open directory, never through a link.

All of it is relative to a directory's descriptor (openat(2) and its kin), and nothing is seen
half-made: a file is written without a name, or under one that nobody looks for, and then renamed.
"""

import os
import secrets
import stat
from contextlib import suppress

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NewFile:
    """A file that nobody sees before it is whole."""

    def __init__(self, directory: int, *, nameless: bool) -> None:
        self._directory = directory
        self._name: bytes | None = None if nameless else _temporary_name()
        flags = os.O_WRONLY | os.O_CLOEXEC
        if self._name is None:
            self.descriptor = os.open(b".", flags | os.O_TMPFILE, 0o600, dir_fd=directory)
        else:
            flags |= os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self.descriptor = os.open(self._name, flags, 0o600, dir_fd=directory)

    def publish(self, name: bytes) -> None:
        """Give it its name, in the place of whatever file has it now."""
        if self._name is None:
            try:
                self._link(name)
            except FileExistsError:
                self._name = _temporary_name()
                self._link(self._name)
        if self._name is not None:
            os.rename(self._name, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            self._name = None
        self.close()

    def close(self) -> None:
        """Away with it, unless it has been published."""
        if self._name is not None:
            with suppress(OSError):
                os.unlink(self._name, dir_fd=self._directory)
            self._name = None
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _link(self, name: bytes) -> None:
        # open(2) on O_TMPFILE: the way to a name that needs no privilege.
        source = f"/proc/self/fd/{self.descriptor}"
        os.link(source, name, dst_dir_fd=self._directory, follow_symlinks=True)


def _temporary_name() -> bytes:
    return f".launchpad-pull-{secrets.token_hex(8)}".encode()


def open_directory(name: bytes, here: int) -> int:
    """A descriptor of the directory ``name``. Raises OSError: ELOOP or ENOTDIR for a link."""
    return os.open(name, _DIRECTORY, dir_fd=here)


def open_named(path: str | os.PathLike[str]) -> int:
    """A descriptor of a directory that the user named, which may be a link to one."""
    return os.open(path, _DIRECTORY & ~os.O_NOFOLLOW)


def make_symlink(target: bytes, name: bytes, here: int, mtime: int) -> None:
    """A link called ``name``, in the place of whatever file has that name. Raises OSError."""
    temporary = _temporary_name()
    os.symlink(target, temporary, dir_fd=here)
    _take_place(temporary, name, here)
    with suppress(OSError, OverflowError):
        os.utime(name, (mtime, mtime), dir_fd=here, follow_symlinks=False)


def make_hard_link(root: int, source: tuple[bytes, ...], name: bytes, here: int) -> bool:
    """Another name for the file or link at ``source`` below ``root``.

    False where that is neither. Raises FileNotFoundError where nothing is there, and OSError.
    """
    descriptor = os.dup(root)
    temporary = _temporary_name()
    try:
        for part in source[:-1]:
            below = open_directory(part, descriptor)
            os.close(descriptor)
            descriptor = below
        mode = os.stat(source[-1], dir_fd=descriptor, follow_symlinks=False).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            return False
        os.link(
            source[-1], temporary, src_dir_fd=descriptor, dst_dir_fd=here, follow_symlinks=False
        )
    finally:
        os.close(descriptor)
    _take_place(temporary, name, here)
    return True


def _take_place(temporary: bytes, name: bytes, here: int) -> None:
    try:
        os.rename(temporary, name, src_dir_fd=here, dst_dir_fd=here)
    finally:
        # rename(2) does nothing where both are names of one file already.
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=here)


def can_be_nameless(directory: int) -> bool:
    """Whether the file system makes files without a name, and gives them one later."""
    if not hasattr(os, "O_TMPFILE"):
        return False
    name = _temporary_name()
    try:
        file = NewFile(directory, nameless=True)
        try:
            file.publish(name)
        finally:
            file.close()
        os.unlink(name, dir_fd=directory)
    except OSError:
        return False
    return True


def set_time(descriptor: int, mtime: int) -> None:
    # A time that this file system cannot hold is not worth a failure.
    with suppress(OSError, OverflowError):
        os.utime(descriptor, (mtime, mtime))
