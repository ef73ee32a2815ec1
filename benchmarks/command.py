"""The command line of the benchmarks: which parts, how many rounds, where the results go."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import logs, memory, peers, spending, starting, verbs
from benchmarks.environment import cache, say
from benchmarks.table import HEAD, NOT_MET, Row
from benchmarks.ways import Ways
from launchpad.version import __version__
from support.lab import Lab, lab_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROUNDS, QUICK_ROUNDS = 15, 3
MEGABYTES, QUICK_MEGABYTES = 200, 20


@dataclass
class Bench:
    """What the parts need. ``with_peers``: whether others are timed too."""

    lab: Lab
    place: Path
    rounds: int
    megabytes: int
    with_peers: bool

    @cached_property
    def ways(self) -> Ways:
        """The command line of launchpad, and the typed line."""
        return Ways(self.lab, self.place)

    @cached_property
    def peers(self) -> peers.Peers | None:
        """The others, set up when they are first wanted."""
        return peers.Peers(self.ways, self.place / "peers") if self.with_peers else None

    def close(self) -> None:
        """End and remove what was made."""
        made = vars(self)
        if made.get("peers"):
            made["peers"].close()
        if "ways" in made:
            self.ways.close()


def _latencies(bench: Bench) -> Iterator[Row]:
    for limits in (logs.DEBIAN_S, logs.BUSYBOX_S):
        for transport in logs.TRANSPORTS:
            yield from logs.latency(bench.ways, limits, transport, 8 * bench.rounds)


PARTS: Mapping[str, Callable[[Bench], Iterator[Row]]] = {
    "start": lambda bench: starting.starting(bench.ways, bench.peers, bench.rounds, "0"),
    "slow-pct": lambda bench: starting.starting(bench.ways, bench.peers, bench.rounds, "0.25"),
    "missing": lambda bench: starting.missing(bench.ways, bench.peers),
    "help": lambda bench: verbs.helping(bench.ways, bench.rounds),
    "status": lambda bench: verbs.looking(bench.ways, bench.rounds),
    "latency": _latencies,
    "log": lambda bench: logs.throughput(bench.ways, bench.rounds, MEGABYTES),
    "push": lambda bench: verbs.pushing(
        bench.ways, max(QUICK_ROUNDS, bench.rounds // 3), bench.place
    ),
    "job": lambda bench: verbs.residing(bench.ways),
    "memory": lambda bench: memory.remembering(bench.ways, bench.place, bench.megabytes),
    "calls": lambda bench: verbs.calling(bench.ways, bench.place),
    "spending": lambda bench: spending.spending(bench.ways, bench.rounds, bench.place),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table. 1 where something is not as it must be."""
    options = _parse(arguments)
    lab = Lab()
    say("bringing up the lab")
    lab.up()
    with (
        tempfile.TemporaryDirectory(prefix="lpb.") as name,
        # It changes what others would see, and they would be seen by it.
        lab_share(lab.settings.home, exclusive=True),
    ):
        rounds = QUICK_ROUNDS if options.quick else options.rounds
        megabytes = QUICK_MEGABYTES if options.quick else MEGABYTES
        bench = Bench(lab, Path(name), rounds, megabytes, not options.without_peers)
        facts = _facts(rounds, with_peers=bench.with_peers)
        try:
            rows = list(_measured(bench, options.part or list(PARTS), facts))
        finally:
            bench.close()
    facts["load_after"] = os.getloadavg()
    _write(options.json or cache() / "results.json", facts, rows)
    return 1 if any(row.verdict == NOT_MET for row in rows) else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/run",
        description="How quick and how cheap launchpad is beside what else one would do: a table"
        " of ratios, measured in turn in one run, as Markdown on stdout and as JSON. Needs root on"
        " Debian, for the lab (tests/lab/lab), which stays up.",
    )
    parser.add_argument("--quick", action="store_true", help="3 rounds: a smoke test")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one; repeatable")
    parser.add_argument("--without-peers", action="store_true", help="install and time no others")
    parser.add_argument("--json", type=Path, metavar="FILE", help="default: in benchmarks/.cache")
    return parser.parse_args(arguments)


def _measured(bench: Bench, parts: Sequence[str], facts: Mapping[str, object]) -> Iterator[Row]:
    sys.stdout.write("".join(f"{name}: {value}  \n" for name, value in facts.items()))
    sys.stdout.write(f"\n{HEAD}\n")
    for part in parts:
        say(part)
        for row in PARTS[part](bench):
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
            yield row


def _facts(rounds: int, *, with_peers: bool) -> dict[str, object]:
    """Where and how it was measured."""
    others = [*peers.REQUIREMENTS, peers.COLLECTIONS] if with_peers else []
    return {
        "launchpad": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "rounds": rounds,
        "peers": ", ".join(others) or "none",
        "load_before": os.getloadavg(),
    }


def _write(file: Path, facts: Mapping[str, object], rows: Sequence[Row]) -> None:
    document = {"schema": 1, "facts": facts, "rows": [row.document() for row in rows]}
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    say(f"all of it as JSON, with each single time: {file}")
