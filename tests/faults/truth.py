"""What is the case in a container, seen from outside: /proc of this machine, never launchpad."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labtool import guests
from support.processes import end_process

if TYPE_CHECKING:
    from support.lab import Lab

# Outside of the state directory, so that a fault of that one does not blind us.
WITNESSES = "var/tmp/faults"
STATE = "var/lib/launchpad"


@dataclass(frozen=True, slots=True)
class Process:
    """``number``: its PID in the container; ``attached``: it came in from outside."""

    pid: int
    parent: int
    number: int
    ticks: int
    attached: bool
    words: bytes
    environment: frozenset[bytes]

    def end(self) -> None:
        end_process(self.pid, self.ticks)

    @property
    def is_supervisor(self) -> bool:
        return any(each.startswith(b"LAUNCHPAD_SUPERVISE=") for each in self.environment)

    @property
    def is_script(self) -> bool:
        """A process that grew from the script of a call."""
        return any(each.startswith((b"S=#", b"S=\n")) for each in self.environment)

    def belongs_to(self, job: str) -> bool:
        return f"LAUNCHPAD_JOB_ID={job}".encode() in self.environment

    def __str__(self) -> str:
        return f"PID {self.number} ({self.pid} outside) {self.words[:90]!r}"


@dataclass(frozen=True, slots=True)
class Witness:
    """What a job's program itself noted: one pair (PID, ticks) a start, and its own last word."""

    starts: tuple[tuple[int, int], ...]
    code: int | None


@dataclass(frozen=True, slots=True)
class Truth:
    lab: Lab
    ctid: int

    @property
    def first(self) -> int:
        """PID of the container's first process on this machine."""
        node = self.lab.node_pid(self.lab.node_of(self.ctid))
        return guests.init_pid(node, guests.guest(self.ctid))

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self.first}/root")

    def processes(self) -> list[Process]:
        """All that live in the container; zombies do not."""
        space = Path(f"/proc/{self.first}/ns/pid").readlink()
        found: dict[int, tuple[list[str], int]] = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, StopIteration):
                if (entry / "ns/pid").readlink() != space:
                    continue
                fields = (entry / "stat").read_text(errors="replace").rpartition(") ")[2].split()
                lines = (entry / "status").read_text(errors="replace").splitlines()
                numbers = next(line.split() for line in lines if line.startswith("NSpid:"))
                if fields[0] not in "ZX":
                    found[int(entry.name)] = (fields, int(numbers[-1]))
        return [
            Process(
                pid,
                int(fields[1]),
                number,
                int(fields[19]),
                _is_attached(pid, found),
                _read(pid, "cmdline").replace(b"\0", b" "),
                frozenset(_read(pid, "environ").split(b"\0")),
            )
            for pid, (fields, number) in found.items()
        ]

    def witness(self, token: str) -> Witness:
        file = self.root / WITNESSES / token
        lines = file.read_text().splitlines() if file.exists() else []
        words = [line.split() for line in lines]
        starts = tuple((int(each[1]), int(each[2])) for each in words if each[0] == "start")
        ends = [int(each[1]) for each in words if each[0] == "end"]
        return Witness(starts, ends[-1] if ends else None)

    def lives(self, witness: Witness) -> bool:
        return any((each.number, each.ticks) in witness.starts for each in self.processes())

    def log(self, job: str) -> bytes | None:
        """None where there is no such file."""
        try:
            return (self.root / STATE / "jobs" / job / "log").read_bytes()
        except FileNotFoundError:
            return None

    def logs(self, jobs: list[str]) -> dict[str, bytes | None]:
        """The same of many: the container's first process is looked for once."""
        place = self.root / STATE / "jobs"
        files = {job: place / job / "log" for job in jobs}
        return {job: file.read_bytes() if file.exists() else None for job, file in files.items()}

    def directories(self) -> set[str]:
        place = self.root / STATE / "jobs"
        return {each.name for each in place.iterdir()} if place.is_dir() else set()

    def damaged_records(self) -> list[str]:
        """Records under their final names that are not whole."""
        found = []
        for name in ("main", "launcher", "cgroup"):
            for file in (self.root / STATE / "jobs").glob(f"*/{name}"):
                with suppress(FileNotFoundError):
                    if not file.read_bytes().endswith(b" .\n"):
                        found.append(f"{file.parent.name}/{name}")
        return found

    def on_node(self, *names: str) -> list[int]:
        """The living processes of the container's node (not of containers) with such a name."""
        node = self.lab.node_pid(self.lab.node_of(self.ctid))
        space = Path(f"/proc/{node}/ns/pid").readlink()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (entry / "ns/pid").readlink() != space:
                    continue
                words = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                if any(name in words for name in names):
                    found.append(int(entry.name))
        return found


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _is_attached(pid: int, found: dict[int, tuple[list[str], int]]) -> bool:
    """Whether its line of descent leaves the container without coming by its first process."""
    while pid in found:
        fields, number = found[pid]
        if number == 1:
            return False
        pid = int(fields[1])
    return True
