"""The short forms of the fault harness and of the load test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from faults.loading import load
from faults.shaking import shake
from faults.step import make_step

from support.lab import DEBIAN

if TYPE_CHECKING:
    from pathlib import Path

    from support.client import Client
    from support.lab import Lab

SEED = 20


@pytest.mark.exclusive
@pytest.mark.timeout(420)
def test_nothing_is_untrue_whatever_breaks(lab: Lab, launchpad: Client, tmp_path: Path) -> None:
    tally = shake(lab, launchpad, tmp_path, seed=SEED, seconds=30, long_ones=False)
    assert tally.steps > 3
    assert not tally.broken, "\n".join(tally.lines())


def test_a_seed_decides_every_step() -> None:
    steps = [make_step(1, number, long_ones=True) for number in range(1, 50)]
    assert steps == [make_step(1, number, long_ones=True) for number in range(1, 50)]
    assert steps != [make_step(2, number, long_ones=True) for number in range(1, 50)]


@pytest.mark.exclusive
@pytest.mark.timeout(420)
def test_two_hundred_jobs_from_eight_clients_at_once(lab: Lab, tmp_path: Path) -> None:
    done = load(lab, tmp_path, DEBIAN, jobs=200, clients=8, at_a_time=40)
    assert not done.wrong(200)
