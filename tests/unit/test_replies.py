"""Replies of facts.sh: whatever files, logs and process names hold, each job is seen for itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from launchpad import replies
from launchpad.frames import Frame, parse_frames
from launchpad.job import EndRecord, Identity, JobId, Launcher
from launchpad.replies import (
    Disk,
    KillRecord,
    Member,
    Now,
    Process,
    last_line,
    parse_end,
    parse_facts,
    parse_identity,
    parse_kill,
    parse_spec,
)

TRAIN, OTHER = JobId("train-aaaaaa"), JobId("other-bbbbbb")
NOISE = "/.//././//."
BOOT = "6c0bff84-8f0b-4c5b-8c1a-f2dc1d69610f"


def job_frame(job: JobId, *lines: str) -> Frame:
    return Frame("job", (job.text,), "".join(f"{line}\n" for line in lines).encode())


def logs_frame(*contents: tuple[JobId, bytes]) -> Frame:
    pieces = [b"==> %b%b/log <==\n%b" % (j.text.encode(), NOISE.encode(), c) for j, c in contents]
    return Frame("logs", (NOISE,), b"\n".join(pieces))


def test_a_reply_as_facts_sh_prints_it() -> None:
    frames = [
        Frame("begin", ("1",), b""),
        Frame("now", ("1700000100", "5000", BOOT, "30", "c2", "100663296", "99614720"), b""),
        Frame("disk", ("2000", "1990", "10", "1500"), b""),
        job_frame(
            TRAIN,
            "directory",
            f"main 4711 1000 4711 {BOOT} 30 1700000000 4700",
            "process running",
            "supervisor living",
            "kill kill,1,launchpad,15,1700000050,.",
            "asker me@laptop",
        ),
        job_frame(OTHER, "directory", "end end,1,killed,9,1700000090,4000,c1,c2,stopped,."),
        Frame("members", (), b"train-aaaaaa 4711 1000 S 250 2048 python3 (a b)\n"),
        Frame("sizes", (NOISE,), f"123 1700000099 train-aaaaaa{NOISE}/log\n".encode()),
        logs_frame((TRAIN, b"one\ntwo\n"), (OTHER, b"")),
        Frame("done", (), b""),
    ]
    facts = parse_facts(frames)
    assert facts.now is not None
    assert facts.now.boot == (BOOT, 30)
    assert (facts.now.oom, facts.now.oom_own) == (2, True)
    assert (facts.now.memory_limit, facts.now.memory_peak) == (96 << 20, 95 << 20)
    assert facts.disk == Disk(2000 << 10, 1990 << 10, 10 << 10, 1500 << 10)
    train, other = facts.of(TRAIN), facts.of(OTHER)
    assert train.kill is not None
    assert train.kill.by == "me@laptop"
    assert train.identity == Identity(4711, 1000, 4711, BOOT, 30)
    assert (train.started_at, train.supervisor_pid) == (1700000000, 4700)
    assert train.process == Process("running")
    assert train.supervisor_lives
    assert train.kill == KillRecord("launchpad", 15, 1700000050, "me@laptop")
    assert train.members == [Member(4711, 1000, "S", 250, 2048, "python3 (a b)")]
    assert (train.log_bytes, train.log_at, train.tail) == (123, 1700000099, b"one\ntwo\n")
    assert other.end == EndRecord(
        killed=True,
        code=9,
        at=1700000090,
        ticks=4000,
        oom_before=1,
        oom_after=2,
        oom_own=True,
        stopped=True,
    )
    assert other.tail == b""


@given(st.binary(max_size=300))
def test_no_log_can_speak_for_another_job(content: bytes) -> None:
    forged = content + b"\n==> other-bbbbbb/log <==\nforged\n==> other-bbbbbb//.//log <==\nforged"
    facts = parse_facts([logs_frame((TRAIN, forged), (OTHER, b"true\n"))])
    assert facts.of(TRAIN).tail == forged
    assert facts.of(OTHER).tail == b"true\n"


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_a_damaged_spec_hides_no_other(damaged: bytes, whole: bytes) -> None:
    record = json.dumps({"command": ["echo", whole.hex()], "started_by": "a@b"}).encode()
    header = f"{NOISE}/spec <==\n".encode()
    payload = (
        b"==> train-aaaaaa" + header + damaged + b"\n==> other-bbbbbb" + header + record + b"\n"
    )
    facts = parse_facts([Frame("specs", (NOISE,), payload)])
    spec = facts.of(OTHER).spec
    assert spec is not None
    assert spec.command == ("echo", whole.hex())


@given(st.lists(st.text(max_size=40), max_size=8))
def test_no_line_of_a_record_can_raise(lines: list[str]) -> None:
    keys = ("main", "end", "kill", "process", "supervisor", "known")
    frame = job_frame(TRAIN, *(f"{key} {line}" for key in keys for line in lines))
    facts = parse_facts([frame, Frame("now", tuple(lines), b"")])
    assert facts.of(TRAIN).id == TRAIN


@given(st.binary(max_size=2000))
def test_no_bytes_whatever_raise(data: bytes) -> None:
    marker = b"launchpad-00"
    frames = parse_frames(marker, data.replace(b"\xff", b"\n" + marker + b" job "))
    parse_facts(frames)


def test_damaged_records_are_named() -> None:
    facts = parse_facts(
        [job_frame(TRAIN, "directory", "main damaged", "end end,damaged", "kill kill,1,x,.")]
    )
    assert facts.of(TRAIN).damaged == {"main", "end", "kill"}


def test_what_is_said_later_counts() -> None:
    before = job_frame(TRAIN, "process running", "supervisor living")
    after = job_frame(TRAIN, "process gone", "supervisor gone")
    facts = parse_facts([before, after]).of(TRAIN)
    assert facts.process == Process("gone")
    assert not facts.supervisor_lives


@pytest.mark.parametrize(
    "name",
    [
        "end,1,exited,0,1700000000,5,c0,c0,-",
        "end,1,exited,0,1700000000,5,c0,c0,-,",
        "end,2,exited,0,1700000000,5,c0,c0,-,.",
        "end,1,exited,-1,1700000000,5,c0,c0,-,.",
        "end,1,exited,0,1700000000,5,c0,c0,-,.\n",
        "end,1,vanished,0,1700000000,5,c0,c0,-,.",
    ],
)
def test_a_cut_or_foreign_end_is_none(name: str) -> None:
    assert parse_end(name) is None


def test_a_zombie_keeps_its_status() -> None:
    facts = parse_facts([job_frame(TRAIN, "process zombie 256")])
    assert facts.of(TRAIN).process == Process("zombie", 256)


@pytest.mark.parametrize("words", [[], ["1"], ["1", "2", "x", "b", "3"], ["a", "2", "3", "b", "3"]])
def test_no_identity_from_other_words(words: list[str]) -> None:
    assert parse_identity(words) is None


def test_a_kill_record_of_the_time_limit() -> None:
    assert parse_kill("kill,1,time_limit,15,17,.") == KillRecord("time_limit", 15, 17)
    assert parse_kill("kill,1,somebody,15,17,.") is None


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{", b"\xff\xfe", b'"x"', b"[" * 100_000])
def test_what_is_no_spec_is_none(data: bytes) -> None:
    assert parse_spec(data) is None


def test_a_spec_with_foreign_types_is_read_as_far_as_it_goes() -> None:
    spec = parse_spec(b'{"command": [1], "shell": true, "time_limit_s": true, "launcher": "x"}')
    assert spec is not None
    assert (spec.command, spec.shell, spec.time_limit_s) == (None, None, None)


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (b"", None),
        (b"\n \n", None),
        (b"one\ntwo\n\n", "two"),
        (b"epoch 1\n 10%\r 20%\r", "20%"),
        (b"\xff\xfe", "\udcff\udcfe"),
        (b"a\nno newline", "no newline"),
    ],
)
def test_the_last_line(tail: bytes, expected: str | None) -> None:
    assert last_line(tail) == expected


def test_figures_of_gpus() -> None:
    frame = Frame("gpus", (), b"0, NVIDIA A100, 97, 40000, 81920\n1, B, [N/A], 1, 2\nNo devices\n")
    gpus = parse_facts([frame]).gpus
    assert gpus is not None
    assert gpus[0]["utilization_percent"] == 97
    assert gpus[0]["memory_used_bytes"] == 40000 * 1024 * 1024
    assert gpus[1]["utilization_percent"] is None
    assert len(gpus) == 2


def test_who_asked_stands_only_beside_a_kill_of_launchpads() -> None:
    def asked(*lines: str) -> KillRecord | None:
        return parse_facts([job_frame(TRAIN, *lines)]).of(TRAIN).kill

    assert asked("asker me@laptop") is None
    limit = asked("kill kill,1,time_limit,15,5,.", "asker me@laptop")
    assert limit == KillRecord("time_limit", 15, 5)
    kill = "kill kill,1,launchpad,15,5,."
    assert asked(kill, "asker " + "x" * 400) == KillRecord("launchpad", 15, 5, "x" * 400)
    assert asked(kill, "asker " + "x" * 401) == KillRecord("launchpad", 15, 5)


def test_what_nvidia_smi_prints() -> None:
    lines = [
        b"no devices, were, found, here",
        b"x, a, 1, 1, 1",
        b"0, NVIDIA A100, 93, 2, 3",
        b"[N/A]",
        b"1, H100, [N/A], [N/A], [N/A]",
    ]
    assert parse_facts([Frame("gpus", (), b"\n".join(lines))]).gpus == [
        {
            "index": 0,
            "name": "NVIDIA A100",
            "utilization_percent": 93,
            "memory_used_bytes": 2 * 1024 * 1024,
            "memory_total_bytes": 3 * 1024 * 1024,
        },
        {
            "index": 1,
            "name": "H100",
            "utilization_percent": None,
            "memory_used_bytes": None,
            "memory_total_bytes": None,
        },
    ]


def members_frame(*lines: str) -> Frame:
    return Frame("members", (), "\n".join(lines).encode())


def test_lines_of_members_that_cannot_be_read_hide_no_others() -> None:
    frame = members_frame(
        "train-aaaaaa 1 2 S 3 4",
        "train-aaaaaa  1 2 S 3 4 x",
        "no/id-aaaaaa 1 2 S 3 4 x",
        *(f"train-aaaaaa {' '.join(words)} x" for words in (["x", "2", "S", "3", "4"],)),
        *("train-aaaaaa 1 x S 3 4 x", "train-aaaaaa 1 2 S x 4 x", "train-aaaaaa 1 2 S 3 x x"),
        "train-aaaaaa 1 2 S 3 4 a b  c ",
        "other-bbbbbb 5 6 D 7 8 last",
    )
    facts = parse_facts([frame])
    assert facts.of(TRAIN).members == [Member(1, 2, "S", 3, 4, "a b  c ")]
    assert facts.of(OTHER).members == [Member(5, 6, "D", 7, 8, "last")]
    assert not facts.flooded
    assert facts.members == 2


def test_members_are_counted_over_all_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MEMBER_LIMIT", 3)
    line = "train-aaaaaa 1 2 S 3 4 x"
    exact = parse_facts([members_frame(line, line), members_frame(line)])
    assert (len(exact.of(TRAIN).members), exact.flooded) == (3, False)
    more = parse_facts(
        [members_frame(line, line), members_frame(line, line, line), members_frame()]
    )
    assert (len(more.of(TRAIN).members), more.flooded) == (3, True)


def test_jobs_are_counted_however_they_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "JOB_LIMIT", 1)
    first = job_frame(TRAIN, "directory")
    specs = Frame("specs", (NOISE,), f"==> {OTHER}{NOISE}/spec <==\n{{}}".encode())
    for frame in (
        job_frame(OTHER, "directory"),
        members_frame(f"{OTHER} 1 2 S 3 4 x", f"{TRAIN} 1 2 S 3 4 x"),
        logs_frame((OTHER, b"x"), (TRAIN, b"x")),
        specs,
    ):
        facts = parse_facts([first, frame, first])
        assert facts.flooded
        assert list(facts.jobs) == [TRAIN]
        assert facts.of(OTHER).directory is False
    assert parse_facts([first, first]).flooded is False


def test_sizes() -> None:
    lines = [
        "what is this",
        f"x 5 {TRAIN}{NOISE}/log",
        f"1 2 no/id{NOISE}/log",
        f"1 2 {OTHER}{NOISE}/log",
        f"1 2 {TRAIN}{NOISE}/else",
        f"3 4 {TRAIN}{NOISE}/log",
        f"5 6 {TRAIN}{NOISE}/spec",
        "",
    ]
    sizes = Frame("sizes", (NOISE,), "\n".join(lines).encode())
    facts = parse_facts([job_frame(TRAIN, "directory"), sizes])
    job = facts.of(TRAIN)
    assert (job.log_bytes, job.log_at, job.spec_at) == (3, 4, 6)
    assert OTHER not in facts.jobs
    bare = Frame("sizes", (), f"3 4 {TRAIN}/log".encode())
    assert parse_facts([job_frame(TRAIN, "directory"), bare]).of(TRAIN).log_bytes == 3


def test_as_many_sizes_as_jobs_can_have_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "JOB_LIMIT", 1)
    lines = [f"3 4 {TRAIN}{NOISE}/log", f"5 6 {TRAIN}{NOISE}/spec", f"7 8 {TRAIN}{NOISE}/log"]
    sizes = Frame("sizes", (NOISE,), "\n".join([*lines, "x"]).encode())
    job = parse_facts([job_frame(TRAIN, "directory"), sizes]).of(TRAIN)
    assert (job.log_bytes, job.spec_at) == (3, 6)


@pytest.mark.parametrize(
    ("word", "limit"),
    [("1", 1), ("9" * 17, int("9" * 17)), ("9" * 18, None), ("max", None), ("-", None), ("", None)],
)
def test_a_limit_of_memory(word: str, limit: int | None) -> None:
    now = parse_facts([Frame("now", ("1", "2", "b", "3", "c4", word, "5"), b"")]).now
    assert now is not None
    assert (now.memory_limit, now.memory_peak) == (limit, 5 if limit else None)


def test_specs_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*texts: str) -> list[bool]:
        ids = [JobId(f"{name}-aaaaaa") for name in "abc"[: len(texts)]]
        pieces = [f"==> {j}{NOISE}/spec <==\n{t}" for j, t in zip(ids, texts, strict=True)]
        facts = parse_facts([Frame("specs", (NOISE,), "\n".join(pieces).encode())])
        assert [facts.of(j).spec is None for j in ids] == [
            "spec" in facts.of(j).damaged for j in ids
        ]
        return [facts.of(j).spec is not None for j in ids]

    monkeypatch.setattr(replies, "_VALUES_LIMIT", 6)
    monkeypatch.setattr(replies, "SPEC_LIMIT", 30)
    assert read('{"command": ["a"]}', '{"command": ["a"]}', "{}") == [True, True, True]
    assert read('{"command": ["a", "b"]}', '{"command": ["a", "b"]}', "{}") == [True, True, False]
    assert read('{"command": ["' + "x" * 13 + '"]}') == [True]
    assert read('{"command": ["' + "x" * 14 + '"]}') == [False]


def test_of_what_is_said_about_one_job_only_so_much_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replies, "_PART_LIMIT", 20)
    monkeypatch.setattr(replies, "_TAIL_LIMIT", 4)
    job = parse_facts([job_frame(TRAIN, "directory", "x" * 9, "launching")]).of(TRAIN)
    assert (job.directory, job.launching) == (True, False)
    assert parse_facts([logs_frame((TRAIN, b"12345"))]).of(TRAIN).tail == b"2345"
    assert last_line(b"abc\ndef") == "def"
    assert last_line(b"abcdef") == "cdef"


@pytest.mark.parametrize(
    ("line", "launcher", "reason"),
    [
        ("launcher nohup no setsid, python3 or perl", Launcher.NOHUP, "no setsid, python3 or perl"),
        ("launcher setsid", Launcher.SETSID, None),
        ("launcher setsid  ", Launcher.SETSID, None),
        ("launcher screen for a reason", None, None),
    ],
)
def test_how_a_job_was_detached(line: str, launcher: Launcher | None, reason: str | None) -> None:
    facts = parse_facts([job_frame(TRAIN, line)]).of(TRAIN)
    assert (facts.launcher, facts.launcher_reason) == (launcher, reason)


def test_lines_that_stand_alone() -> None:
    facts = parse_facts([job_frame(TRAIN, "launching", "emptied 4096 1700000000")]).of(TRAIN)
    assert (facts.directory, facts.launching, facts.emptied) == (False, True, 4096)
    facts = parse_facts([job_frame(OTHER, "directory", "emptied x", "process stopped")]).of(OTHER)
    assert (facts.directory, facts.launching, facts.emptied) == (True, False, None)
    assert facts.process is None
    facts = parse_facts([job_frame(TRAIN, "emptied 12 x", "process zombie 9 x")]).of(TRAIN)
    assert (facts.emptied, facts.process) == (12, Process("zombie", 9))


@pytest.mark.parametrize(
    ("memory", "limit", "peak"),
    [
        ((), None, None),
        (("4096",), 4096, None),
        (("4096", "2048"), 4096, 2048),
        (("4096", "2048", "of a later version"), 4096, 2048),
        (("-", "2048"), None, None),
    ],
)
def test_the_moment_of_the_answer(
    memory: tuple[str, ...], limit: int | None, peak: int | None
) -> None:
    frame = Frame("now", ("1700000100", "5000", BOOT, "30", "h2", *memory), b"")
    now = Now(1700000100, 5000, (BOOT, 30), 2, False, limit, peak)
    assert parse_facts([frame]).now == now


def test_no_moment_is_read_from_too_few_words() -> None:
    assert parse_facts([Frame("now", ("1700000100", "5000", BOOT, "30"), b"")]).now is None


@pytest.mark.parametrize(
    ("rest", "started_at", "supervisor"),
    [
        (" 1700000000 4700", 1700000000, 4700),
        (" 1700000000 4700 of a later version", 1700000000, 4700),
        (" 1700000000", None, None),
        (" 1700000000 x", None, None),
        ("", None, None),
    ],
)
def test_an_identity_may_stand_alone(
    rest: str, started_at: int | None, supervisor: int | None
) -> None:
    line = f"known 4711 1000 4710 {BOOT} 30{rest}"
    facts = parse_facts([job_frame(TRAIN, line)]).of(TRAIN)
    assert facts.identity == Identity(4711, 1000, 4710, BOOT, 30)
    assert (facts.started_at, facts.supervisor_pid) == (started_at, supervisor)


def test_of_two_kills_in_one_second_the_later_line_counts() -> None:
    records = ("kill kill,1,launchpad,15,1700000050,.", "kill kill,1,launchpad,9,1700000050,.")
    facts = parse_facts([job_frame(TRAIN, *records)]).of(TRAIN)
    assert facts.kill == KillRecord("launchpad", 9, 1700000050)


@pytest.mark.parametrize(
    ("words", "disk"),
    [
        (("2000", "1990", "10"), Disk(2000 << 10, 1990 << 10, 10 << 10, None)),
        (("2000", "1990", "10", "-"), Disk(2000 << 10, 1990 << 10, 10 << 10, None)),
        (("2000", "1990", "10", "7", "x"), Disk(2000 << 10, 1990 << 10, 10 << 10, 7 << 10)),
        (("2000", "1990"), None),
        (("2000", "x", "10"), None),
    ],
)
def test_what_a_disk_has(words: tuple[str, ...], disk: Disk | None) -> None:
    assert parse_facts([Frame("disk", words, b"")]).disk == disk


def test_a_name_with_capitals_has_a_log_too() -> None:
    job = JobId("Train.V2-aaaaaa")
    assert parse_facts([logs_frame((job, b"one\n"))]).of(job).tail == b"one\n"
