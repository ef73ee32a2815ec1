"""What became of a job: every combination of records and processes has one true answer."""

from __future__ import annotations

from signal import SIGINT, SIGKILL, SIGSEGV, SIGTERM, SIGUSR1

import pytest

from launchpad.errors import Layer
from launchpad.frames import Frame
from launchpad.job import EndRecord, Identity, JobId
from launchpad.replies import JobFacts, KillRecord, Member, Now, Process, parse_facts
from launchpad.state import (
    Exited,
    JobState,
    Killed,
    Lost,
    Reason,
    Running,
    Starting,
    Unreachable,
    is_ended,
)
from launchpad.verdict import Place, job_of, judge

NOW = Now(1_700_000_100, 20_000, ("boot", 30), 0, oom_own=True)
IDENTITY = Identity(4711, 10_000, 4711, "boot", 30)
BEFORE_RESTART = Identity(4711, 10_000, 4711, "older-boot", 30)
PLACE = Place("pve1:101", "pve1", "pve1", 101, "/var/lib/launchpad")
MEMBER = Member(4712, 10_001, "S", 100, 10, "worker")


def facts(**changes: object) -> JobFacts:
    values: dict[str, object] = {
        "directory": True,
        "identity": IDENTITY,
        "started_at": 1_700_000_000,
    }
    return JobFacts(JobId("train-aaaaaa"), **(values | changes))  # type: ignore[arg-type]


def end(
    code: int = 0, *, killed: bool = False, oom: tuple[int, int] = (0, 0), **changes: bool
) -> EndRecord:
    values = {"oom_own": True, "stopped": False} | changes
    return EndRecord(
        killed=killed,
        code=code,
        at=1_700_000_050,
        ticks=15_000,
        oom_before=oom[0],
        oom_after=oom[1],
        **values,
    )


def kill(number: int = SIGTERM, reason: str = "launchpad") -> KillRecord:
    return KillRecord(reason, number, 1_700_000_040)  # type: ignore[arg-type]


ENDS: list[tuple[str, dict[str, object], JobState]] = [
    ("exit 0", {"end": end()}, Exited(0)),
    ("exit 137 by itself", {"end": end(137)}, Exited(137)),
    ("a real SIGKILL", {"end": end(SIGKILL, killed=True)}, Killed(SIGKILL, Reason.OTHER)),
    ("SIGSEGV", {"end": end(SIGSEGV, killed=True)}, Killed(SIGSEGV, Reason.OTHER)),
    (
        "the OOM killer",
        {"end": end(SIGKILL, killed=True, oom=(3, 4))},
        Killed(SIGKILL, Reason.OUT_OF_MEMORY),
    ),
    (
        "SIGKILL while the whole host's counter stood still",
        {"end": end(SIGKILL, killed=True, oom=(7, 7), oom_own=False)},
        Killed(SIGKILL, Reason.OTHER),
    ),
    (
        "SIGTERM from elsewhere, though the OOM killer struck too",
        {"end": end(SIGTERM, killed=True, oom=(3, 4))},
        Killed(SIGTERM, Reason.OTHER),
    ),
    (
        "the shell that hands on the code of a child lost to the OOM killer",
        {"end": end(137, oom=(3, 4))},
        Exited(137, Reason.OUT_OF_MEMORY),
    ),
    (
        "a parent that loses a child to the OOM killer and goes on",
        {"end": end(0, oom=(3, 4))},
        Exited(0),
    ),
    ("saved on TERM", {"end": end(0), "kill": kill()}, Exited(0, Reason.LAUNCHPAD)),
    (
        "killed by launchpad",
        {"end": end(SIGKILL, killed=True), "kill": kill()},
        Killed(SIGKILL, Reason.LAUNCHPAD),
    ),
    (
        "the time limit",
        {"end": end(SIGTERM, killed=True), "kill": kill(reason="time_limit")},
        Killed(SIGTERM, Reason.TIME_LIMIT),
    ),
    (
        "OOM after a checkpoint was asked for",
        {"end": end(SIGKILL, killed=True, oom=(0, 1)), "kill": kill(SIGUSR1)},
        Killed(SIGKILL, Reason.OUT_OF_MEMORY),
    ),
    (
        "a checkpoint signal that nobody handled",
        {"end": end(SIGUSR1, killed=True), "kill": kill(SIGUSR1)},
        Killed(SIGUSR1, Reason.LAUNCHPAD),
    ),
    ("exit after a checkpoint", {"end": end(0), "kill": kill(SIGUSR1)}, Exited(0)),
    ("exit 130 by itself", {"end": end(130)}, Exited(130)),
    (
        "SIGINT, which no shell can tell",
        {"end": end(130), "kill": kill(SIGINT)},
        Killed(SIGINT, Reason.LAUNCHPAD),
    ),
    (
        "a clean stop of the container",
        {"end": end(SIGTERM, killed=True, stopped=True), "identity": BEFORE_RESTART},
        Killed(SIGTERM, Reason.CONTAINER_STOPPED),
    ),
    (
        "saved while the container was stopped",
        {"end": end(0, stopped=True), "identity": BEFORE_RESTART},
        Exited(0, Reason.CONTAINER_STOPPED),
    ),
    (
        "somebody had sent TERM to the supervisor long before",
        {"end": end(0, stopped=True)},
        Exited(0),
    ),
    (
        "an end record beside a damaged main record",
        {"end": end(3), "identity": None, "damaged": {"main"}},
        Exited(3),
    ),
]

