"""Real sshd instances on high ports of 127.0.0.1, each with keys and a configuration of its own."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from launchpad.transport.base import ConnectOptions

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") or "/usr/sbin/sshd"
USER = "root"


def wait_until(condition: Callable[[], bool], what: str, timeout: float = 10.0) -> None:
    """Wait for a condition, not for a time."""
    ends = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < ends, f"never came true: {what}"
        time.sleep(0.01)


@dataclass(slots=True)
class Keys:
    """Key pairs made once for all tests: making them again costs more than all the rest."""

    directory: Path

    def private(self, name: str) -> Path:
        return self.directory / name

    def public(self, name: str) -> str:
        """Type and key, without the comment."""
        return " ".join((self.directory / f"{name}.pub").read_text().split()[:2])

    def make(self, name: str, *arguments: str) -> Path:
        path = self.private(name)
        if not path.exists():
            passphrase = [] if "-N" in arguments else ["-N", ""]
            command = ["ssh-keygen", "-q", "-f", str(path), "-C", name, *passphrase, *arguments]
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
        return path


@dataclass(slots=True)
class Server:
    """A running sshd."""

    process: subprocess.Popen[bytes]
    port: int
    directory: Path
    keys: Keys
    host_keys: tuple[str, ...]
    client_settings: list[str] = field(default_factory=list)

    @property
    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def sessions(self) -> list[int]:
        """The processes that serve logged-in clients."""
        found = subprocess.run(
            ["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)],
            capture_output=True,
            check=False,
        ).stdout.decode()
        return [int(line.split()[0]) for line in found.splitlines() if "sshd: " in line]

    def known_line(self, key: str = "host_ed25519", name: str | None = None) -> str:
        return f"{name or f'[127.0.0.1]:{self.port}'} {self.keys.public(key)}\n"

    def config(
        self,
        *settings: str,
        alias: str = "there",
        known: str | None = None,
        key: str | None = "user",
        more: str = "",
    ) -> Path:
        """An ssh configuration with one host entry; ``known``: the text of its known_hosts."""
        known_hosts = self.directory / "known_hosts"
        known_hosts.write_text(self.known_line() if known is None else known)
        lines = [f"Host {alias}", f"HostName 127.0.0.1\nPort {self.port}\nUser {USER}", *settings]
        names = {line.split()[0].lower() for line in settings}
        if "userknownhostsfile" not in names:
            lines.append(f"UserKnownHostsFile {known_hosts}")
        if "globalknownhostsfile" not in names:
            lines.append("GlobalKnownHostsFile none")
        if key is not None:
            lines.append(f"IdentityFile {self.keys.private(key)}")
        if "identitiesonly" not in names and "identityagent" not in names:
            lines.append("IdentityAgent none")
        path = self.directory / "ssh_config"
        path.write_text("\n".join(lines) + "\n" + more)
        return path

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


ServerMaker = Callable[..., Server]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(slots=True)
class Said:
    """Options whose notes and warnings are kept."""

    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def options(self, config: Path | None, **changes: object) -> ConnectOptions:
        values: dict[str, object] = {"choice": "paramiko", "timeout": 10.0, **changes}
        return ConnectOptions(
            ssh_config=config,
            note=self.notes.append,
            warn=self.warnings.append,
            **values,  # type: ignore[arg-type]
        )


def ssh(config: Path, *words: str, host: str = "there") -> subprocess.CompletedProcess[bytes]:
    """What the ssh program does with the same configuration."""
    return subprocess.run(
        ["ssh", "-F", str(config), "-o", "BatchMode=yes", "-T", host, *words],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=20,
    )
