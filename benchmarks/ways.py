"""What is timed: launchpad as users call it, and the line that people type today."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from support.client import Client
from support.lab import BUSYBOX, DEBIAN, NO_PTY, ON_PVE2, SLEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from support.lab import Lab

TARGET = f"pve1:{DEBIAN}"
FIVE = {DEBIAN: "pve1", BUSYBOX: "pve1", NO_PTY: "pve1", SLEEPER: "pve1", ON_PVE2: "pve2"}

# What every way starts. It ends by itself soon after the last round.
SLEEP = "sleep 61"
# None has it: what does a start say of that?
MISSING = "no-such-program 61"

# The console script of the environment in which this runs: what users type.
LAUNCHPAD = str(Path(sys.executable).with_name("launchpad"))


def one_liner(program: str = SLEEP) -> str:
    """What one types, or has in one's notes: it proves nothing, and records nothing."""
    return (
        f"/usr/sbin/pct exec {DEBIAN} -- bash -c"
        f" 'setsid {program} </dev/null >/tmp/one-liner.log 2>&1 & echo $!'"
    )


@dataclass(frozen=True, slots=True)
class Call:
    """A program and its arguments, as somebody would call it."""

    words: Sequence[str]
    environment: Mapping[str, str] | None = None
    cwd: Path | None = None

    def seconds(self, stdout: int = subprocess.PIPE) -> float:
        """How long it takes. RuntimeError where it fails."""
        began = time.monotonic()
        done = self._run(stdout)
        passed = time.monotonic() - began
        if done.returncode:
            said = done.stderr.decode(errors="replace")
            raise RuntimeError(f"{self.words}: {done.returncode}: {said}")
        return passed

    def code(self) -> int:
        """The exit code that it ends with."""
        return self._run(subprocess.PIPE).returncode

    def _run(self, stdout: int) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.words,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=self.environment,
            cwd=self.cwd,
            timeout=300,
            check=False,
        )


@dataclass(slots=True)
class Ways:
    """launchpad and the typed line, by name. Use :meth:`close` at the end."""

    lab: Lab
    place: Path
    user: Client = field(init=False)
    sharing: Client = field(init=False)
    _master: Path = field(init=False)

    def __post_init__(self) -> None:
        own = {"LAUNCHPAD_SSH_CONFIG": str(self.lab.ssh_config)}
        self.user = _as_installed(Client(self.place / "user", own))
        config = self.place / "sharing.toml"
        config.write_text("[defaults]\nshare_connection = true\n")
        # A path of a socket has 107 bytes at most.
        own["LAUNCHPAD_CONFIG"] = str(config)
        self.sharing = _as_installed(Client(self.place / "s", own))
        self._master = self.place / "master"
        self.ssh_shared("-M", "-N", "-f", "-o", "ControlPersist=600", "pve1").seconds()
        self.launchpad(self.sharing, "status", TARGET).seconds()

    def close(self) -> None:
        """End what was started."""
        self.ssh_shared("-O", "exit", "pve1").seconds()
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

    def ssh(self, *words: str) -> Call:
        """Ssh over a connection of its own."""
        return Call(["ssh", "-F", str(self.lab.ssh_config), *words])

    def ssh_shared(self, *words: str) -> Call:
        """Ssh over the connection that it keeps (or begins to keep)."""
        return self.ssh("-o", f"ControlPath={self._master}", *words)

    def launchpad(self, client: Client, *words: str) -> Call:
        """One call of the command line."""
        return Call([LAUNCHPAD, *words], client.environment)

    def one_liner(self, program: str = SLEEP) -> Call:
        """The line that is typed by hand, over a connection of its own."""
        return self.ssh("pve1", one_liner(program))

    def one_liner_shared(self, program: str = SLEEP) -> Call:
        """The same over a ControlMaster."""
        return self.ssh_shared("pve1", one_liner(program))

    def run_paramiko(self, program: str = SLEEP) -> Call:
        """A proven start, over a connection of its own."""
        how = ("--transport", "paramiko", "--confirm", "0")
        return self.launchpad(self.user, "run", *how, TARGET, "--", *program.split())

    def run_shared(self, program: str = SLEEP) -> Call:
        """A proven start over the connection that launchpad keeps."""
        how = ("--confirm", "0")
        return self.launchpad(self.sharing, "run", *how, TARGET, "--", *program.split())

    def python(self) -> Call:
        """The interpreter alone."""
        return Call([sys.executable, "-c", "pass"])

    def help(self) -> Call:
        """``launchpad --help``."""
        return self.launchpad(self.user, "--help")


def _as_installed(client: Client) -> Client:
    """A client without what the tests want: its launchpad is the installed one."""
    for name in ("PYTHONPATH", "PYTHONWARNINGS"):
        client.environment.pop(name, None)
    return client


def small_files(place: Path, count: int, size: int) -> Path:
    """A tree of ``count`` files of ``size`` bytes each, in directories of fifty."""
    for number in range(count):
        file = place / f"d{number // 50}" / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(size))
    return place