OTHERS: list[tuple[str, dict[str, object], JobState]] = [
    ("all is well", {"process": Process("running"), "supervisor_lives": True}, Running()),
    ("only the supervisor died", {"process": Process("running")}, Running(Reason.SUPERVISOR_LOST)),
    ("both died", {"process": Process("gone")}, Lost(Reason.SUPERVISOR_LOST)),
    ("a hard restart", {"identity": BEFORE_RESTART}, Lost(Reason.CONTAINER_RESTARTED)),
    (
        "restarted, PID 1's start alone betrays it (boot_id is the host's)",
        {"identity": Identity(4711, 10_000, 4711, "boot", 31)},
        Lost(Reason.CONTAINER_RESTARTED),
    ),
    (
        "the end record is damaged",
        {"process": Process("gone"), "damaged": {"end"}},
        Lost(Reason.RECORD_DAMAGED),
    ),
    (
        "the end record is damaged, and the supervisor runs --on-exit",
        {"process": Process("gone"), "damaged": {"end"}, "supervisor_lives": True},
        Lost(Reason.RECORD_DAMAGED),
    ),
    (
        "a zombie that nobody reaps tells its code",
        {"process": Process("zombie", 3 << 8)},
        Exited(3, Reason.SUPERVISOR_LOST),
    ),
    (
        "a zombie that nobody reaps tells its signal",
        {"process": Process("zombie", SIGKILL)},
        Killed(SIGKILL, Reason.SUPERVISOR_LOST),
    ),
    (
        "a zombie after a kill",
        {"process": Process("zombie", SIGTERM), "kill": kill()},
        Killed(SIGTERM, Reason.LAUNCHPAD),
    ),
    (
        "a core was dumped",
        {"process": Process("zombie", SIGSEGV | 0x80)},
        Killed(SIGSEGV, Reason.SUPERVISOR_LOST),
    ),
    (
        "the directory is gone, the process is not",
        {"directory": False, "process": Process("running")},
        Running(Reason.RECORD_DAMAGED),
    ),
    (
        "directory and process are gone",
        {"directory": False, "process": Process("gone")},
        Lost(Reason.RECORD_DAMAGED),
    ),
    (
        "no main record, but a process that bears the mark",
        {"identity": None, "damaged": {"main"}, "members": [MEMBER]},
        Running(Reason.RECORD_DAMAGED),
    ),
    (
        "no main record that can be read",
        {"identity": None, "damaged": {"main"}},
        Lost(Reason.RECORD_DAMAGED),
    ),
    ("just made", {"identity": None, "spec_at": 1_700_000_090}, Starting()),
    (
        "made long ago, and nothing since",
        {"identity": None, "spec_at": 1_700_000_060},
        Lost(Reason.NEVER_STARTED),
    ),
    ("nothing at all", {"identity": None, "directory": False}, Lost(Reason.NEVER_STARTED)),
    (
        "it reads its profile",
        {
            "identity": Identity(4711, 19_500, 4711, "boot", 30),
            "process": Process("running"),
            "supervisor_lives": True,
            "launching": True,
        },
        Starting(),
    ),
    (
        "its launch was killed long ago, it runs",
        {"process": Process("running"), "supervisor_lives": True, "launching": True},
        Running(),
    ),
]


