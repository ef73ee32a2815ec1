"""What tail shows, through real ssh and real containers, and that nothing of it stays behind."""

from __future__ import annotations

import os
import pty
import signal
import time
from typing import TYPE_CHECKING

import pytest

from support.far_processes import wait_for_followers, wait_until_gone
from support.lab import BUSYBOX, DEBIAN, Lab
from support.lines import wait_for_line
from support.waiting import wait_until

if TYPE_CHECKING:
    from support.client import Client

TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
BOTH = pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX])

AWKWARD = r"a\0b\377\36\342\202\n\r\n\033[2Jred\033[0mno newline"


def _ended_job(launchpad: Client, ctid: int, *words: str) -> str:
    job = launchpad.start_job(f"pve1:{ctid}", "--", *words)
    launchpad.run("wait", job)
    return job


def _on_terminal(launchpad: Client, *words: str, columns: int = 80) -> bytes:
    """What a call writes to a terminal."""
    ours, theirs = pty.openpty()
    process = launchpad.start(*words, stdout=theirs, env={"TERM": "xterm", "COLUMNS": str(columns)})
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # the other side is closed: EIO
            break
        if not data:
            break
        shown += data
    os.close(ours)
    process.wait(30)
    return shown.replace(b"\r\n", b"\n")


@BOTH
@TRANSPORTS
def test_to_a_pipe_the_log_goes_byte_for_byte(
    lab: Lab, launchpad: Client, ctid: int, transport: str
) -> None:
    job = _ended_job(launchpad, ctid, "printf", AWKWARD)
    log = lab.run(ctid, "cat", f"/var/lib/launchpad/jobs/{job}/log").stdout
    assert log.startswith(b"a\0b\xff\x1e\xe2\x82\n")
    for words in (("-n", "all"), ("-f",), ("-n", "+1"), ("-n", "100", "--raw")):
        assert launchpad.succeed("tail", "--transport", transport, *words, job).stdout == log
    assert launchpad.succeed("tail", "-n", "1", job).stdout == log.split(b"\n")[-1]
    assert launchpad.succeed("tail", "-n", "+2", job).stdout == log.split(b"\n", 1)[1]
    assert launchpad.succeed("tail", "-n", "0", job).stdout == b""


@BOTH
def test_ten_lines_are_shown_unless_asked_for_otherwise(launchpad: Client, ctid: int) -> None:
    job = _ended_job(launchpad, ctid, "seq", "1", "30")
    assert launchpad.succeed("tail", job).out.split() == [str(n) for n in range(21, 31)]
    assert launchpad.succeed("tail", "-n3", job).out.split() == ["28", "29", "30"]
    assert launchpad.succeed("tail", "-n", "+29", job).out.split() == ["29", "30"]
    newest = launchpad.succeed("tail", "-n", "1")
    assert newest.out == "30\n"
    assert job in newest.err


def test_wrong_numbers_of_lines_are_refused(launchpad: Client) -> None:
    for lines in ("x", "-3", "1.5", "+", "+-1", ""):
        outcome = launchpad.run("tail", "-n", lines, "any")
        assert outcome.code == 125, str(outcome)
        assert "+10" in outcome.err, str(outcome)


@BOTH
def test_a_progress_bar_is_one_line_in_its_last_state(launchpad: Client, ctid: int) -> None:
    script = r"i=0; while [ $i -lt 2000 ]; do printf '\r%d/2000' $i; i=$((i + 1)); done"
    job = _ended_job(launchpad, ctid, "sh", "-c", script)
    assert _on_terminal(launchpad, "tail", "-n", "1", job) == b"1999/2000\n"
    assert launchpad.log(job).startswith(b"\r0/2000\r1/2000")


def test_a_terminal_is_protected(launchpad: Client) -> None:
    text = r"\033[2J\033]0;pwn\007\033]52;c;eA==\007\033[31mok\033[0m \377\n"
    job = _ended_job(launchpad, DEBIAN, "printf", text)
    assert _on_terminal(launchpad, "tail", job) == "\x1b[31mok\x1b[0m \ufffd\n".encode()
    assert _on_terminal(launchpad, "--no-color", "tail", job) == "ok \ufffd\n".encode()
    assert b"\x1b[2J\x1b]0;pwn\x07" in _on_terminal(launchpad, "tail", "--raw", job)


