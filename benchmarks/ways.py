"""What is timed: launchpad, and what people do today, on the same hosts and containers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.client import Client
from support.lab import BUSYBOX, DEBIAN, NO_PTY, ON_PVE2, SLEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from support.lab import Lab

TARGET = f"pve1:{DEBIAN}"
FIVE = {DEBIAN: "pve1", BUSYBOX: "pve1", NO_PTY: "pve1", SLEEPER: "pve1", ON_PVE2: "pve2"}

# What one types, or has in one's notes: it proves nothing, and records nothing.
ONE_LINER = (
    "/usr/sbin/pct exec 101 -- bash -c"
    " 'setsid sleep 61 </dev/null >/tmp/one-liner.log 2>&1 & echo $!'"
)


def seconds_of(
    words: Sequence[str], environment: Mapping[str, str] | None = None, stdin: bytes | None = None
) -> float:
    """How long a program runs. RuntimeError where it fails."""
    began = time.monotonic()
    done = subprocess.run(
        words, input=stdin or b"", env=environment, capture_output=True, timeout=300, check=False
    )
    passed = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(f"{words}: {done.returncode}: {done.stderr.decode(errors='replace')}")
    return passed


@dataclass(slots=True)
class Ways:
    """Everything that is timed, by name. Use :meth:`close` at the end."""

    lab: Lab
    place: Path
    user: Client = field(init=False)
    sharing: Client = field(init=False)
    _master: Path = field(init=False)

    def __post_init__(self) -> None:
        own = {"LAUNCHPAD_SSH_CONFIG": str(self.lab.ssh_config), "PYTHONWARNINGS": ""}
        self.user = Client(self.place / "user", own)
        # A path of a socket has 107 bytes at most.
        config = self.place / "sharing.toml"
        config.write_text("[defaults]\nshare_connection = true\n")
        self.sharing = Client(self.place / "s", {**own, "LAUNCHPAD_CONFIG": str(config)})
        self._master = self.place / "master"
        self.ssh("-M", "-N", "-f", "-o", "ControlPersist=600")
        self.launchpad(self.sharing, "status", TARGET)

    def close(self) -> None:
        """End what was started."""
        self.ssh("-O", "exit")
        for client in (self.user, self.sharing):
            client.end_processes()
            for ctid in FIVE:
                self.lab.end_jobs(ctid, client.identities())
        masters = self.place / "s/runtime"
        for socket in masters.rglob("*") if masters.exists() else ():
            if socket.is_socket():
                subprocess.run(
                    ["ssh", "-o", f"ControlPath={socket}", "-O", "exit", "pve1"],
                    capture_output=True,
                    check=False,
                )

    def ssh(self, *options: str, line: str = "") -> float:
        """Ssh over the connection of its own that it keeps (or begins to keep)."""
        words = ["ssh", "-F", str(self.lab.ssh_config), "-o", f"ControlPath={self._master}"]
        return seconds_of([*words, *options, "pve1", *([line] if line else [])])

    def launchpad(self, client: Client, *words: str) -> float:
        """One call of the command line."""
        return seconds_of([sys.executable, "-m", "launchpad", *words], client.environment)

    def one_liner(self) -> float:
        """The line that is typed by hand, over a connection of its own."""
        return seconds_of(["ssh", "-F", str(self.lab.ssh_config), "pve1", ONE_LINER])

    def one_liner_shared(self) -> float:
        """The same over a ControlMaster."""
        return self.ssh(line=ONE_LINER)

    def run_paramiko(self) -> float:
        """A proven start, over a connection of its own."""
        words = ("run", "--transport", "paramiko", "--confirm", "0", TARGET, "--", "sleep", "61")
        return self.launchpad(self.user, *words)

    def run_shared(self) -> float:
        """A proven start over the connection that launchpad keeps."""
        words = ("run", "--confirm", "0", TARGET, "--", "sleep", "61")
        return self.launchpad(self.sharing, *words)

    def python(self) -> float:
        """The interpreter alone."""
        return seconds_of([sys.executable, "-c", "pass"])

    def help(self) -> float:
        """``launchpad --help``."""
        return self.launchpad(self.user, "--help")


def small_files(place: Path, count: int, size: int) -> Path:
    """A tree of ``count`` files of ``size`` bytes each, in directories of fifty."""
    for number in range(count):
        file = place / f"d{number // 50}" / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(size))
    return place
