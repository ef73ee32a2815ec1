"""The far side of tail: every byte once, at its place, and nothing left behind."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from launchpad.job import JobId
from launchpad.logstream import LogEmptied, LogMoved, StreamEnd
from launchpad.replies import parse_facts
from support.following import FarSide, is_alive
from support.launching import started
from support.lines import family_of
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.shells import Shell

FOLLOW = ("yes", "byte", "0")
# Bytes that a shell, a terminal or a careless parser would do something with.
AWKWARD = b"\x00\x1e\xff\n\r\n\\ %s \xe2\x82 \x1elaunchpad-\n" + bytes(range(256)) + b"no newline"


def _script(text: str, *words: bytes) -> list[bytes]:
    return [b"sh", b"-c", text.encode(), b"sh", *words]


def _supervisor(job: Path) -> int:
    return int((job / "main").read_text().split()[7])


def test_every_byte_up_to_the_last_one(shell: Shell, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(AWKWARD * 500)
    script = _script(
        'printf first; sleep 0.4; cat "$1"; sleep 0.4; exec head -c 100 "$1"',
        os.fsencode(source),
    )
    with started(shell, script) as job, FarSide(shell, job.directory, FOLLOW) as far:
        far.wait_for(b"first")
        end = far.finish()
        assert far.data == b"first" + AWKWARD * 500 + (AWKWARD * 500)[:100] == job.log()
        found = parse_facts(end.facts).of(JobId(job.directory.name))
        assert found.end is not None
        assert (found.end.killed, found.end.code) == (False, 0)
        assert far.header is not None
        assert far.header.words == ("0",)
        assert far.stderr == b""


def test_an_ended_job_is_delivered_whole(shell: Shell) -> None:
    with started(shell, _script("printf 'a\\nb'; exit 3")) as job:
        job.end()
        with FarSide(shell, job.directory, FOLLOW) as far:
            far.finish()
            assert far.data == b"a\nb"


def test_an_unknown_job_is_said_to_be_unknown(shell: Shell, tmp_path: Path) -> None:
    with FarSide(shell, tmp_path / "jobs" / "none-abcdef", FOLLOW) as far:
        wait_until(lambda: far.header, what="a header")
        assert far.header is not None
        assert far.header.name == "unknown"


def test_resumes_in_the_middle_of_a_line(shell: Shell) -> None:
    with started(shell, _script("printf 0123456789; sleep 1; printf abc")) as job:
        wait_until(lambda: job.log() == b"0123456789")
        proof = b"34567".hex()
        with FarSide(shell, job.directory, ("yes", "byte", "8", proof)) as far:
            far.finish()
            assert far.data == b"89abc"
            assert [type(event) for event in far.events] == [StreamEnd]


@pytest.mark.parametrize("now", [b"short", b"something else, and longer"])
def test_a_resume_notices_that_it_is_another_log_now(shell: Shell, now: bytes) -> None:
    with started(shell, _script("printf 0123456789; sleep 60")) as job:
        wait_until(lambda: job.log() == b"0123456789")
        (job.directory / "log").write_bytes(now)
        words = ("yes", "byte", "10", b"56789".hex())
        with FarSide(shell, job.directory, words) as far:
            far.wait_for(now)
            assert far.events == [LogEmptied(10)]
            assert far.after(LogEmptied) == now


def test_a_job_that_empties_its_own_log_is_noticed_at_the_right_place(shell: Shell) -> None:
    script = _script("echo one; echo two; sleep 2; echo x >/dev/stderr; echo three; sleep 2; echo")
    with started(shell, script) as job, FarSide(shell, job.directory, FOLLOW) as far:
        far.finish()
        assert [event for event in far.events if isinstance(event, LogEmptied)] == [LogEmptied(8)]
        # The descriptor behind /dev/stderr does not append: what it wrote is overwritten, or not.
        assert far.after(LogEmptied) == job.log()
        assert far.data == b"one\ntwo\n" + job.log()
        words = (job.directory / "emptied").read_text().split()
        assert words[:2] == ["1", "8"]
        assert words[-1] == "."


def test_a_log_that_was_emptied_and_grew_past_the_old_end_is_noticed(shell: Shell) -> None:
    with (
        started(shell, _script("echo the first text; sleep 60")) as job,
        FarSide(shell, job.directory, FOLLOW) as far,
    ):
        far.wait_for(b"text\n")
        time.sleep(1.5)  # it has looked at what it has read
        (job.directory / "log").write_bytes(b"quite another text, which is longer\n")
        far.wait_for_event(LogEmptied)
        far.wait_for(b"quite another text, which is longer\n")
        assert far.after(LogEmptied) == b"quite another text, which is longer\n"


def _two_lines(go: Path) -> list[bytes]:
    return _script('echo one; until [ -e "$1" ]; do sleep 0.1; done; echo two', os.fsencode(go))


@pytest.mark.parametrize("how", ["deleted", "renamed", "replaced"])
def test_a_log_that_loses_its_name_is_followed_on(shell: Shell, tmp_path: Path, how: str) -> None:
    go = tmp_path / "go"
    with (
        started(shell, _two_lines(go)) as job,
        FarSide(shell, job.directory, FOLLOW) as far,
    ):
        log = job.directory / "log"
        far.wait_for(b"one\n")
        if how == "deleted":
            log.unlink()
        else:
            log.rename(job.directory / "log.1")
        if how == "replaced":
            log.write_bytes(b"not of the job\n")
        far.wait_for_event(LogMoved)
        assert far.events == [LogMoved(how, 4)]  # type: ignore[arg-type]
        # The line may break just now: the job's own descriptor still leads to the file.
        with FarSide(shell, job.directory, ("yes", "byte", "4", b"one\n".hex())) as again:
            wait_until(lambda: again.header, what="a header")
            go.touch()
            far.finish()
            again.finish()
        assert far.data == b"one\ntwo\n"
        assert again.data == b"two\n"


def test_the_end_is_told_although_on_exit_still_runs(shell: Shell) -> None:
    script = _script("echo one; sleep 1; echo two; exit 4")
    with (
        started(shell, script, on_exit="exec sleep 100") as job,
        FarSide(shell, job.directory, FOLLOW) as far,
    ):
        supervisor = _supervisor(job.directory)
        far.finish(30)
        assert far.data == b"one\ntwo\n"
        assert is_alive(supervisor)
        for pid in reversed(family_of(supervisor)):
            with suppress(ProcessLookupError):  # `timeout` ends with what it ran
                os.kill(pid, signal.SIGKILL)


def test_a_lost_supervisor_ends_neither_job_nor_follow(shell: Shell) -> None:
    with (
        started(shell, _script("echo one; sleep 3; echo two")) as job,
        FarSide(shell, job.directory, FOLLOW) as far,
    ):
        far.wait_for(b"one\n")
        os.kill(_supervisor(job.directory), signal.SIGKILL)
        end = far.finish()
        assert far.data == b"one\ntwo\n"
        found = parse_facts(end.facts).of(JobId(job.directory.name))
        assert found.end is None


def test_nothing_is_left_when_the_client_goes(shell: Shell) -> None:
    with (
        started(shell, _script("echo one; sleep 60")) as job,
        FarSide(shell, job.directory, FOLLOW) as far,
    ):
        far.wait_for(b"one\n")
        assert far.processes()
        far.stdin.close()
        wait_until(lambda: not far.processes(), 20, "nothing left after the end of stdin")


def test_nothing_is_left_when_heartbeats_stop(shell: Shell) -> None:
    with (
        started(shell, _script("echo one; sleep 60")) as job,
        FarSide(shell, job.directory, FOLLOW, patience=4) as far,
    ):
        far.wait_for(b"one\n")
        until = time.monotonic() + 8
        while time.monotonic() < until:
            far.beat()
            time.sleep(0.5)
        assert far.processes(), "it has ended in spite of heartbeats"
        wait_until(lambda: not far.processes(), 20, "nothing left after the last heartbeat")


def test_nothing_is_left_when_the_line_dies_while_it_is_full(shell: Shell) -> None:
    script = _script("exec head -c 3000000 /dev/zero")
    with started(shell, script) as job:
        job.end()
        with FarSide(shell, job.directory, FOLLOW, patience=4, limit=1000) as far:
            wait_until(lambda: far.data, what="the stream has begun")
            for _ in range(16):
                far.beat()
                time.sleep(0.5)
            assert far.processes(), "it has ended although there were heartbeats"
            wait_until(lambda: not far.processes(), 20, "nothing left after the last heartbeat")


def test_nothing_is_left_when_nobody_reads(shell: Shell) -> None:
    with (
        started(shell, _script("while echo line; do sleep 0.1; done")) as job,
        FarSide(shell, job.directory, FOLLOW, limit=1) as far,
    ):
        far.wait_for(b"l")
        far.stdout.close()
        wait_until(lambda: not far.processes(), 20, "nothing left when nobody reads")


def test_a_follow_of_a_silent_job_costs_next_to_nothing(shell: Shell) -> None:
    with (
        started(shell, _script("echo one; sleep 60")) as job,
        FarSide(shell, job.directory, FOLLOW) as far,
    ):
        far.wait_for(b"one\n")
        before = far.cpu_seconds()
        time.sleep(4)
        assert far.cpu_seconds() - before < 0.25


def test_a_job_is_not_touched(shell: Shell) -> None:
    with started(shell, _script("echo one; sleep 6; echo two; exit 5")) as job:
        wait_until(lambda: job.log() == b"one\n")
        for words in (FOLLOW, ("no", "byte", "0")):
            with FarSide(shell, job.directory, words) as far:
                far.wait_for(b"one\n")
        assert job.end() == ("exited", 5)
        assert job.log() == b"one\ntwo\n"


def _lines(count: int) -> bytes:
    random_ = random.Random(count)  # noqa: S311
    lines = [bytes(random_.randbytes(random_.choice((0, 10, 90, 3000)))) for _ in range(count)]
    return b"\n".join(line.replace(b"\n", b" ") for line in lines)


_LOGS = {
    "empty": b"",
    "one newline": b"\n",
    "only newlines": b"\n" * 200_000,
    "no newline at the end": _lines(500),
    "newline at the end": _lines(500) + b"\n",
    "a line longer than any window": b"a\nb\n" + b"x" * 700_000 + b"\nc\n",
    "no newline at all": b"x" * 200_000,
    "exactly one block": b"x" * 65535 + b"\n",
    "a newline at the border of a block": b"x" * 65536 + b"\n" + b"y" * 65535,
}


@pytest.mark.parametrize("log", _LOGS)
def test_lines_are_counted_exactly(shell: Shell, tmp_path: Path, log: str) -> None:
    content = _LOGS[log]
    lines = _split(content)
    source = tmp_path / "source"
    source.write_bytes(content)
    with started(shell, [b"cat", os.fsencode(source)]) as job:
        job.end()
        for number in (0, 1, 10, 499, 1_000_000):
            for where in ("last", "line"):
                with FarSide(shell, job.directory, ("no", where, str(number))) as far:
                    assert far.finish().facts == ()
                at = max(0, len(lines) - number) if where == "last" else max(1, number) - 1
                assert far.data == b"".join(lines[at:]), (where, number)
                assert far.header is not None
                assert int(far.header.words[0]) == len(content) - len(far.data)


def _split(content: bytes) -> list[bytes]:
    """Lines as tail(1) counts them: nothing but a newline ends one."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def test_a_log_that_grows_faster_than_it_is_read_has_an_end(shell: Shell) -> None:
    with started(shell, [b"yes"]) as job:
        wait_until(lambda: (job.directory / "log").stat().st_size > 1_000_000)
        with FarSide(shell, job.directory, ("no", "byte", "0")) as far:
            far.finish()
            assert far.data == b"y\n" * (len(far.data) // 2)
            assert len(far.data) > 1_000_000
