"""The index: what is remembered, who may read it, and many writers at once."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from launchpad.errors import ClientError
from launchpad.index import SCHEMA_VERSION, Entry, Index
from launchpad.job import Identity, JobId, new_job_id

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = Identity(4711, 123456, 4711, "0d1c", 17)


def entry(name: str = "train", *, at: float = 1000.0, job: str | None = None) -> Entry:
    return Entry(
        id=JobId(job) if job else new_job_id(name),
        target="pve1:101",
        host="pve1",
        node=None,
        ctid=101,
        state_directory="/var/lib/launchpad",
        log="/var/log/caf\udce9.txt",
        record='{"command":["true"]}',
        created_at=at,
    )


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path / "state/launchpad/index.sqlite3")


def test_a_missing_file_is_an_empty_index_and_looking_makes_no_file(index: Index) -> None:
    assert index.newest() is None
    assert index.entries() == []
    assert index.find("train") == []
    assert index.names() == []
    assert not index.path.parent.exists()


def test_what_was_added_comes_back_whole(index: Index) -> None:
    one = index.add(entry())
    assert index.get(one.id) == one
    assert index.newest() == one
    assert index.open_entries() == [one]


def test_files_are_for_their_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    index = Index(tmp_path / "state/launchpad/index.sqlite3")
    old = os.umask(0)
    try:
        index.add(entry())
    finally:
        os.umask(old)
    assert index.path.stat().st_mode & 0o777 == 0o600
    assert index.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_others_can_read_is_closed(tmp_path: Path) -> None:
    (tmp_path / "launchpad").mkdir(mode=0o755)
    Index(tmp_path / "launchpad/index.sqlite3").add(entry())
    assert (tmp_path / "launchpad").stat().st_mode & 0o777 == 0o700


def test_a_word_is_an_id_then_a_name_then_the_beginning_of_an_id(index: Index) -> None:
    old = index.add(entry(at=1, job="train-aaaaaa"))
    new = index.add(entry(at=2, job="train-aaaaab"))
    named_like_an_id = index.add(entry(at=3, job="train-aaaaaa-bbbbbb"))
    assert index.find("train-aaaaaa") == [old]
    assert index.find("train") == [new, old]
    assert index.find("train-aaaa") == [named_like_an_id, new, old]
    assert index.find("rain") == index.find("") == index.find("tr%") == index.find("tr_in") == []


def test_the_identity_and_the_end_are_noted_once(index: Index) -> None:
    one = index.add(entry())
    index.note_started(one.id, IDENTITY, "pve2", None)
    index.note_ends({one.id: {"state": "exited", "exit_code": 3}})
    index.note_ends({one.id: {"state": "lost"}})
    known = index.get(one.id)
    assert known is not None
    assert known.identity == IDENTITY
    assert (known.node, known.ctid) == ("pve2", 101)
    assert known.end == {"state": "exited", "exit_code": 3}
    assert index.open_entries() == []


def test_an_end_is_news_until_it_was_shown(index: Index) -> None:
    running, ended = index.add(entry()), index.add(entry())
    index.note_ends({ended.id: {"state": "exited"}})
    assert [each.id for each in index.unshown()] == [ended.id]
    index.mark_shown([running.id, ended.id])
    assert index.unshown() == []
    index.note_ends({running.id: {"state": "exited"}})
    assert [each.id for each in index.unshown()] == [running.id]


def test_learning_completes_what_is_known_and_forgets_nothing(index: Index) -> None:
    one = index.add(entry())
    index.note_started(one.id, IDENTITY, "pve1", 101)
    index.note_ends({one.id: {"state": "exited"}})
    other = entry("other")
    index.learn([replace(one, identity=None, node=None, ctid=None), other])
    known = index.get(one.id)
    assert known is not None
    assert (known.identity, known.node, known.ctid) == (IDENTITY, "pve1", 101)
    assert known.end == {"state": "exited"}
    assert index.get(other.id) == other


def test_forgetting(index: Index) -> None:
    one = index.add(entry())
    index.forget(one.id)
    index.forget(one.id)
    assert index.get(one.id) is None


def test_entries_since(index: Index) -> None:
    old, new = index.add(entry(at=10)), index.add(entry(at=20))
    assert index.entries() == [new, old]
    assert index.entries(since=20) == [new]
    assert index.entries(since=20.5) == []


_WRITER = """
import sys
from pathlib import Path
from launchpad.index import Entry, Index
from launchpad.job import Identity, new_job_id

index = Index(Path(sys.argv[1]))
sys.stdin.readline()
for number in range(5):
    job = new_job_id("train")
    index.add(Entry(job, "local", None, None, None, "/s", "/l", "{}", float(number)))
    index.note_started(job, Identity(1, 2, 1, "b", 3), None, None)
    index.note_ends({job: {"state": "exited"}})
    assert index.get(job).end == {"state": "exited"}
    index.names()
"""


def test_twenty_processes_at_once_lose_nothing(index: Index) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(index.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for _ in range(20)
    ]
    for writer in writers:  # all have been started: let them go together
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    failures = [writer.communicate()[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 20, failures
    entries = index.entries()
    assert len({each.id for each in entries}) == len(entries) == 100
    assert all(each.end == {"state": "exited"} and each.identity for each in entries)


def test_threads_may_share_one_index(index: Index) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                index.note_ends({index.add(entry()).id: {"state": "exited"}})
        except BaseException as error:  # noqa: BLE001 # told to the test below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(index.entries()) == 40


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(
            b"this is no database, and long enough to be looked at " * 99
        ),
        lambda path: path.write_bytes(path.read_bytes()[:5000]),
        lambda path: _execute(path, "DROP TABLE job"),
        lambda path: _execute(path, "UPDATE job SET identity = '[1'"),
        lambda path: _execute(path, "UPDATE job SET identity = '[1]'"),
        lambda path: _execute(path, "UPDATE job SET id = 'x y'"),
    ],
    ids=["not-sqlite", "cut-off", "no-table", "broken-json", "too-short", "no-id"],
)
def test_damage_is_an_error_that_says_how_to_go_on(index: Index, damage: object) -> None:
    one = index.add(entry())
    index.note_started(one.id, IDENTITY, None, None)
    assert callable(damage)
    damage(index.path)
    with pytest.raises(ClientError) as caught:
        index.entries()
    assert caught.value.what == f"the index {index.path} is damaged"
    assert caught.value.advice.startswith(f"mv {index.path} ")
    # And that is what helps.
    index.path.rename(index.path.with_suffix(".damaged"))
    assert index.add(one) == one


def _execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_an_index_of_a_newer_launchpad_is_left_alone(index: Index) -> None:
    index.add(entry())
    _execute(index.path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    before = index.path.read_bytes()
    with pytest.raises(ClientError, match="newer launchpad"):
        index.add(entry())
    with pytest.raises(ClientError, match="newer launchpad"):
        index.newest()
    assert index.path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "launchpad").write_text("a file is in the way")
    with pytest.raises(ClientError) as caught:
        Index(tmp_path / "launchpad/index.sqlite3").add(entry())
    assert "cannot be used" in caught.value.what
    assert "XDG_STATE_HOME" in caught.value.advice


def test_a_writer_that_dies_in_the_middle_leaves_no_half_entry(index: Index) -> None:
    one = index.add(entry())
    with closing(sqlite3.connect(index.path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM job")
    assert index.entries() == [one]
