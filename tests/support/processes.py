"""Ending processes that a test started, and never another one that has got their number since.

PIDs return within minutes on a busy machine (pid_max is 32768 on many), so a PID that was noted
some time ago is only a process together with its start ticks.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat (proc(5)); None where there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(") ")[2].split()[19])


def peak_memory(pid: int) -> int:
    """The largest resident set so far, in bytes (proc(5), VmHWM)."""
    try:
        with open(f"/proc/{pid}/status") as status:  # noqa: PTH123
            lines = [line for line in status if line.startswith("VmHWM:")]
    except OSError:
        return 0
    return int(lines[0].split()[1]) * 1024 if lines else 0


def end_process(pid: int, ticks: int) -> None:
    """SIGKILL for exactly this process; nothing where it has ended."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        try:
            # The handle was opened first: whatever it names, it goes on naming.
            if start_ticks(pid) == ticks:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def end_jobs(jobs: Mapping[str, tuple[int, int] | None]) -> None:
    """SIGKILL for all that belongs to jobs, wherever on this machine, containers included.

    ``jobs``: ids, and PID and start ticks of the main processes (in their containers' numbers)
    where they are known. Found are supervisors (the id is among their arguments), whatever bears
    the mark, and the sessions of main processes that still are those.
    """
    marks = {word for job in jobs for word in (job.encode(), f"LAUNCHPAD_JOB_ID={job}".encode())}
    leaders = {identity for identity in jobs.values() if identity is not None}
    looks = list(_look_at_all())
    sessions = {look.session for look in looks if (look.number, look.ticks) in leaders}
    for look in looks:
        if look.session in sessions or marks & look.words:
            end_process(look.pid, look.ticks)


@dataclass(frozen=True, slots=True)
class _Look:
    """``number``: the PID in the process's own namespace; ``session``: with that namespace."""

    pid: int
    ticks: int
    number: int
    session: tuple[str, str]
    words: frozenset[bytes]


def _look_at_all() -> Iterator[_Look]:
    for place in Path("/proc").glob("[0-9]*"):
        pid = int(place.name)
        ticks = start_ticks(pid)
        if ticks is None or pid == os.getpid():
            continue
        # A zombie has neither arguments nor an environment: that is an OSError, too.
        with suppress(OSError):
            status = (place / "status").read_text(errors="replace").splitlines()
            numbers = dict(line.split(":", 1) for line in status if line.startswith("NS"))
            session = numbers["NSsid"].split()[-1]
            words = (place / "cmdline").read_bytes() + b"\0" + (place / "environ").read_bytes()
            yield _Look(
                pid,
                ticks,
                int(numbers["NSpid"].split()[-1]),
                (str((place / "ns/pid").readlink()), session),
                frozenset(words.split(b"\0")),
            )
