"""The ssh connections of one client, found and broken from outside: nobody else notices."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab import Lab

_ESTABLISHED = "01"
_SSH = 22


@dataclass(frozen=True, slots=True)
class Line:
    """One TCP connection to a node's sshd: the client's port, and the process that serves it."""

    lab: Lab
    node: str
    port: int
    server: int

    def kill(self) -> None:
        """End sshd's session process: the client gets a reset."""
        with suppress(ProcessLookupError):
            os.kill(self.server, signal.SIGKILL)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop sshd's session process meanwhile: the connection stands, and nobody answers."""
        os.kill(self.server, signal.SIGSTOP)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.kill(self.server, signal.SIGCONT)

    @contextmanager
    def dropped(self) -> Iterator[None]:
        """Drop this connection's packets in the node meanwhile: silence in both directions."""
        table = f"lost{self.port}"
        rules = "\n".join(
            (
                f"table inet {table} {{",
                "chain from { type filter hook input priority 0;",
                f"tcp sport {self.port} drop",
                "}",
                "chain to { type filter hook output priority 0;",
                f"tcp dport {self.port} drop",
                "}",
                "}",
            )
        )
        self.lab.on_node(self.node, "nft", rules)
        try:
            yield
        finally:
            self.lab.on_node(self.node, "nft", "delete", "table", "inet", table)


def _sockets(pid: int) -> set[str]:
    found = set()
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found.add(str(entry.readlink()))
    return found


def _tcp(pid: int) -> list[list[str]]:
    """The established TCP connections of a process's network namespace, as /proc has them."""
    rows = []
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
            rows += [line.split() for line in lines]
    return [row for row in rows if row[3] == _ESTABLISHED]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)


def family_of(pid: int) -> list[int]:
    """A client and all processes that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            fields = (entry / "stat").read_text(errors="replace").rpartition(") ")[2].split()
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    family = [pid]
    for member in family:
        family += children.get(member, [])
    return family


def find_line(lab: Lab, client: int, node: str = "pve1") -> Line | None:
    """The connection of the client with that PID; None while it has none."""
    ports = set()
    for pid in family_of(client):
        sockets = _sockets(pid)
        for row in _tcp(pid):
            if _port(row[2]) == _SSH and f"socket:[{row[9]}]" in sockets:
                ports.add(_port(row[1]))
    node_pid = lab.node_pid(node)
    for row in _tcp(node_pid):
        if _port(row[1]) == _SSH and _port(row[2]) in ports:
            server = _owner(f"socket:[{row[9]}]")
            if server is not None:
                return Line(lab, node, _port(row[2]), server)
    return None


def _owner(socket: str) -> int | None:
    """sshd's process of the session that runs over a socket, once somebody is logged in."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if b"@notty" in (entry / "cmdline").read_bytes() and socket in _sockets(
                int(entry.name)
            ):
                return int(entry.name)
    return None


def wait_for_line(lab: Lab, client: int, node: str = "pve1", *, other_than: int = 0) -> Line:
    """The client's connection, once it has one with another port than ``other_than``."""

    def find() -> Line | None:
        line = find_line(lab, client, node)
        return line if line is not None and line.port != other_than else None

    line = wait_until(find, 120, "a connection")
    assert line is not None
    return line
