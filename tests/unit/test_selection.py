"""Which jobs a word on the command line means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from launchpad.errors import JobUnknown, UsageError
from launchpad.index import Entry
from launchpad.job import JobId
from launchpad.launcher.desk import Desk
from launchpad.launcher.selection import (
    Everything,
    Jobs,
    list_ids,
    select,
    select_jobs,
    select_newest,
)
from launchpad.target import RemoteContainer, Target, ThisMachine
from launchpad.transport.base import ConnectOptions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(
        ConnectOptions(),
        say=lambda _line: None,
        index_file=tmp_path / "index.sqlite3",
        aliases={"gpu": "pve1:101", "spare": "pve2:102"},
    )


def add(
    desk: Desk, job: str, target: str = "pve1:101", ctid: int | None = 101, at: float = 0.0
) -> Entry:
    return desk.index.add(
        Entry(JobId(job), target, "pve1", None, ctid, "/var/lib/launchpad", "/log", "{}", at)
    )


def test_the_newest_of_a_name_is_first_and_says_so(desk: Desk) -> None:
    old, new = add(desk, "train-aaaaaa", at=1), add(desk, "train-bbbbbb", at=2)
    jobs = select_jobs(desk, "train")
    assert jobs == Jobs("train", (new, old), by_name=True)
    assert jobs.newest == new
    assert jobs.note == "newest of 2 named train"
    assert select_jobs(desk, "train-aaaaaa").note == ""


def test_a_prefix_must_mean_one_job(desk: Desk) -> None:
    one = add(desk, "train-aaaaaa")
    assert select_jobs(desk, "train-a").newest == one
    add(desk, "train-abbbbb")
    with pytest.raises(UsageError, match=r"may be any of 2 jobs: train-a\S+ train-a"):
        select_jobs(desk, "train-a")


def test_a_target_settles_doubts_however_it_is_spelt(desk: Desk) -> None:
    here = add(desk, "train-aaaaaa")
    there = add(desk, "train-bbbbbb", "ssh://root@pve2:2222/102", 102, at=9)
    for word in ("gpu/train", "pve1:101/train", "root@pve1:101/train", "pve1:101/train-a"):
        assert select_jobs(desk, word).entries == (here,)
    assert select_jobs(desk, "ssh://root@pve2:2222/102/train").entries == (there,)


def test_a_container_that_was_named_is_the_same_as_its_number(desk: Desk) -> None:
    named = add(desk, "train-aaaaaa", "pve1:trainer", 101)
    assert select_jobs(desk, "gpu/train").entries == (named,)


def test_what_nobody_knows_here_says_how_to_find_it(desk: Desk) -> None:
    with pytest.raises(JobUnknown) as caught:
        select_jobs(desk, "train-k3f9ab")
    assert caught.value.what == "no job train-k3f9ab in this machine's index"
    assert "launchpad status TARGET" in caught.value.advice
    assert caught.value.exit_code == 125


def test_the_nearest_name_is_suggested(desk: Desk) -> None:
    add(desk, "train-aaaaaa")
    with pytest.raises(JobUnknown) as caught:
        select_jobs(desk, "tarin")
    assert "did you mean train?" in caught.value.advice


def test_a_job_of_another_machine_is_learnt_from_its_target(desk: Desk) -> None:
    asked: list[Target] = []

    def learn(desk: Desk, target: Target) -> None:
        asked.append(target)
        add(desk, "train-cccccc")

    assert select_jobs(desk, "gpu/train", learn).newest.id.text == "train-cccccc"
    assert [str(target) for target in asked] == ["pve1:101"]
    select_jobs(desk, "gpu/train", learn)
    assert len(asked) == 1


def test_a_job_that_its_target_does_not_know_either(desk: Desk) -> None:
    with pytest.raises(JobUnknown, match="no job train on gpu"):
        select_jobs(desk, "gpu/train", lambda _desk, _target: None)


def test_a_job_and_an_alias_of_one_name_are_told_apart(desk: Desk) -> None:
    add(desk, "gpu-aaaaaa")
    for choose in (select, select_jobs):
        with pytest.raises(UsageError, match="both"):
            choose(desk, "gpu")
        assert isinstance(choose(desk, "gpu-aaaaaa"), Jobs)
        assert isinstance(choose(desk, "gpu/gpu"), Jobs)


def test_a_job_called_local(desk: Desk) -> None:
    add(desk, "local-aaaaaa", "local", None)
    with pytest.raises(UsageError, match="both"):
        select(desk, "local")


def test_where_a_target_may_stand_it_means_all_of_it(desk: Desk) -> None:
    assert select(desk, "local") == Everything(ThisMachine())
    for word in ("pve1:101", "gpu", "ssh://pve1/101", "pve1:trainer", "ssh://pve1/trainer"):
        chosen = select(desk, word)
        assert isinstance(chosen, Everything)
        assert isinstance(chosen.target, RemoteContainer)


@pytest.mark.parametrize("word", ["pve1:101/", "gpu/", "/train", "nosuch/train", "pve1:-h/x"])
def test_half_a_word_is_a_usage_error(desk: Desk, word: str) -> None:
    with pytest.raises(UsageError):
        select_jobs(desk, word)


def test_without_a_word_it_is_the_newest(desk: Desk) -> None:
    with pytest.raises(UsageError, match="knows no job yet"):
        select_newest(desk)
    add(desk, "train-aaaaaa", at=1)
    new = add(desk, "train-bbbbbb", at=2)
    assert select_newest(desk) == new


def test_long_lists_of_ids_are_cut(desk: Desk) -> None:
    entries = [add(desk, f"train-{letter * 6}") for letter in "abcdefghij"]
    assert list_ids(entries[:2]) == "train-aaaaaa train-bbbbbb"
    assert list_ids(entries).endswith("train-hhhhhh … and 2 more")
