"""How quick `tail` is: from a write to the screen, and a whole log beside a bare cat.

The containers' logs are written from outside, through /proc: no ssh and no launchpad in the way.
"""

from __future__ import annotations

import os
import random
import select
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from benchmarks.environment import ROOT
from benchmarks.table import Row, in_turn, percentile, ratio, spread
from benchmarks.ways import Call
from support.lab import BUSYBOX, DEBIAN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.ways import Ways

TRANSPORTS = ("paramiko", "openssh")
MEGABYTE = 1_000_000

# How long a line may take before something is broken (seconds).
_PATIENCE = 30.0

# What cat over paramiko costs without anything that launchpad does about logs.
_BARE = """
import sys
from pathlib import Path
from launchpad.transport import connect
from launchpad.transport.base import ConnectOptions, Endpoint, Exited
options = ConnectOptions(ssh_config=Path(sys.argv[1]), choice="paramiko")
link = connect(Endpoint(sys.argv[2]), options)
channel = link.open(sys.argv[3:])
channel.close_stdin()
while not isinstance(channel.receive(None), Exited):
    pass
link.close()
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the latency (milliseconds)."""

    ctid: int
    name: str
    must: float
    stretch: float


DEBIAN_S = Limits(DEBIAN, "Debian", 50, 20)
BUSYBOX_S = Limits(BUSYBOX, "busybox", 250, 100)


def latency(
    ways: Ways, limits: Limits, transport: str, lines: int, silence: float = 5.0
) -> Iterator[Row]:
    """From the write of a line to the log until it has come out of ``tail -f``; then silence."""
    job, log = _job(ways, limits.ctid, "sleep", "600")
    follow = ways.user.start("tail", "--transport", transport, "-f", job)
    assert follow.stdout is not None  # noqa: S101 # says the type
    pauses = random.Random(1)  # noqa: S311 # no secret
    delays = []
    with log.open("ab", buffering=0) as file:
        _write_and_see(file, follow.stdout, b"the first one\n")
        for number in range(lines):
            # Not in step with anything that looks from time to time.
            time.sleep(pauses.uniform(0.05, 0.35))
            delays.append(_write_and_see(file, follow.stdout, b"line %d\n" % number))
    before = _cpu(follow.pid)
    time.sleep(silence)
    idle = (_cpu(follow.pid) - before) / silence
    follow.kill()
    ways.user.succeed("kill", "-s", "KILL", job)
    yield Row(
        f"`tail -f`, {limits.name}, {transport}: a line is there, 95 %",
        percentile(delays, 95) * 1000,
        limits.must,
        limits.stretch,
        " ms",
        f"median {spread(delays)}, {lines} lines",
        samples={"delay": [round(delay, 4) for delay in delays]},
    )
    yield Row(f"`tail -f`, {limits.name}, {transport}: CPU of a silent one", idle * 100, unit=" %")


def _write_and_see(file: IO[bytes], screen: IO[bytes], line: bytes) -> float:
    began = time.monotonic()
    file.write(line)
    # One line at a time is under way: nothing waits in the buffer of the reader.
    if not select.select([screen], [], [], _PATIENCE)[0] or screen.readline() != line:
        raise RuntimeError(f"{line!r} did not come out of tail -f")
    return time.monotonic() - began


def throughput(ways: Ways, rounds: int, megabytes: int) -> Iterator[Row]:
    """A whole log beside a bare cat of the same file over the same transport."""
    with _big_log(ways, megabytes) as (job, path):
        pct = ("/usr/sbin/pct", "exec", str(DEBIAN), "--", "cat", path)
        config = str(ways.lab.ssh_config)
        cats = {
            # In a process of its own, as launchpad is: both pay for their imports.
            "paramiko": Call([sys.executable, "-c", _BARE, config, "pve1", *pct], cwd=ROOT),
            "openssh": ways.ssh("pve1", *pct),
        }
        calls = {f"cat, {name}": cat for name, cat in cats.items()}
        for name in TRANSPORTS:
            words = ("tail", "--transport", name, "-n", "all", job)
            calls[f"tail, {name}"] = ways.launchpad(ways.user, *words)
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            out = nowhere.fileno()
            actions = {name: partial(call.seconds, out) for name, call in calls.items()}
            times = in_turn(rounds, actions)
    for name in TRANSPORTS:
        what = f"`tail -n all` of {megabytes} MB, {name}: throughput ÷ that of cat"
        pair = (f"cat, {name}", f"tail, {name}")
        yield ratio(what, times, pair, 0.8, 1.0, at_least=True)


@contextmanager
def _big_log(ways: Ways, megabytes: int) -> Iterator[tuple[str, str]]:
    """A job that has ended and has a log of that size: its id, and the log's path."""
    job, log = _job(ways, DEBIAN, "true")
    ways.user.succeed("wait", job)
    lines = (b"2026-01-31 12:00:00 step %07d loss 0.%06d\n" % (n, n * 7) for n in range(20_000))
    block = b"".join(lines)
    with log.open("wb") as file:
        while file.tell() < megabytes * MEGABYTE:
            file.write(block)
    try:
        yield job, _path_of_log(job)
    finally:
        ways.lab.end_jobs(DEBIAN, {job: None})


def _job(ways: Ways, ctid: int, *program: str) -> tuple[str, Path]:
    """A new job, and its log as a path of this machine."""
    job = ways.user.start_job(f"{ways.lab.node_of(ctid)}:{ctid}", "--", *program)
    first = ways.lab.command("pid", str(ctid)).strip()
    return job, Path(f"/proc/{first}/root{_path_of_log(job)}")


def _path_of_log(job: str) -> str:
    return f"/var/lib/launchpad/jobs/{job}/log"


def _cpu(pid: int) -> float:
    """Seconds that a process and its ended children have taken (proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
