"""Where a `run` spends its time: its stations from inside, and the floors below them."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.table import Row, in_turn
from benchmarks.ways import SLEEP, TARGET, Call
from support.lab import DEBIAN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.ways import Ways

# Each station, and what passed since the one before.
STATIONS = {
    "interpreter": "Python starts",
    "request": "modules, the words of the command line, the configuration",
    "connected": "the way to the host: ssh -G asked; with paramiko also TCP, key exchange, login",
    "opened": "the channel is asked for: ssh is started, or a session opened",
    "index": "meanwhile: git, the record, the index",
    "inside": "the container's shell has answered: sshd, its shell, pct, lxc-attach, sh, bash",
    "launched": "launch.sh: user, directory, FIFOs, supervisor, profile, exec, proof",
    "end": "the answer is read, kept and told",
}


def spending(ways: Ways, rounds: int, place: Path) -> Iterator[Row]:
    """The stations of a run over paramiko and over a shared connection; then the floors."""
    clients = {"paramiko": (ways.user, ("--transport", "paramiko")), "shared": (ways.sharing, ())}
    for name, (client, how) in clients.items():
        words = ("run", *how, "--confirm", "0", TARGET, "--", *SLEEP.split())
        told = [_stations(words, client.environment, place / "phases") for _ in range(rounds + 1)]
        yield from _rows(name, told[1:])
    times = in_turn(rounds, {what: call.seconds for what, call in _floors(ways).items()})
    for what, each in times.items():
        yield Row(f"floor: {what}", statistics.median(each) * 1000, unit=" ms")


def _stations(
    words: tuple[str, ...], environment: Mapping[str, str], file: Path
) -> dict[str, float]:
    program = [sys.executable, str(Path(__file__).with_name("phases.py")), str(file), *words]
    Call(program, {**environment, "PHASES_BEGAN": str(time.monotonic())}).seconds()
    told: dict[str, float] = json.loads(file.read_text())
    return told


def _rows(name: str, told: list[dict[str, float]]) -> Iterator[Row]:
    for station, before in zip(STATIONS, (None, *STATIONS), strict=False):
        passed = [each[station] - (each[before] if before else 0) for each in told]
        yield Row(
            f"run, {name}: {STATIONS[station]}",
            statistics.median(passed) * 1000,
            unit=" ms",
            detail=f"{statistics.median(each[station] for each in told) * 1000:.0f} ms by then",
        )


def _floors(ways: Ways) -> dict[str, Call]:
    enter = f"/usr/sbin/pct exec {DEBIAN} --"
    return {
        "`python -c pass`": ways.python(),
        "`python -c 'import click'`": Call([sys.executable, "-c", "import click"]),
        "`ssh -G`": ways.ssh("-G", "pve1"),
        "ssh, cold, `true`": ways.ssh("pve1", "true"),
        "ssh, shared, `true`": ways.ssh_shared("pve1", "true"),
        "ssh, shared, `pct exec … true`": ways.ssh_shared("pve1", f"{enter} true"),
        "ssh, shared, `pct exec … bash -c :`": ways.ssh_shared("pve1", f"{enter} bash -c :"),
        "ssh, shared, `pct exec … bash -lc :`": ways.ssh_shared("pve1", f"{enter} bash -lc :"),
    }
