"""The cgroup directories of a node's containers, under version 1, 2, or both at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labtool.shell import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path("/sys/fs/cgroup")


def directories(name: str) -> Iterator[Path]:
    """The lab's directory in each hierarchy where there is one."""
    for hierarchy in (ROOT, *ROOT.iterdir()):
        if (hierarchy / name).is_dir() and (hierarchy / "cgroup.procs").exists():
            yield hierarchy / name


def thaw(name: str) -> None:
    """Frozen processes cannot be ended, not even by SIGKILL under version 1."""
    for top in directories(name):
        for state in top.rglob("freezer.state"):
            state.write_text("THAWED")
        for state in top.rglob("cgroup.freeze"):
            state.write_text("0")


def remove(name: str) -> None:
    """Remove the directories; they are busy for a moment after their processes were killed."""
    wait_until(lambda: _try_remove(name), seconds=5, what=f"cgroups of {name} are gone")


def _try_remove(name: str) -> bool:
    for top in tuple(directories(name)):
        inner = sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True)
        for path in (*inner, top):
            try:
                path.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return False
    return True
