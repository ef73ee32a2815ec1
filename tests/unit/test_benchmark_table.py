"""What the benchmarks make of measured times."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.table import NOT_MET, Row, in_turn, percentile, ratio, spread
from support.client import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("value", "must", "stretch", "at_least", "verdict"),
    [
        (1.4, 2, 1.5, False, "stretch"),
        (1.5, 2, 1.5, False, "stretch"),
        (1.6, 2, 1.5, False, "met"),
        (2.0, 2, 1.5, False, "met"),
        (2.1, 2, 1.5, False, NOT_MET),
        (7.0, 4, 6, True, "stretch"),
        (6.0, 4, 6, True, "stretch"),
        (5.9, 4, 6, True, "met"),
        (4.0, 4, 6, True, "met"),
        (3.9, 4, 6, True, NOT_MET),
        (1.0, 1, None, False, "met"),
        (1.0, 1, None, True, "met"),
        (1.1, 1, None, False, NOT_MET),
        (9.9, None, None, False, ""),
        (math.nan, 1, 1, False, NOT_MET),
        (math.nan, 1, 1, True, NOT_MET),
    ],
)
def test_verdicts(
    value: float, must: float | None, stretch: float | None, at_least: bool, verdict: str
) -> None:
    assert Row("what", value, must, stretch, at_least=at_least).verdict == verdict


def test_a_row_as_markdown() -> None:
    row = Row("push ÷ tar | ssh", 1.256, 1.3, 1.1, detail="some")
    assert str(row) == r"| push ÷ tar \| ssh | 1.26 | ≤ 1.3 | ≤ 1.1 | met | some |"
    row = Row("Ansible ÷ run", 3.0, 4, 6, at_least=True)
    assert str(row) == "| Ansible ÷ run | 3 | ≥ 4 | ≥ 6 | **not met** |  |"
    assert str(Row("CPU", 0.25, unit=" %")) == "| CPU | 0.25 % |  |  |  |  |"


def test_a_ratio_is_of_medians_and_keeps_every_time() -> None:
    # One outlier in each, as a busy machine makes them.
    times = {"one": [4.0, 4.2, 99.0, 3.8, 4.0], "other": [1.0, 2.0, 2.0, 77.0, 2.0]}
    row = ratio("one ÷ other", times, ("one", "other"), 2.0, 1.5)
    assert (row.value, row.verdict) == (2.0, "met")
    assert row.samples == times
    assert row.detail.startswith("4000 ms (")
    document = json.loads(json.dumps(row.document()))
    assert (document["verdict"], document["at_least"]) == ("met", False)
    assert ratio("-", times, ("other", "one"), 0.6, at_least=True).verdict == NOT_MET


def test_spread_and_percentile() -> None:
    assert spread([0.1, 0.2, 0.3]) == "200 ms"
    assert spread([0.1, 0.2, 0.3, 0.4, 0.5]) == "300 ms (150 to 450)"
    hundred = [number / 100 for number in range(100, 0, -1)]
    assert percentile(hundred, 95) == 0.95
    assert percentile([3.0, 1.0, 2.0], 95) == 3.0
    assert percentile([3.0], 0) == 3.0


def test_all_are_timed_in_each_round_and_none_is_always_the_first() -> None:
    calls: list[str] = []

    def action(name: str) -> float:
        calls.append(name)
        return float(len(calls))

    names = ("a", "b", "c")
    actions = {name: (lambda name=name: action(name)) for name in names}
    times = in_turn(3, actions)
    assert "".join(calls) == "abc" + "abc" + "bca" + "cab"
    # What the first call of each took, before caches were warm, is no result.
    assert times == {"a": [4.0, 9.0, 11.0], "b": [5.0, 7.0, 12.0], "c": [6.0, 8.0, 10.0]}


def test_the_program_says_what_it_takes(tmp_path: Path) -> None:
    program = str(REPOSITORY / "benchmarks/run")
    done = subprocess.run(
        [sys.executable, program, "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--quick" in done.stdout
    wrong = subprocess.run(
        [sys.executable, program, "--part", "no-such"], capture_output=True, text=True, check=False
    )
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "invalid choice: 'no-such'" in wrong.stderr
