"""The shared lab, looked at and shaken from outside: never through launchpad, ssh or pct."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labtool import guests, nodes, pve
from labtool.packages import ensure_namespaces, ensure_root
from labtool.settings import Settings, from_environment
from labtool.shell import LabError
from support.processes import end_jobs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from labtool.settings import NodePlace

LAB_PROGRAM = Path(__file__).resolve().parents[1] / "lab" / "lab"

DEBIAN, BUSYBOX, STOPPED, NO_PTY, ON_PVE2, SLEEPER = 101, 102, 103, 104, 105, 106

Result = subprocess.CompletedProcess[bytes]


def why_no_lab() -> str | None:
    """Why no lab can be had on this machine; None where it can."""
    try:
        ensure_root()
        ensure_namespaces()
    except LabError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a node saw since a moment: only meaningful while nobody else uses the lab."""

    node: NodePlace
    _sshd_offset: int
    _pct_offset: int

    @property
    def connections(self) -> list[str]:
        """The lines with which sshd notes a new connection."""
        return [line for line in self._sshd() if line.startswith("Connection from ")]

    @property
    def sessions(self) -> list[str]:
        """The lines with which sshd notes a command, a shell or a subsystem on a channel."""
        return [line for line in self._sshd() if line.startswith("Starting session")]

    @property
    def pct_calls(self) -> list[dict[str, Any]]:
        """The calls of pct: time, pid, sudo_user, ssh, argv."""
        data = _from(self.node.log / "pct.log", self._pct_offset)
        return [json.loads(line) for line in data.splitlines()]

    def _sshd(self) -> list[str]:
        data = _from(self.node.log / "sshd.log", self._sshd_offset)
        return data.decode(errors="replace").splitlines()


def _from(path: Path, offset: int) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(offset)
        return file.read()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@dataclass(slots=True)
