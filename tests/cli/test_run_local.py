"""``run`` on this machine: what is shown, on which stream, and with which exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.waiting import wait_until

if TYPE_CHECKING:
    from support.local_client import LocalClient

ID = r"[A-Za-z0-9._-]+-[a-z2-7]{6}"


def test_the_id_alone_is_on_stdout_and_the_talk_on_stderr(local: LocalClient) -> None:
    outcome = local("run", "-n", "demo", "local", "--", "sh", "-c", "echo one; echo two; sleep 30")
    assert outcome.code == 0, str(outcome)
    assert re.fullmatch(r"demo-[a-z2-7]{6}\n", outcome.out)
    job = outcome.out.strip()
    started, one, two, log, following = outcome.err.splitlines()
    assert re.fullmatch(rf"started {job} on local   PID \d+   setsid   \d+\.\d s", started)
    assert (one, two) == ("| one", "| two")
    assert log.startswith("log /")
    assert log.endswith(f"/{job}/log")
    assert following == (
        f"next: launchpad tail -f {job} · launchpad status {job} · launchpad kill {job}"
    )


def test_a_silent_job_is_no_failure(local: LocalClient) -> None:
    outcome = local("run", "--confirm", "0.4", "local", "--", "sleep", "30")
    assert outcome.code == 0
    assert "running, no output yet (0.4 s)" in outcome.err
    assert outcome.seconds < 5


def test_confirm_0_proves_the_process_only(local: LocalClient) -> None:
    outcome = local("run", "--confirm", "0", "local", "--", "sh", "-c", "exit 3")
    assert outcome.code == 0
    assert "PID" in outcome.err


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("echo hello; exit 3", 3, "exited with code 3 after"),
        ("echo hello", 0, "exited with code 0 after"),
        ("echo hello; kill -9 $$", 137, "was killed by SIGKILL after"),
    ],
)
def test_a_job_that_ended_is_told_with_its_code_and_words(
    local: LocalClient, script: str, code: int, said: str
) -> None:
    outcome = local("run", "local", "--", "sh", "-c", script)
    assert outcome.code == code, str(outcome)
    assert said in outcome.err
    assert "| hello" in outcome.err
    assert re.fullmatch(rf"{ID}\n", outcome.out)


def test_a_job_that_cannot_start_is_told_apart(local: LocalClient, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no program")
    for words, code, said in (
        (["nosuchprogram"], 127, "nosuchprogram: not found"),
        ([str(tmp_path)], 126, "is a directory"),
        ([str(tmp_path / "file")], 126, "permission denied"),
    ):
        outcome = local("run", "local", "--", *words)
        assert outcome.code == code, str(outcome)
        assert said in outcome.err
        assert "[job]" in outcome.err
        assert outcome.out == ""
    assert local.client.known_jobs() == []


def test_first_lines_cannot_act_on_a_terminal(local: LocalClient) -> None:
    hostile = r"printf '\033[2J\033]0;pwn\007\033]52;c;eA==\007ok\n'"
    outcome = local("run", "-n", "x", "local", "-c", hostile)
    assert r"| \x1b[2J\x1b]0;pwn\x07\x1b]52;c;eA==\x07ok" in outcome.err
    assert b"\x1b" not in outcome.stderr + outcome.stdout
    missing = local("run", "local", "--", "no\x1b[2Jsuch")
    assert b"\x1b" not in missing.stderr


def test_json_is_one_document_with_the_first_lines(local: LocalClient) -> None:
    script = 'printf "caf\\351\\n"; echo two; sleep 30'
    outcome = local(
        "run", "--json", "-e", "KEY", "local", "--", "sh", "-c", script, env={"KEY": "v"}
    )
    assert outcome.code == 0, str(outcome)
    document = outcome.json()
    assert document["schema"] == 1
    assert document["state"] == "running"
    assert document["started"] == "yes"
    assert document["created"] is True
    assert document["first_lines"] == ["caf\udce9", "two"]
    assert document["command"] == ["sh", "-c", script]
    assert document["env_names"] == ["KEY"]
    assert document["pid"] > 1
    assert len(outcome.out.splitlines()) == 1
    assert outcome.stdout.isascii()
    assert "started" in outcome.err


def test_json_of_a_failure_says_that_nothing_was_started(local: LocalClient) -> None:
    outcome = local("run", "--json", "local", "--", "nosuchprogram")
    assert outcome.code == 127
    document = outcome.json()
    assert document["started"] == "no"
    assert re.fullmatch(ID, document["id"])
    assert document["error"]["layer"] == "job"
    assert document["error"]["exit_code"] == 127
    assert "nosuchprogram" in document["error"]["what"]


def test_follow_prints_the_log_alone_and_ends_with_the_jobs_code(local: LocalClient) -> None:
    script = 'printf "a\\033[2J\\377"; echo; echo two; exit 4'
    outcome = local("run", "-f", "local", "--", "sh", "-c", script)
    assert outcome.code == 4, str(outcome)
    assert outcome.stdout == b"a\x1b[2J\xff\ntwo\n"
    assert "exited with code 4" in outcome.err


def test_wait_prints_the_id_at_once_and_ends_with_the_jobs_code(
    local: LocalClient, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.05; done; exit 5"
    process = local.client.start(
        *["run", "--wait", "local", "--", "sh", "-c", script], prefix=local.prefix
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert re.fullmatch(rf"{ID}\n".encode(), line)
    assert process.poll() is None
    go.touch()
    assert process.wait(30) == 5


def test_ready_returns_with_the_line_and_a_job_that_ends_before_gives_its_code(
    local: LocalClient,
) -> None:
    ready = local("run", "--ready", "step [2]", "local", "-c", "echo step 1; echo step 2; sleep 30")
    assert ready.code == 0, str(ready)
    assert "ready: a line matched /step [2]/" in ready.err
    crashed = local("run", "--ready", "never", "local", "-c", "echo oops; exit 1")
    assert crashed.code == 1
    assert "exited with code 1 after" in crashed.err
    assert "before it was ready" in crashed.err
    done = local("run", "--ready", "never", "local", "-c", "true")
    assert done.code == 125


def test_ready_timeout_is_124_and_the_job_goes_on(local: LocalClient) -> None:
    words = ["run", "--ready", "never", "--ready-timeout", "0.5", "local", "--", "sleep", "30"]
    outcome = local(*words)
    assert outcome.code == 124, str(outcome)
    job = outcome.out.strip()
    assert f"{job} runs on" in outcome.err
    assert local("status", "-q").out.split() == [job]


def test_a_time_limit_ends_the_job(local: LocalClient) -> None:
    outcome = local("run", "--wait", "--time-limit", "0.5", "local", "--", "sleep", "30")
    assert outcome.code == 128 + signal.SIGTERM, str(outcome)
    assert "was killed by SIGTERM after" in outcome.err
    assert "time limit" in outcome.err


def test_the_line_of_on_exit_runs_when_the_job_has_ended(
    local: LocalClient, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    words = "$LAUNCHPAD_STATE $LAUNCHPAD_CODE $LAUNCHPAD_ENDED_JOB"
    line = f'echo "{words}" >{told}.new && mv {told}.new {told}'
    outcome = local("run", "--wait", "--on-exit", line, "local", "--", "sh", "-c", "exit 3")
    assert outcome.code == 3, str(outcome)
    wait_until(told.exists, what="the line of --on-exit has run")
    assert told.read_text() == f"exited 3 {outcome.out}"


def test_ctrl_c_never_harms_the_job(local: LocalClient) -> None:
    process = local.client.start(
        *["run", "-f", "local", "-c", "echo begun; sleep 30"], prefix=local.prefix
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    # The process group, as a terminal does it.
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    ((job, _target),) = local.client.known_jobs()
    assert f"interrupted: {job} runs on" in errors.decode()
    assert local("status", "-q").out.split() == [job]


def test_the_same_key_starts_one_job_and_another_command_is_refused(local: LocalClient) -> None:
    words = ["run", "--idempotency-key", "exp-42", "--json", "--confirm", "0", "local", "--"]
    first = local(*words, "sleep", "30").json()
    again = local(*words, "sleep", "30").json()
    assert (first["created"], again["created"]) == (True, False)
    assert first["id"] == again["id"]
    other = local(*words, "sleep", "31")
    assert other.code == 125
    assert first["id"] in other.err
    assert len(local.client.known_jobs()) == 1


def test_on_a_terminal_there_is_movement_and_the_log_cannot_harm_it(local: LocalClient) -> None:
    script = r"printf '\033[2J\033]0;pwn\007'; sleep 1.3; echo done"
    primary, secondary = pty.openpty()
    process = subprocess.Popen(
        [*local.prefix, sys.executable, "-m", "launchpad", "run", "-f", "local", "-c", script],
        env={**local.client.environment, "TERM": "xterm"},
        stdin=secondary,
        stdout=secondary,
        stderr=secondary,
        start_new_session=True,
    )
    os.close(secondary)
    shown = b""
    while True:
        try:
            piece = os.read(primary, 65536)
        except OSError:  # EIO: the other side is closed
            break
        if not piece:
            break
        shown += piece
    os.close(primary)
    assert process.wait(30) == 0
    assert b"done" in shown
    assert b"\x1b[2J" not in shown
    assert b"\x1b]0;" not in shown


def test_many_at_once_have_ids_and_logs_of_their_own(local: LocalClient) -> None:
    calls = [
        local.client.start(
            *["run", "--json", "local", "--", "sh", "-c", "echo $$"], prefix=local.prefix
        )
        for _ in range(8)
    ]
    documents = [wait_for_document(call) for call in calls]
    assert len({document["id"] for document in documents}) == 8
    assert [document["first_lines"] for document in documents] == [
        [str(document["pid"])] for document in documents
    ]


def wait_for_document(process: subprocess.Popen[bytes]) -> dict[str, object]:
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    document: dict[str, object] = json.loads(output)
    return document


def test_words_reach_the_program_byte_for_byte(local: LocalClient) -> None:
    words: list[str | bytes] = ["--", "-x", "", "a b", "$HOME", b"\xff\n", "--json", "*"]
    script = 'for word; do printf "<%s>" "$word"; done'
    for locale in ("C.UTF-8", "C", "POSIX"):
        outcome = local(
            *["run", "-f", "local", "--", "sh", "-c", script, "sh", *words], env={"LC_ALL": locale}
        )
        assert outcome.stdout == b"<--><-x><><a b><$HOME><\xff\n><--json><*>", str(outcome)


def test_secrets_of_the_client_are_in_no_process_list(local: LocalClient, tmp_path: Path) -> None:
    (tmp_path / "job.env").write_text("FROM_FILE=s3cr3t-in-a-file\n")
    words = ["run", "-e", "KEY", "--env-file", str(tmp_path / "job.env"), "local", "-c"]
    script = 'printf "%s %s" "$KEY" "$FROM_FILE"; sleep 30'
    outcome = local(*words, script, env={"KEY": "s3cr3t-of-mine"})
    assert "| s3cr3t-of-mine s3cr3t-in-a-file" in outcome.err
    job = outcome.out.strip()
    wait_until(lambda: local("status", "-q").out.split() == [job])
    for cmdline in _command_lines():
        assert b"s3cr3t-" not in cmdline
    for file in local.home.rglob("*"):
        if file.is_file() and file.name != "log":
            assert b"s3cr3t-" not in file.read_bytes(), file


def _command_lines() -> list[bytes]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes())
        except OSError:
            continue
    return lines
