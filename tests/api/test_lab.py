"""The Python API against real containers."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import launchpad as package
from launchpad import HostUnreachable, Job, JobUnknown, NoSuchDirectory
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from launchpad import Client
    from support.client import Client as Program
    from support.lab import Lab

TARGET, ALPINE = "pve1:101", "pve1:102"


def test_the_example_of_the_front_page(api: Client, launchpad: Program) -> None:
    job = api.run(TARGET, ["sh", "-c", "echo here: $PWD; sleep 60"], cwd="/tmp")
    assert job.first_lines == (b"here: /tmp",)
    assert job.start is not None
    assert job.start.state == "running"
    assert job.tail() == "here: /tmp\n"
    status = job.status()
    assert (status.state, status.pid, status.cwd) == ("running", job.start.pid, "/tmp")
    assert status.started_at is not None
    assert abs(status.started_at.timestamp() - time.time()) < 60
    assert launchpad.status(job.id)["pid"] == status.pid
    ended = job.kill()
    assert (ended.state, ended.signal, ended.reason) == ("killed", "SIGTERM", "launchpad")
    assert ended.processes == 0
    assert job.wait() == 128 + signal.SIGTERM
    assert job.kill() == ended, "nothing happens to what has ended"


def test_arguments_and_values_arrive_as_they_are(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "own $value")
    words: list[str | bytes] = ["a b", "", "$HOME", "*", "--", "é", b"\xff\n"]
    script = 'printf "%s|" "$@" "$MINE" "$GIVEN"'
    job = api.run(
        TARGET, ["sh", "-c", script, "sh", *words], env={"MINE": None, "GIVEN": "two\nlines"}
    )
    assert job.wait() == 0
    assert job.log() == b"a b||$HOME|*|--|\xc3\xa9|\xff\n|own $value|two\nlines|"
    status = job.status()
    assert status.env_names == ("MINE", "GIVEN")
    assert status.command is not None
    assert status.command[-1] == "\udcff\n"
    assert "own $value" not in repr(status)


def test_a_crash_is_a_job_that_has_ended(api: Client) -> None:
    job = api.run(TARGET, ["sh", "-c", "echo oh no; exit 3"])
    assert job.start is not None
    assert (job.start.state, job.start.exit_code) == ("exited", 3)
    assert job.wait() == 3


def test_a_shell_line(api: Client) -> None:
    job = api.run(ALPINE, shell="cd /tmp && echo $((6 * 7)) | tee /dev/null")  # noqa: S604
    assert job.wait(30) == 0
    assert job.log() == b"42\n"


def test_what_cannot_start_says_that_nothing_runs(api: Client) -> None:
    with pytest.raises(NoSuchDirectory) as caught:
        api.run(TARGET, ["true"], cwd="/no/such/place")
    assert caught.value.started == "no"
    assert caught.value.job_id is not None
    with pytest.raises(JobUnknown):
        api.find(caught.value.job_id)


def test_a_host_that_cannot_be_reached(api: Client) -> None:
    with pytest.raises(HostUnreachable) as caught:
        api.run("127.0.0.1:101", ["true"])
    assert caught.value.started == "no"
    assert str(caught.value.layer) == "ssh"


def test_ready_and_its_timeout(api: Client) -> None:
    script = "echo loading; sleep 0.5; echo step 1; exec sleep 60"
    job = api.run(TARGET, ["sh", "-c", script], ready=r"step \d", ready_timeout=30)
    assert job.ready is True
    job.kill("KILL")
    job = api.run(TARGET, ["sleep", "60"], ready="never", ready_timeout=0.2)
    assert job.ready is False
    assert job.start is not None
    assert job.start.state == "running"
    with pytest.raises(TimeoutError, match=job.id):
        job.wait(timeout=0.2)
    job.kill("KILL")


def test_a_signal_is_delivered_once(api: Client) -> None:
    script = 'trap "echo saved" USR1; echo up; while :; do sleep 0.1; done'
    job = api.run(TARGET, ["sh", "-c", script], ready="up")
    assert job.kill(signal.SIGUSR1).state == "running"
    wait_until(lambda: b"saved" in job.log(), what="the signal arrived")
    assert job.kill("KILL").signal == "SIGKILL"


def test_following_to_the_end(api: Client) -> None:
    job = api.run(TARGET, ["sh", "-c", "for n in 1 2 3; do echo $n; sleep 0.2; done"], confirm=0)
    assert b"".join(job.follow()) == b"1\n2\n3\n"
    assert b"".join(job.follow(lines=1)) == b"3\n"
    assert job.tail(2) == "2\n3\n"


def test_leaving_a_follow_leaves_the_job(api: Client) -> None:
    job = api.run(TARGET, ["sh", "-c", "while :; do echo on; sleep 0.1; done"])
    for _piece in job.follow():
        break
    assert job.status().state == "running"
    job.kill("KILL")


def test_an_idempotency_key_starts_one_job(api: Client) -> None:
    key = f"api-{os.getpid()}-{time.time_ns()}"
    one = api.run(TARGET, ["sleep", "60"], idempotency_key=key, confirm=0)
    two = api.run(TARGET, ["sleep", "60"], idempotency_key=key, confirm=0)
    assert two == one
    assert two.start is not None
    assert two.start.created is False
    one.kill("KILL")


def test_jobs_of_others_and_of_the_command_line(api: Client, launchpad: Program) -> None:
    job = launchpad.start_job(TARGET, "-n", "colleague", "--", "sleep", "60")
    assert api.find("colleague") == Job(job, TARGET)
    found = api.status(TARGET)
    assert job in {status.id for status in found}
    assert [status.id for status in api.status("colleague")] == [job]
    api.find(job).kill("KILL")
    with pytest.raises(HostUnreachable):
        api.status("127.0.0.1:101")


def test_push_and_pull(api: Client, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "train.py").write_text("print('trained')\n")
    (source / "big.pt").write_text("x")
    done = api.push(source, TARGET, f"/tmp/{tmp_path.name}", exclude=["*.pt"])
    assert done.files == 1
    job = api.run(TARGET, ["sh", "-c", "python3 train.py >result"], cwd=f"/tmp/{tmp_path.name}")
    assert job.wait() == 0
    back = api.pull(TARGET, f"/tmp/{tmp_path.name}", tmp_path / "back")
    assert back.files == 2
    assert (tmp_path / "back/result").read_text() == "trained\n"
    assert api.run(TARGET, ["rm", "-r", f"/tmp/{tmp_path.name}"]).wait() == 0


def test_once_more_with_a_directory_and_a_secret(
    api: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / f"tree-{os.getpid()}"
    tree.mkdir()
    (tree / "train.sh").write_text('echo "$LR ${#TOKEN} in ${PWD##*/}"\n')
    (tmp_path / "job.env").write_text("TOKEN=12345\n")
    first = api.run(
        TARGET, ["sh", "train.sh"], env={"LR": "1"}, env_file=tmp_path / "job.env", push=tree
    )
    assert (first.wait(), first.log()) == (0, f"1 5 in {tree.name}\n".encode())
    (tree / "train.sh").write_text('echo "again $LR ${#TOKEN}"\n')
    second = api.rerun(first, env={"LR": "2"})
    assert (second.wait(), second.log()) == (0, b"again 2 5\n")
    assert second.id != first.id
    assert second.status().rerun is not None
    with pytest.raises(package.UsageError, match="rerun needs LR") as caught:
        api.rerun(second.id)
    assert caught.value.started == "no"
    monkeypatch.setenv("LR", "3")
    third = api.rerun(second.id, push=False, confirm=0)
    assert (third.wait(), third.log()) == (0, b"again 3 5\n")
    assert api.run(TARGET, ["rm", "-r", f"/root/{tree.name}"]).wait() == 0


def test_nothing_is_printed(api: Client, capfd: pytest.CaptureFixture[str]) -> None:
    job = api.run(TARGET, ["sh", "-c", "echo loud; echo louder >&2; sleep 60"])
    job.status()
    job.tail()
    job.kill("KILL")
    with pytest.raises(HostUnreachable):
        api.run("127.0.0.1:101", ["true"])
    assert capfd.readouterr() == ("", "")


def test_a_lost_line_is_logged(
    api: Client, launchpad: Program, caplog: pytest.LogCaptureFixture
) -> None:
    job = api.run(TARGET, ["sh", "-c", "echo one; sleep 60"])
    pieces = job.follow()
    assert next(pieces)
    api._pool._shared[next(iter(api._pool._shared))][0].transport.close()
    launchpad.succeed("kill", "-s", "KILL", job.id)
    with caplog.at_level(logging.WARNING, "launchpad"):
        assert b"".join(pieces) in (b"", b"\n", b"ne\n")
    assert any("lost" in message for message in caplog.messages)


def test_one_login_for_many_calls(api: Client, lab: Lab) -> None:
    job = api.run(TARGET, ["sleep", "60"], confirm=0)
    for _ in range(3):
        job.status()
    job.tail()
    job.kill("KILL")
    ((shared,),) = api._pool._shared.values()
    stream = shared.transport._session.connections[-1].line._stream
    assert isinstance(stream, socket.socket)
    port = stream.getsockname()[1]
    log = (lab.settings.node("pve1").log / "sshd.log").read_text(errors="replace")
    commands = [
        line for line in log.splitlines() if line.startswith("Starting session: command for root ")
    ]
    assert len([line for line in commands if f" port {port} id " in line]) == 6


def test_thirty_two_threads(api: Client) -> None:
    gate = threading.Barrier(32)

    def one(number: int) -> tuple[int, bytes]:
        gate.wait(60)
        job = api.run(
            TARGET, ["sh", "-c", f"echo {number}; exit {number % 5}"], confirm=0, name="thread"
        )
        return job.wait(120), job.log()

    with ThreadPoolExecutor(32) as threads:
        results = list(threads.map(one, range(32)))
    assert results == [(number % 5, f"{number}\n".encode()) for number in range(32)]
    assert len({status.id for status in api.status("thread")}) == 32


def test_waiting_for_several(api: Client) -> None:
    jobs = [api.run(TARGET, ["sh", "-c", f"exit {code}"], confirm=0) for code in (0, 3, 1)]
    assert api.wait(jobs, timeout=60) == [0, 3, 1]
    assert api.wait([]) == []


def test_as_in_a_notebook(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event loop runs in this thread, and the standard streams are no files."""
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(sys, "stdin", None)

    async def cell() -> str:
        job = api.run(TARGET, ["echo", "from a cell"])
        assert job.wait() == 0
        return job.tail()

    assert asyncio.run(cell()) == "from a cell\n"


def _python(user: Program, script: str, stdin: bytes = b"") -> bytes:
    """What a Python program of that user prints."""
    words = [sys.executable, "-c", script]
    done = subprocess.run(
        words, input=stdin, env=user.environment, cwd=user.home, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b""), done
    return done.stdout


def test_another_process_goes_on_with_a_job(api: Client, launchpad: Program) -> None:
    job = api.run(TARGET, ["sleep", "60"], confirm=0)
    script = "import sys, pickle; print(pickle.load(sys.stdin.buffer).kill('KILL').signal)"
    assert _python(launchpad, script, pickle.dumps(job)) == b"SIGKILL\n"


def test_the_module_is_a_client(
    api: Client, launchpad: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import launchpad;"
        f"job = launchpad.run({TARGET!r}, ['echo', 'hello']);"
        "print(job.wait(), launchpad.status(job.id)[0].last_line, launchpad.find(job.id) == job);"
        "launchpad.close()"
    )
    assert _python(launchpad, script) == b"0 hello True\n"
    assert package.run.__doc__ == type(api).run.__doc__
