"""prune: what ended long ago goes, what lives or is a user's own file stays."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pytest

from launchpad.errors import ClientError, LineLost, UsageError
from launchpad.index import Entry
from launchpad.job import Identity, JobId, new_job_id
from launchpad.launcher import prune
from launchpad.launcher.contact import Contact
from launchpad.launcher.desk import Desk
from launchpad.launcher.ends import known_end
from launchpad.launcher.prune import WEEK, Pruning, Removal, Survey, targets_of
from launchpad.state import Exited
from launchpad.target import ThisMachine
from launchpad.transport.base import ConnectOptions
from support.userland import userland_contact
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from support.remote_jobs import RemoteJobs

HERE = ThisMachine()


@pytest.fixture
def desk(tmp_path: Path, jobs: RemoteJobs, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk whose only container is the userland of the shell under test."""

    def connect(_target: object, _options: object) -> Contact:
        return userland_contact(jobs.shell, str(jobs.state))

    monkeypatch.setattr(prune, "connect", connect)
    return Desk(ConnectOptions(), lambda _line: None, index_file=tmp_path / "index/index.sqlite3")


def run_prune(desk: Desk, older_than: float = WEEK) -> tuple[Survey, Removal]:
    with Pruning(desk) as pruning:
        survey = pruning.survey(HERE, older_than)
        assert survey.error is None, survey.error
        return survey, pruning.remove(survey)


def names_in(place: Path) -> list[str]:
    return sorted(each.name for each in place.iterdir())


def ended(jobs: RemoteJobs, job: JobId, age: float = 8 * 86400) -> JobId:
    """The job, once it has ended, as if that had been ``age`` seconds ago."""
    directory = jobs.directory(job)
    (record,) = wait_until(lambda: list(directory.glob("end,1,*")), what="end record")
    fields = record.name.split(",")
    fields[4] = str(int(time.time() - age))
    record.rename(directory / ",".join(fields))
    return job


def entry_of(jobs: RemoteJobs, job: JobId) -> Entry:
    return Entry(
        id=job,
        target="local",
        host=None,
        node=None,
        ctid=None,
        state_directory=str(jobs.state),
        log=str(jobs.directory(job) / "log"),
        record=json.dumps({"command": ["x"]}),
        created_at=time.time() - 9 * 86400,
    )


def test_only_what_ended_long_ago_goes(jobs: RemoteJobs, desk: Desk) -> None:
    old = ended(jobs, jobs.script("echo hello"))
    young = ended(jobs, jobs.script("exit 3"), age=6 * 86400)
    running = jobs.run("sleep", "600")
    desk.index.learn([entry_of(jobs, job) for job in (old, young, running)])
    survey, removal = run_prune(desk)
    assert [candidate.job.id for candidate in survey.candidates] == [old]
    assert survey.candidates[0].size == len("hello\n")
    assert survey.recent == 2
    assert removal == Removal((old,), (), ())
    assert names_in(jobs.state / "jobs") == sorted([young.text, running.text])
    assert {entry.id for entry in desk.index.entries()} == {young, running}
    assert [place.name for place in jobs.state.iterdir() if "pruned" in place.name] == []