def test_long_lines_are_neither_cut_nor_wrapped(launchpad: Client) -> None:
    job = _ended_job(launchpad, DEBIAN, "sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x; echo")
    line = b"x" * 5000 + b"\n"
    assert launchpad.succeed("tail", job, env={"COLUMNS": "20"}).stdout == line
    assert _on_terminal(launchpad, "tail", job, columns=20) == line


@BOTH
def test_an_unfinished_line_is_shown_on_a_terminal(launchpad: Client, ctid: int) -> None:
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", "printf 'Password: '; sleep 60")
    ours, theirs = pty.openpty()
    process = launchpad.start("tail", "-f", job, stdout=theirs, env={"TERM": "xterm"})
    os.close(theirs)
    assert os.read(ours, 100) == b"Password: "
    process.kill()
    os.close(ours)


@BOTH
def test_fifty_megabytes_arrive_whole(launchpad: Client, ctid: int) -> None:
    script = "yes 'a line of some length' | head -n 2000000"
    job = _ended_job(launchpad, ctid, "sh", "-c", script)
    log = launchpad.succeed("tail", "-n", "1000000", job).stdout
    assert log == b"a line of some length\n" * 1_000_000


def test_a_huge_line_costs_no_memory(launchpad: Client) -> None:
    script = "head -c 200000000 /dev/zero | tr '\\0' x; sleep 60"
    job = launchpad.start_job("pve1:101", "--confirm", "2", "--", "sh", "-c", script)
    wait_until(lambda: launchpad.status(job)["log_bytes"] == 200_000_000, 30, "the whole line")
    limit = ("prlimit", f"--as={300 * 1024 * 1024}")
    outcome = launchpad.run("tail", "-n", "5", job, prefix=limit)
    assert outcome.code == 0, outcome.err
    assert len(outcome.stdout) == 200_000_000
    follow = launchpad.start("tail", "-f", job, prefix=limit)
    assert follow.stdout is not None
    assert follow.stdout.read(1000) == b"x" * 1000
    follow.stdout.close()
    follow.wait(20)
    assert follow.stderr is not None
    assert follow.stderr.read() == b""
    launchpad.run("kill", "-s", "KILL", job)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@BOTH
def test_a_reader_that_goes_away_ends_the_follow_quietly(
    launchpad: Client, ctid: int, unbuffered: str
) -> None:
    script = "while echo line; do sleep 0.2; done"
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", script)
    env = {"PYTHONUNBUFFERED": unbuffered or None}
    process = launchpad.start("tail", "-f", job, env=env)
    far = wait_for_followers(job)
    assert process.stdout is not None
    assert process.stdout.readline() == b"line\n"
    process.stdout.close()
    process.wait(20)
    assert process.stderr is not None
    assert process.stderr.read() == b""
    wait_until_gone(far)


@pytest.mark.parametrize("how", ["INT", "TERM", "KILL"])
@BOTH
@TRANSPORTS
def test_nothing_stays_when_the_client_ends(
    launchpad: Client, lab: Lab, ctid: int, transport: str, how: str
) -> None:
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", "echo one; sleep 300")
    process = launchpad.start("tail", "--transport", transport, "-f", job)
    assert process.stdout is not None
    assert process.stdout.readline() == b"one\n"
    far = wait_for_followers(job)
    process.send_signal(getattr(signal, f"SIG{how}"))
    process.wait(10)
    if how == "INT":
        assert process.returncode == 130
        assert process.stderr is not None
        assert process.stderr.read().strip() == b""
    wait_until_gone(far)
    wait_until(lambda: not launchpad.processes_of(process), 10, "nothing left on this machine")
    assert launchpad.status(job)["state"] == "running"


@BOTH
@TRANSPORTS
def test_nothing_stays_when_the_line_goes_silent(
    launchpad: Client, lab: Lab, ctid: int, transport: str
) -> None:
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", "echo one; sleep 300")
    process = launchpad.start("tail", "--transport", transport, "-f", job)
    assert process.stdout is not None
    assert process.stdout.readline() == b"one\n"
    far = wait_for_followers(job)
    with wait_for_line(lab, process.pid).dropped():
        wait_until_gone(far, 20)
    process.kill()
    process.wait(10)


