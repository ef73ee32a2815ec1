"""What runs on a node and in a container for one follow, found by the log that it holds open.

No command line is looked at and no PID namespace entered: this machine sees all processes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from support.lines import family_of
from support.waiting import wait_until


@dataclass(frozen=True, slots=True)
class Process:
    """A process by its PID on this machine and its start ticks."""

    pid: int
    ticks: str

    @property
    def lives(self) -> bool:
        fields = _stat(self.pid)
        return bool(fields) and fields[19] == self.ticks and fields[0] not in "ZX"

    def __str__(self) -> str:
        with suppress(OSError):
            line = Path(f"/proc/{self.pid}/cmdline").read_bytes().replace(b"\0", b" ")
            return f"{self.pid} {line[:80]!r}"
        return f"{self.pid} gone"


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(") ")[2].split()


def _holds(entry: Path, job: str) -> bool:
    """Whether a process that is not the job's own has its log open."""
    with suppress(OSError):
        if f"LAUNCHPAD_JOB_ID={job}".encode() in (entry / "environ").read_bytes():
            return False
        return any(
            str(link.readlink()).endswith(f"/jobs/{job}/log") for link in (entry / "fd").iterdir()
        )
    return False


def _entrance(pid: int) -> int:
    """The process on the node by which a process of a container came in: sshd's child."""
    while True:
        fields = _stat(pid)
        if not fields:
            return pid
        parent = int(fields[1])
        with suppress(OSError):
            if (Path(f"/proc/{parent}/comm")).read_text().startswith("sshd"):
                return pid
        if parent <= 1:
            return pid
        pid = parent


def followers(job: str) -> list[Process]:
    """All processes of the follows of a job, from the node's shell down to the last cat."""
    found: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        if _holds(entry, job):
            found.update(family_of(_entrance(int(entry.name))))
    return [Process(pid, fields[19]) for pid in sorted(found) if (fields := _stat(pid))]


def wait_for_followers(job: str, timeout: float = 20) -> list[Process]:
    """The processes of a follow that has begun: at least the shell, its guard and lxc-attach."""

    def enough() -> list[Process]:
        found = followers(job)
        return found if len(found) >= 3 else []

    return wait_until(enough, timeout, "the far side of the follow")


def wait_until_gone(processes: list[Process], timeout: float = 20) -> None:
    def left() -> list[str]:
        return [str(process) for process in processes if process.lives]

    wait_until(lambda: not left(), timeout, f"gone: {left()}")