def test_the_end_of_a_job_is_known_though_the_answer_was_lost(
    jobs: RemoteJobs, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ended(jobs, jobs.script("exit 7"))
    desk.index.learn([entry_of(jobs, job)])
    ask = Contact.ask

    def lose(self: Contact, names: Sequence[str], words: Iterable[str | bytes]) -> NoReturn:
        ask(self, names, words)
        raise LineLost("the line was cut")

    with Pruning(desk) as pruning:
        survey = pruning.survey(HERE, WEEK)
        with monkeypatch.context() as patch:
            patch.setattr(Contact, "ask", lambda self, *asked, **_more: lose(self, *asked))
            with pytest.raises(LineLost):
                pruning.remove(survey)
    assert not jobs.directory(job).exists()
    (entry,) = desk.index.entries()
    known = known_end(entry)
    assert known is not None
    assert known.state == Exited(7)


def test_a_thousand_jobs_that_are_known_are_looked_through(
    jobs: RemoteJobs, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ended(jobs, jobs.script("true"))
    copies = [new_job_id("many") for _ in range(1000)]
    for copy in copies:
        no_fifo = shutil.ignore_patterns("alive")
        shutil.copytree(jobs.directory(one), jobs.directory(copy), ignore=no_fifo)
    desk.index.learn([entry_of(jobs, job) for job in copies])
    # It was more than a minute.
    monkeypatch.setattr(prune, "_PATIENCE", 20.0)
    with Pruning(desk) as pruning:
        survey = pruning.survey(HERE, WEEK)
    assert survey.error is None
    assert {candidate.job.id for candidate in survey.candidates} == {one, *copies}


def test_a_survey_alone_removes_nothing(jobs: RemoteJobs, desk: Desk) -> None:
    old = ended(jobs, jobs.script("echo hello"))
    with Pruning(desk) as pruning:
        assert len(pruning.survey(HERE, WEEK).candidates) == 1
    assert jobs.directory(old).is_dir()


def test_a_log_of_ones_own_stays(jobs: RemoteJobs, desk: Desk, tmp_path: Path) -> None:
    log = tmp_path / "own.log"
    job = ended(jobs, jobs.run("echo", "mine", log=str(log)))
    _survey, removal = run_prune(desk)
    assert removal.removed == (job,)
    assert not jobs.directory(job).exists()
    assert log.read_text() == "mine\n"


def test_no_link_is_followed_out_of_the_state_directory(
    jobs: RemoteJobs, desk: Desk, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "spec").mkdir(parents=True)
    (outside / "precious").write_text("mine\n")
    job = ended(jobs, jobs.script("true"))
    (jobs.directory(job) / "linked").symlink_to(outside)
    (jobs.state / "pruned.1").symlink_to(outside)
    (jobs.state / "keys").mkdir()
    (jobs.state / "jobs/link-aaaaaa").symlink_to(outside)
    _survey, removal = run_prune(desk)
    assert removal.removed == (job,)
    assert not jobs.directory(job).exists()
    assert (outside / "precious").read_text() == "mine\n"
    assert names_in(outside) == ["precious", "spec"]


def test_a_job_with_a_living_process_stays(jobs: RemoteJobs, desk: Desk) -> None:
    job = ended(jobs, jobs.script("sleep 600 & exit 0"))
    survey, removal = run_prune(desk)
    assert [each.id for each in survey.busy] == [job]
    assert removal == Removal((), (), ())
    # Should one come to life between the survey and the removal, it is seen as well.
    asked = replace(survey, candidates=(prune.Candidate(survey.busy[0], 9e9, 0),))
    with Pruning(desk) as pruning:
        pruning.survey(HERE, WEEK)
        assert pruning.remove(asked).kept == (job,)
    assert jobs.directory(job).is_dir()


def test_what_is_gone_there_is_forgotten_here(jobs: RemoteJobs, desk: Desk) -> None:
    ended(jobs, jobs.script("true"))
    gone = new_job_id("gone")
    unsure = new_job_id("unsure")
    # It ran before the container was started again. Of the other one nobody knows if it started.
    identity = Identity(4711, 1, 4711, "00000000-0000-0000-0000-000000000000", 1)
    past = replace(entry_of(jobs, gone), identity=identity)
    desk.index.learn([past, entry_of(jobs, unsure)])
    survey, _removal = run_prune(desk)
    assert [entry.id for entry in survey.gone] == [gone]
    assert [entry.id for entry in desk.index.entries()] == [unsure]


def test_what_starts_leave_behind_goes_after_a_day(jobs: RemoteJobs, desk: Desk) -> None:
    living = jobs.run("sleep", "600", idempotency_key="one")
    (claimed,) = (jobs.state / "keys").iterdir()
    fences, keys = jobs.state / "fences", jobs.state / "keys"
    fences.mkdir(exist_ok=True)
    half, fresh = new_job_id("half").text, new_job_id("half").text
    for name in ("old-aaaaaa", "new-bbbbbb"):
        (fences / name).touch()
        (keys / name).symlink_to("../jobs/nothing-aaaaaa")
    for name in (half, fresh):
        (jobs.state / "jobs" / name).mkdir()
    stranger = jobs.state / "jobs/of a stranger"
    stranger.mkdir()
    day_ago = time.time() - 90_000
    for place in (fences / "old-aaaaaa", keys / "old-aaaaaa", claimed, stranger):
        os.utime(place, (day_ago, day_ago), follow_symlinks=False)
    os.utime(jobs.state / "jobs" / half, (day_ago, day_ago))
    run_prune(desk)
    assert names_in(fences) == ["new-bbbbbb"]
    assert names_in(keys) == sorted([claimed.name, "new-bbbbbb"])
    expected = sorted([living.text, fresh, "of a stranger"])
    assert names_in(jobs.state / "jobs") == expected


def test_what_a_killed_prune_left_goes_with_the_next(jobs: RemoteJobs, desk: Desk) -> None:
    ended(jobs, jobs.script("true"))
    left = jobs.state / "pruned.1/x-aaaaaa"
    left.mkdir(parents=True)
    run_prune(desk)
    assert not left.parent.exists()


def test_which_targets_are_meant(desk: Desk, jobs: RemoteJobs) -> None:
    with pytest.raises(UsageError, match="no target"):
        targets_of(desk, [], everything=False)
    with pytest.raises(UsageError, match="--all"):
        targets_of(desk, ["local"], everything=True)
    assert targets_of(desk, ["local", "local"], everything=False) == [HERE]
    assert targets_of(desk, [], everything=True) == []
    desk.index.learn([entry_of(jobs, new_job_id("a")), entry_of(jobs, new_job_id("b"))])
    assert targets_of(desk, [], everything=True) == [HERE]


def test_a_target_that_does_not_answer_is_told(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_target: object, _options: object) -> Contact:
        raise ClientError("not today")

    monkeypatch.setattr(prune, "connect", refuse)
    with Pruning(desk) as pruning:
        survey = pruning.survey(HERE, WEEK)
    assert survey.error is not None
    assert survey.candidates == ()