@BOTH
def test_several_jobs_in_whole_lines(launchpad: Client, ctid: int) -> None:
    script = 'for i in 1 2 3; do printf "$1 "; sleep 0.2; echo $i; done; exit $2'
    one, two = (
        launchpad.start_job("-n", name, f"pve1:{ctid}", "--", "sh", "-c", script, "sh", name, code)
        for name, code in (("one", "0"), ("two", "3"))
    )
    outcome = launchpad.run("tail", "-f", one, two)
    assert outcome.code == 3, str(outcome)
    lines = sorted(outcome.out.splitlines())
    assert lines == ["one 1", "one 2", "one 3", "two 1", "two 2", "two 3"]
    assert f"{one} exited with code 0" in outcome.err
    assert f"{two} exited with code 3" in outcome.err
    prefixed = launchpad.run("tail", "-f", "--prefix", "-n", "1", one, two)
    assert sorted(prefixed.out.splitlines()) == sorted([f"{one} | one 3", f"{two} | two 3"])
    both = launchpad.succeed("tail", "-n", "1", one, two)
    assert both.out == "one 3\ntwo 3\n"


@BOTH
def test_a_job_that_empties_its_log_is_reported(launchpad: Client, ctid: int) -> None:
    script = "echo one; sleep 3; echo x >/dev/stderr; echo two; sleep 2"
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", script)
    outcome = launchpad.succeed("tail", "-f", job)
    assert outcome.stdout.startswith(b"one\n")
    assert "was emptied when it had 4 bytes" in outcome.err
    assert any("empt" in note for note in launchpad.status(job)["notes"])
    assert "/dev/stderr" in launchpad.succeed("tail", "--help").out


@BOTH
@TRANSPORTS
def test_run_follow_misses_nothing(launchpad: Client, ctid: int, transport: str) -> None:
    script = "printf 'first\\000'; seq 1 20000; exit 4"
    outcome = launchpad.run(
        "run", "-f", "--transport", transport, f"pve1:{ctid}", "--", "sh", "-c", script
    )
    assert outcome.code == 4, outcome.err
    assert outcome.stdout == b"first\0" + b"".join(b"%d\n" % n for n in range(1, 20001))


@BOTH
def test_wait_tells_each_end_as_it_comes(lab: Lab, launchpad: Client, ctid: int) -> None:
    go = f"/var/tmp/wait-{launchpad.home.parent.name}"
    script = 'until [ -e "$1" ]; do sleep 0.1; done; exit "$2"'
    jobs = [
        launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", script, "sh", f"{go}.{code}", code)
        for code in ("5", "6", "0")
    ]
    late = launchpad.run("wait", "--timeout", "0.5s", *jobs)
    assert late.code == 124, str(late)
    waiting = launchpad.start("wait", *jobs)
    assert waiting.stderr is not None
    for job, code in ((jobs[1], "6"), (jobs[2], "0"), (jobs[0], "5")):
        lab.run(ctid, "touch", f"{go}.{code}")
        line = waiting.stderr.readline().decode()
        lab.run(ctid, "rm", f"{go}.{code}")
        assert line.startswith(f"{job} exited with code {code} ")
    assert waiting.wait(20) == 5
    assert launchpad.run("wait", jobs[1], jobs[0]).code == 6


def test_wait_is_quick_and_asks_once(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("pve1:101", "--", "sleep", "3")
    began = time.monotonic()
    launchpad.expect_end(job, code=0)
    assert time.monotonic() - began < 6
    assert launchpad.succeed("wait", job).seconds < 2


def test_ctrl_c_of_wait_harms_nothing(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("pve1:101", "--", "sleep", "60")
    process = launchpad.start("wait", job)
    wait_for_line(lab, process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert launchpad.status(job)["state"] == "running"


@pytest.mark.exclusive
def test_a_container_that_stops_ends_the_follow_with_what_happened(
    lab: Lab, launchpad: Client
) -> None:
    job = launchpad.start_job("pve1:104", "--", "sh", "-c", "echo one; sleep 300")
    process = launchpad.start("tail", "-f", job)
    assert process.stdout is not None
    assert process.stdout.readline() == b"one\n"
    with lab.stopped(104):
        time.sleep(3)
    _, stderr = process.communicate(timeout=90)
    assert process.returncode == 125, stderr
    assert b"is lost, container restarted" in stderr
