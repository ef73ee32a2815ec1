"""What a start costs, beside the typed line and the peers; and what it says when nothing starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.table import Row, in_turn, ratio
from benchmarks.ways import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.peers import Peers
    from benchmarks.ways import Ways


def starting(ways: Ways, peers: Peers | None, rounds: int, delay: str) -> Iterator[Row]:
    """Starts of all ways in the same rounds. ``delay``: pct's own (seconds)."""
    actions: dict[str, Callable[[], float]] = {
        "typed": lambda: ways.one_liner().seconds(),
        "typed, shared": lambda: ways.one_liner_shared().seconds(),
        "paramiko": lambda: ways.run_paramiko().seconds(),
        "shared": lambda: ways.run_shared().seconds(),
    }
    if peers is not None:
        actions |= {
            "ansible": lambda: peers.ansible_start().seconds(),
            "ansible, asked": lambda: peers.ansible_start_and_status().seconds(),
            "pyinfra": lambda: peers.pyinfra().seconds(),
            "fabric": lambda: peers.fabric().seconds(),
            "nq": lambda: peers.nq().seconds(),
        }
    with ways.lab.switch("delay", delay):
        times = in_turn(rounds, actions)
    note = f"(pct {delay} s)"
    pair = ("paramiko", "typed")
    yield ratio(f"run, paramiko, cold ÷ typed line, cold {note}", times, pair, 2.0, 1.5)
    pair = ("shared", "typed")
    yield ratio(f"run, shared connection ÷ typed line, cold {note}", times, pair, 0.8, 0.6)
    pair = ("shared", "typed, shared")
    yield ratio(f"run, shared ÷ typed line, ControlMaster {note}", times, pair)
    if peers is not None:
        yield from _beside_peers(times, note)


def _beside_peers(times: dict[str, list[float]], note: str) -> Iterator[Row]:
    start = f"Ansible, async start {note}"
    pair = ("ansible", "paramiko")
    yield ratio(f"{start} ÷ run, paramiko", times, pair, 4, 6, at_least=True)
    pair = ("ansible", "shared")
    yield ratio(f"{start} ÷ run, shared connection", times, pair, 10, 15, at_least=True)
    pair = ("ansible, asked", "paramiko")
    yield ratio(f"Ansible, async start and async_status {note} ÷ run, paramiko", times, pair)
    pair = ("pyinfra", "paramiko")
    yield ratio(f"pyinfra {note} ÷ run, paramiko", times, pair, 1.7, 2.5, at_least=True)
    yield ratio(f"Fabric {note} ÷ run, paramiko", times, ("fabric", "paramiko"))
    yield ratio(f"run, paramiko ÷ nq in the container, cold {note}", times, ("paramiko", "nq"))


def missing(ways: Ways, peers: Peers | None) -> Iterator[Row]:
    """The exit code of each start when there is no such program."""
    starts = {"typed line": ways.one_liner}
    if peers is not None:
        starts |= {
            "Ansible, async start": peers.ansible_start,
            "pyinfra": peers.pyinfra,
            "Fabric": peers.fabric,
            "nq": peers.nq,
        }
    for name, start in starts.items():
        yield Row(f"exit code for a program that does not exist: {name}", start(MISSING).code())
    code = ways.run_paramiko(MISSING).code()
    what = "exit code for a program that does not exist: run"
    yield Row(what, code, 1, at_least=True)