class Lab:
    """Hands and eyes in the nodes and containers."""

    settings: Settings = field(default_factory=from_environment)

    def command(self, *words: str, timeout: float = 900.0) -> str:
        """``tests/lab/lab WORDS``; AssertionError where it fails."""
        result = subprocess.run(
            [sys.executable, str(LAB_PROGRAM), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def up(self) -> None:
        """Make everything run that should."""
        self.command("up")

    @property
    def ssh_config(self) -> Path:
        return self.settings.ssh_config

    def node_pid(self, node: str = "pve1") -> int:
        """The first process of a node, as this machine counts."""
        return nodes.require(self.settings.node(node))

    def node_root(self, node: str = "pve1") -> Path:
        """A node's root directory, as a path of this machine."""
        return nodes.root(self.node_pid(node))

    def node_of(self, ctid: int) -> str:
        """The node on which a container lives now."""
        return pve.node_of(self.settings, guests.guest(ctid))

    def on_node(self, node: str, *argv: str, stdin: bytes = b"", check: bool = True) -> Result:
        """Run a program on a node as root."""
        return _run(nodes.inside(self.node_pid(node), *argv), stdin, check=check)

    def run(self, ctid: int, *argv: str, stdin: bytes = b"", check: bool = True) -> Result:
        """Run a program in a container as its root."""
        words = [
            "lxc-attach",
            "-n",
            str(ctid),
            "--clear-env",
            "-v",
            "HOME=/root",
            "-v",
            "USER=root",
        ]
        words += ["-v", f"PATH={nodes.NODE_PATH}", "--", *argv]
        return _run(nodes.inside(self.node_pid(self.node_of(ctid)), *words), stdin, check=check)

    def sh(self, ctid: int, script: str, *arguments: str, check: bool = True) -> str:
        """Run a line of shell in a container; what it printed."""
        result = self.run(ctid, "sh", "-c", script, "sh", *arguments, check=check)
        return result.stdout.decode("utf-8", "surrogateescape")

    def alive(self, ctid: int, pid: int) -> bool:
        """Whether a process of a container (in its own numbers) lives: a zombie does not."""
        stat = self.sh(ctid, 'cat "/proc/$1/stat" 2>/dev/null', str(pid), check=False)
        return bool(stat) and stat.rpartition(") ")[2][:1] not in ("Z", "X")

    def session_of(self, ctid: int, pid: int) -> int:
        """The session id of a process of a container, in the container's numbers."""
        stat = self.sh(ctid, 'cat "/proc/$1/stat"', str(pid))
        return int(stat.rpartition(") ")[2].split()[3])

    def processes(self, ctid: int, *argv: str) -> list[int]:
        """The living processes of a container with exactly this argument vector."""
        wanted = b"\0".join(map(os.fsencode, argv)) + b"\0"
        script = (
            'cd /proc; for p in [0-9]*; do echo "$p"; od -An -v -tx1 "$p/cmdline"; echo .; done'
        )
        found = []
        for entry in self.sh(ctid, f"{{ {script}; }} 2>/dev/null").split(".\n"):
            pid, _, dump = entry.partition("\n")
            if pid and bytes.fromhex(dump) == wanted:
                found.append(int(pid))
        return [pid for pid in found if self.alive(ctid, pid)]

    def watch(self, node: str = "pve1") -> Traffic:
        """Count connections and pct calls from now on; for tests marked ``exclusive``."""
        place = self.settings.node(node)
        return Traffic(place, _size(place.log / "sshd.log"), _size(place.log / "pct.log"))

    def end_jobs(self, ctid: int, jobs: Mapping[str, tuple[int, int] | None]) -> None:
        """End jobs without launchpad and remove what they left; ``jobs`` as for end_jobs()."""
        end_jobs(jobs)
        if ctid in self.running():
            self.sh(ctid, 'cd /var/lib/launchpad/jobs && rm -rf "$@"', *jobs, check=False)

    def running(self) -> set[int]:
        """The containers that run, on any node."""
        return set().union(
            *(guests.running_ids(nodes.require(node)) for node in self.settings.nodes)
        )

    # The following change what others see: for tests marked `exclusive`.

    @contextmanager
    def front_end(self, program: str) -> Iterator[None]:
        """Put a program (its text) in the place of pct; the real stand-in is /usr/share/lab/pct."""
        file = self.settings.home / f"front-end-{os.getpid()}"
        file.write_text(program)
        try:
            self.command("pct", str(file))
            yield
        finally:
            self.command("pct", "default")
            file.unlink()

    @contextmanager
    def switch(self, name: str, value: str) -> Iterator[None]:
        """Set a switch of the pct stand-in: ``delay`` SECONDS, ``release`` old."""
        file = self.settings.pct / name
        before = file.read_text() if file.exists() else None
        file.write_text(f"{value}\n")
        try:
            yield
        finally:
            if before is None:
                file.unlink()
            else:
                file.write_text(before)

    @contextmanager
    def frozen(self, ctid: int) -> Iterator[None]:
        """Freeze a container meanwhile."""
        self.command("freeze", str(ctid))
        try:
            yield
        finally:
            self.command("thaw", str(ctid))

    @contextmanager
    def stopped(self, ctid: int, *, clean: bool = False) -> Iterator[None]:
        """Stop a container meanwhile, at once or by asking its init."""
        self.command("shutdown" if clean else "stop", str(ctid))
        try:
            yield
        finally:
            self.command("start", str(ctid))

    @contextmanager
    def cut(self, node: str) -> Iterator[None]:
        """Pull a node's cable meanwhile."""
        self.command("cut", node)
        try:
            yield
        finally:
            self.command("heal", node)

    @contextmanager
    def other_sshd(self, place: Path, *settings: str, node: str = "pve1") -> Iterator[Path]:
        """A second sshd of a node, on port 2222 and with settings of its own; the way to it.

        ``place``: where the ssh configuration is made that has it as that node.
        """
        address = self.settings.node(node).address
        known = place / "known_hosts_2222"
        lines = (self.settings.ssh / "known_hosts").read_text().splitlines()
        keys = (line.partition(" ")[2] for line in lines if line.startswith(f"{node},"))
        known.write_text("".join(f"[{address}]:2222 {key}\n" for key in keys))
        text = self.ssh_config.read_text().replace("Port 22\n", "Port 2222\n")
        config = place / "config_2222"
        config.write_text(text.replace(str(self.settings.ssh / "known_hosts"), str(known)))
        options = [word for each in (*settings, "PidFile=/run/other.pid") for word in ("-o", each)]
        self.on_node(node, "/usr/sbin/sshd", "-p", "2222", *options)
        try:
            yield config
        finally:
            self.on_node(node, "sh", "-c", 'kill "$(cat /run/other.pid)"; rm -f /run/other.pid')

    @contextmanager
    def file_in(self, ctid: int, path: str, text: str, mode: str = "644") -> Iterator[None]:
        """Give a container a file meanwhile; what was there before comes back."""
        self.sh(ctid, '[ ! -e "$1" ] || mv "$1" "$1.before"', path)
        script = 'mkdir -p "${1%/*}" && cat >"$1" && chmod "$2" "$1"'
        self.run(ctid, "sh", "-c", script, "sh", path, mode, stdin=os.fsencode(text))
        try:
            yield
        finally:
            self.sh(ctid, 'rm -f "$1"; [ ! -e "$1.before" ] || mv "$1.before" "$1"', path)

    @contextmanager
    def file_on(self, node: str, path: str, text: str, mode: int = 0o644) -> Iterator[None]:
        """Give a node a file meanwhile; what was there before comes back."""
        file = self.node_root(node) / path.lstrip("/")
        before = (file.read_bytes(), file.stat().st_mode) if file.exists() else None
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.fsencode(text))
        file.chmod(mode)
        try:
            yield
        finally:
            if before is None:
                file.unlink(missing_ok=True)
            else:
                file.write_bytes(before[0])
                file.chmod(before[1])


def _run(words: list[str], stdin: bytes, *, check: bool) -> Result:
    result = subprocess.run(words, input=stdin, capture_output=True, timeout=120, check=False)
    assert not check or result.returncode == 0, f"{words}: {result}"
    return result


@contextmanager
def lab_share(place: Path, *, exclusive: bool) -> Iterator[None]:
    """Use the lab together with others, or alone.

    Across processes (of one test run, or of several). Whoever wants it alone closes the gate
    first, so that newcomers cannot starve it.
    """
    place.mkdir(parents=True, exist_ok=True)
    with (place / "tests.gate").open("a") as gate, (place / "tests.lock").open("a") as lock:
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        fcntl.flock(gate, kind)
        fcntl.flock(lock, kind)
        if not exclusive:
            fcntl.flock(gate, fcntl.LOCK_UN)
        yield
