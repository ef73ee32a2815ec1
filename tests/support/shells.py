"""The shells that remote scripts must work under, each with nothing but its own tools on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

from launchpad.scripts import CONTAINER_PATH

ShellName = Literal["bash", "dash", "busybox"]
SHELL_NAMES: tuple[ShellName, ...] = ("bash", "dash", "busybox")

# What Debian has and busybox has not, and what must not be found by accident: everything that
# would make a test pass on a machine that is richer than a container.
_NOT_IN_DASH_CONTAINER = {"bash", "rbash", "busybox"}


@dataclass(frozen=True, slots=True)
class Shell:
    """One kind of container userland: ``path`` is a directory that holds all its programs."""

    name: ShellName
    path: Path

    @property
    def argv(self) -> tuple[str, ...]:
        """The words that start it."""
        return (str(self.path / ("bash" if self.name == "bash" else "sh")),)

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": str(self.path), "LC_ALL": "C"}

    def words(self, words: Sequence[str]) -> list[str]:
        """The words of a call, with this userland in the place of the container's PATH."""
        return [word.replace(CONTAINER_PATH, str(self.path)) for word in words]

    def run(
        self, script: str | bytes, *arguments: str | bytes, stdin: bytes = b"", timeout: float = 60
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a script with arguments in this shell."""
        return subprocess.run(
            [*self.argv, "-c", script, "sh", *arguments],
            input=stdin,
            capture_output=True,
            env=self.environment,
            timeout=timeout,
            check=False,
        )


def make_shell(name: ShellName, path: Path) -> Shell:
    """Fill ``path`` with the programs of a userland; AssertionError where the shell is missing."""
    path.mkdir(parents=True, exist_ok=True)
    if name == "busybox":
        busybox = shutil.which("busybox")
        assert busybox, "busybox is missing: apt-get install busybox-static"
        listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True)
        for applet in {*listed.stdout.split(), "busybox"}:
            (path / applet).symlink_to(busybox)
    else:
        left_out = _NOT_IN_DASH_CONTAINER if name == "dash" else {"busybox"}
        for directory in ("/usr/bin", "/usr/sbin", "/bin", "/sbin"):
            for program in os.scandir(directory):
                link = path / program.name
                if program.name not in left_out and not link.is_symlink():
                    link.symlink_to(program.path)
    shell = Shell(name, path)
    assert os.access(shell.argv[0], os.X_OK), f"{name} is missing"
    return shell
