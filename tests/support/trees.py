"""Directory trees with everything that a file system allows, for tests of copying."""

# Names are bytes here, which pathlib does not have.
# ruff: noqa: PTH101, PTH102, PTH115, PTH123, PTH208, PTH211

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from pathlib import Path

# What has surprised copying programs before; the rest is whatever bytes hypothesis finds.
_SURPRISES = [
    b"-rf",
    b"--",
    b"*",
    b"?",
    b"[a]",
    b" ",
    b"a b",
    b"\n",
    b"x\n",
    b"\nx",
    b"\\",
    b"a\\nb",
    b"'",
    b'"',
    b"$(id)",
    b"`id`",
    b"..a",
    b"...",
    b".hidden",
    b".launchpad-push",
    b"~",
    b"#x",
    b"\xff\xfe",
    "\u00e9\u4e2d".encode(),
    b"tree",
    b"directories",
    b"n" * 255,
    b"\x7f\x01\x1b[31m",
    b":x",
    b"a:b",
]


@dataclass(frozen=True)
class File:
    pattern: bytes
    size: int
    mode: int
    mtime: int


@dataclass(frozen=True)
class Link:
    target: bytes


@dataclass(frozen=True)
class Directory:
    entries: tuple[tuple[bytes, Node], ...]
    mode: int
    mtime: int


Node = File | Link | Directory

_NAMES = st.one_of(
    st.sampled_from(_SURPRISES),
    st.binary(min_size=1, max_size=40)
    .map(lambda data: data.replace(b"\0", b"").replace(b"/", b"_"))
    .filter(lambda name: name not in {b"", b".", b".."}),
)
# busybox tar knows no time before 1970.
_TIMES = st.one_of(st.integers(0, 2**31), st.sampled_from([0, 1, 2**31, 2**33 - 1]))
_FILES = st.builds(
    File,
    st.binary(min_size=1, max_size=64),
    st.one_of(st.integers(0, 64), st.sampled_from([0, 511, 512, 513, 10_240, 300_000])),
    st.one_of(st.sampled_from([0o644, 0o755, 0o600, 0, 0o777, 0o444]), st.integers(0, 0o777)),
    _TIMES,
)
_LINKS = st.builds(
    Link,
    st.one_of(
        st.sampled_from([b"..", b"../..", b"/", b"/etc/passwd", b"nowhere", b".", b"t" * 300]),
        _NAMES,
    ),
)


def _directories(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Directory]:
    entries = st.dictionaries(_NAMES, nodes, max_size=5).map(lambda found: tuple(found.items()))
    modes = st.one_of(st.sampled_from([0o755, 0o700, 0o555, 0, 0o777]), st.integers(0, 0o777))
    return st.builds(Directory, entries, modes, _TIMES)


def trees() -> st.SearchStrategy[Directory]:
    """Directories with directories, files and links in them, of any name, mode and time."""
    leaves: st.SearchStrategy[Node] = st.one_of(_FILES, _LINKS)
    return _directories(st.recursive(leaves, _directories, max_leaves=12))


def make(tree: Directory, path: Path | bytes) -> None:
    """Make the tree at ``path``, which must not exist."""
    place = os.fsencode(path)
    os.mkdir(place, 0o700)
    for name, node in tree.entries:
        below = place + b"/" + name
        match node:
            case File(pattern, size, mode, mtime):
                with open(below, "wb") as file:
                    file.write((pattern * (size // len(pattern) + 1))[:size])
                os.chmod(below, mode)
                os.utime(below, (mtime, mtime))
            case Link(target):
                os.symlink(target, below)
            case Directory():
                make(node, below)
    os.chmod(place, tree.mode)
    os.utime(place, (tree.mtime, tree.mtime))


def look(path: Path | bytes) -> dict[bytes, tuple[object, ...]]:
    """Everything that a copy must have, by path: kind, mode, time, contents or target."""
    found: dict[bytes, tuple[object, ...]] = {}
    _look(os.fsencode(path), b"", found)
    return found


def _look(path: bytes, name: bytes, found: dict[bytes, tuple[object, ...]]) -> None:
    status = os.lstat(path)
    mode, mtime = status.st_mode & 0o7777, int(status.st_mtime)
    if stat.S_ISLNK(status.st_mode):
        found[name] = ("link", os.readlink(path))
    elif stat.S_ISDIR(status.st_mode):
        found[name] = ("directory", mode, mtime)
        for entry in os.listdir(path):
            _look(path + b"/" + entry, name + b"/" + entry, found)
    else:
        assert stat.S_ISREG(status.st_mode), path
        with open(path, "rb") as file:
            found[name] = ("file", mode, mtime, file.read())