@pytest.mark.parametrize(
    ("changes", "expected"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS]
)
def test_an_end_record_is_believed(changes: dict[str, object], expected: JobState) -> None:
    assert judge(facts(**changes), NOW) == expected


@pytest.mark.parametrize(
    ("changes", "expected"), [row[1:] for row in OTHERS], ids=[row[0] for row in OTHERS]
)
def test_without_an_end_record(changes: dict[str, object], expected: JobState) -> None:
    assert judge(facts(**changes), NOW) == expected


def test_what_is_not_known_is_neither_running_nor_an_end() -> None:
    state = judge(facts(process=Process("gone"), supervisor_lives=True, supervisor_pid=4700), NOW)
    assert isinstance(state, Unreachable)
    assert state.layer is Layer.JOB
    assert "4700" in state.what
    assert not is_ended(state)


def test_figures_of_a_running_job() -> None:
    job = job_of(
        facts(
            process=Process("running"),
            supervisor_lives=True,
            members=[MEMBER, Member(4711, 10_000, "R", 49_900, 90, "python3")],
            tail=b"step 1\nstep 2\n",
            log_bytes=14,
            log_at=1_700_000_099,
        ),
        NOW,
        PLACE,
    )
    assert job.elapsed_s == 100.0
    assert job.cpu_percent == 500.0
    assert job.rss_bytes == 100 * 4096
    assert (job.processes, job.last_line, job.last_output_at) == (2, "step 2", 1_700_000_099)
    assert job.log == "/var/lib/launchpad/jobs/train-aaaaaa/log"


def test_elapsed_time_is_no_matter_of_clocks() -> None:
    set_back = Now(NOW.epoch - 86_400, NOW.ticks, NOW.boot, 0, oom_own=True)
    job = job_of(facts(process=Process("running"), supervisor_lives=True), set_back, PLACE)
    assert job.elapsed_s == 100.0
    assert any("clock" in note for note in job.notes)


def test_members_that_live_on_are_told() -> None:
    job = job_of(facts(end=end(SIGKILL, killed=True), members=[MEMBER] * 7), NOW, PLACE)
    assert job.processes == 7
    assert any("7 of its processes live on" in note for note in job.notes)
    assert job.cpu_percent is None


def test_the_counter_of_the_oom_killer_is_told() -> None:
    job = job_of(facts(end=end(SIGKILL, killed=True, oom=(3, 4))), NOW, PLACE)
    assert job.oom_kills == 1
    assert any("3 -> 4" in note for note in job.notes)


def test_a_host_wide_counter_makes_it_probable_only() -> None:
    job = job_of(facts(end=end(SIGKILL, killed=True, oom=(3, 4), oom_own=False)), NOW, PLACE)
    assert job.state == Killed(SIGKILL, Reason.OUT_OF_MEMORY)
    assert job.oom_kills is None
    assert any("probably" in note for note in job.notes)


def test_a_log_that_was_emptied_is_told() -> None:
    found = parse_facts([Frame("job", ("train-aaaaaa",), b"directory\nemptied 1234 1700000000\n")])
    job = job_of(found.of(JobId("train-aaaaaa")), NOW, PLACE)
    assert any("emptied when it had 1,234 bytes" in note for note in job.notes)


def test_a_lost_job_has_no_end_time() -> None:
    job = job_of(facts(process=Process("gone")), NOW, PLACE)
    assert (job.ended_at, job.elapsed_s) == (None, None)
    assert job.started == "yes"


def test_a_job_that_never_was_has_not_started() -> None:
    assert job_of(facts(identity=None, directory=False), NOW, PLACE).started == "no"
