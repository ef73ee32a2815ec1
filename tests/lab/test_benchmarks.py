"""The cheap pieces of the benchmarks, one round each: that they measure, not what."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.command import PARTS, Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.table import Row
    from support.lab import Lab


@pytest.fixture
def bench(lab: Lab) -> Iterator[Bench]:
    """One round, without installing anything. (A short path: sockets lie below it.)"""
    with tempfile.TemporaryDirectory(prefix="lpb.") as name:
        made = Bench(lab, Path(name), rounds=1, megabytes=1, with_peers=False)
        try:
            yield made
        finally:
            made.close()


def _rows(bench: Bench, part: str) -> dict[str, Row]:
    return {row.what: row for row in PARTS[part](bench)}


@pytest.mark.exclusive
def test_starts_are_measured(bench: Bench) -> None:
    rows = _rows(bench, "start")
    assert len(rows) == 3
    # Whatever it is, nobody starts Python, ssh and a shell in less.
    assert all(min(times) > 0.01 for row in rows.values() for times in row.samples.values())
    codes = {name.rpartition(": ")[2]: row.value for name, row in _rows(bench, "missing").items()}
    assert codes == {"typed line": 0, "run": 127}
    (row,) = _rows(bench, "help").values()
    assert row.value > 1
    processes, memory = _rows(bench, "job").values()
    assert (processes.verdict, memory.verdict) == ("stretch", "stretch")


@pytest.mark.exclusive
def test_a_log_is_measured(bench: Bench) -> None:
    from benchmarks.logs import BUSYBOX_S, latency

    row, idle = latency(bench.ways, BUSYBOX_S, "paramiko", 3, silence=0.5)
    assert 0 < row.value < 5000
    assert len(row.samples["delay"]) == 3
    assert idle.value < 100


@pytest.mark.exclusive
def test_the_stations_of_a_start_are_measured(bench: Bench) -> None:
    rows = _rows(bench, "spending")
    for name in ("paramiko", "shared"):
        parts = [row.value for what, row in rows.items() if what.startswith(f"run, {name}: ")]
        assert len(parts) == 8
        # Each station comes after the one before.
        assert min(parts) >= 0
    assert len(rows) == 2 * 8 + 8
