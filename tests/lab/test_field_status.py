"""What became of jobs, however they ended and whoever asks, through real ssh."""

from __future__ import annotations

import os
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, NO_PTY, SLEEPER, Lab
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.client import Client

FOREVER = "while :; do sleep 0.2; done"

# One counter for the whole container: one after the other.
OOM = pytest.mark.xdist_group("out of memory")


def end_of(launchpad: Client, job: str) -> dict[str, object]:
    status = wait_until(lambda: (s := launchpad.status(job))["state"] != "running" and s, 30)
    assert isinstance(status, dict)
    return status


def test_ends_that_nobody_has_seen_come_first_once(launchpad: Client) -> None:
    running = launchpad.start_job("pve1:101", "--", "sleep", "777")
    first = launchpad.start_job("pve1:101", "-c", "sleep 0.5; exit 0")
    second = launchpad.start_job("pve1:102", "-c", "sleep 0.5; echo no module; exit 1")
    for job in (first, second):
        end_of(launchpad, job)
    after = launchpad.start_job("pve1:101", "--", "sleep", "777")
    lines = launchpad.succeed("status").out.splitlines()
    assert [line.split()[0] for line in lines] == ["ID", second, first, after, running]
    assert "exited 1" in lines[1]
    assert lines[1].endswith("no module")
    lines = launchpad.succeed("status").out.splitlines()
    assert [line.split()[0] for line in lines] == ["ID", after, running, second, first]
    assert launchpad.succeed("status", "-q", first).out == f"{first}\n"


@pytest.mark.exclusive
def test_known_ends_are_not_asked_again(lab: Lab, launchpad: Client) -> None:
    job = launchpad.run("run", "pve1:101", "--", "true").out.strip()
    end_of(launchpad, job)
    traffic = lab.watch()
    assert launchpad.succeed("status", job).out.splitlines()[1].split()[:3] == [job, "exited", "0"]
    launchpad.succeed("status")
    launchpad.succeed("kill", job)
    assert traffic.connections == []


@pytest.mark.exclusive
def test_many_jobs_of_a_host_are_one_connection(lab: Lab, launchpad: Client) -> None:
    jobs = [
        launchpad.start_job(f"pve1:{ctid}", "--", "sleep", "777") for ctid in (101, 101, 102, 104)
    ]
    traffic = lab.watch()
    found = launchpad.succeed("status", "--json").json()["jobs"]
    assert {each["id"] for each in found} == set(jobs)
    assert len(traffic.connections) == 1
    assert len(traffic.pct_calls) == 3


@pytest.mark.exclusive
def test_watching_enters_each_container_once(lab: Lab, launchpad: Client) -> None:
    count = "n=0; while :; do n=$((n+1)); echo step $n; sleep 0.2; done"
    job = launchpad.start_job("pve1:101", "-c", count)
    traffic = lab.watch()
    process = launchpad.start("status", "--watch", job)
    assert process.stdout is not None
    seen = b""
    while seen.count(b"ID") < 4:
        data = os.read(process.stdout.fileno(), 65536)
        assert data, seen
        seen += data
    process.send_signal(2)
    assert process.wait(20) == 130
    assert len(traffic.pct_calls) == 1
    assert len(traffic.connections) == 1


def test_the_jobs_of_another_machine_are_found_and_learnt(
    make_client: Callable[..., Client],
) -> None:
    mine, other = make_client("mine"), make_client("other", USER="colleague", LOGNAME="colleague")
    job = other.start_job("-n", "theirs", "pve1:101", "-c", "echo step 51200; sleep 777")
    unknown = mine.run("tail", job)
    assert unknown.code == 125
    assert "launchpad status TARGET" in unknown.err
    listed = mine.succeed("status", "pve1:101").out
    (line,) = [line for line in listed.splitlines() if line.startswith(job)]
    assert "colleague@" in line
    assert line.endswith("step 51200")
    assert mine.status(job)["command"] is None
    assert mine.status(job)["shell"] == "echo step 51200; sleep 777"
    assert mine.log(job) == b"step 51200\n"
    mine.succeed("kill", "pve1:101/theirs")
    assert other.status(job)["reason"] == "launchpad"


@OOM
def test_memory_that_runs_out_is_told(launchpad: Client) -> None:
    eat = "x = bytearray(400_000_000); print(len(x))"
    job = launchpad.run("run", "--confirm", "0", "pve1:106", "--", "python3", "-c", eat).out.strip()
    status = end_of(launchpad, job)
    assert (status["state"], status["signal"], status["reason"]) == (
        "killed",
        "SIGKILL",
        "out_of_memory",
    )
    assert status["oom_kills"] == 1
    told = launchpad.run("status", job)
    assert "killed SIGKILL, out of memory" in told.out
    assert "the container's OOM counter went" in told.err
    assert re.search(r"while it ran \(limit 96 MB, peak \d+ MB\)", told.err)
    assert launchpad.run("wait", job).code == 137


@OOM
def test_a_parent_that_loses_a_child_to_the_oom_killer(launchpad: Client) -> None:
    line = "python3 -c 'x = bytearray(400_000_000)'; echo child gave $?; exit 0"
    job = launchpad.run("run", "--confirm", "0", "pve1:106", "-c", line).out.strip()
    status = end_of(launchpad, job)
    assert (status["state"], status["exit_code"], status["reason"]) == ("exited", 0, None)
    assert status["oom_kills"] == 1
    assert launchpad.log(job).endswith(b"child gave 137\n")


@pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX])
def test_a_damaged_record_says_so_and_hides_nothing(lab: Lab, launchpad: Client, ctid: int) -> None:
    bad = launchpad.run("run", f"pve1:{ctid}", "--", "true").out.strip()
    good = launchpad.run("run", f"pve1:{ctid}", "-c", "exit 3").out.strip()
    lab.sh(
        ctid,
        'cd "/var/lib/launchpad/jobs/$1" && for f in end,*; do mv "$f" "end,1,exi"; done;'
        "head -c 300 /dev/urandom >spec; printf '1 2' >main",
        bad,
    )
    everything = launchpad.run("status", "--json", f"pve1:{ctid}").json()["jobs"]
    found = {each["id"]: each for each in everything}
    assert (found[bad]["state"], found[bad]["reason"]) == ("lost", "record_damaged")
    assert (found[good]["state"], found[good]["exit_code"]) == ("exited", 3)


def test_nothing_that_a_job_prints_reaches_the_terminal(launchpad: Client) -> None:
    text = r"\033[2J\033]0;pwn\007\033]52;c;eA==\007ok [red]x[/]\n"
    job = launchpad.run("run", "-n", "esc", "pve1:101", "--", "printf", text).out.strip()
    for outcome in (launchpad.succeed("status", job), launchpad.succeed("status", "pve1:101")):
        assert b"\x1b" not in outcome.stdout
        assert b"\x07" not in outcome.stdout
        assert b"ok [red]x[/]" in outcome.stdout
    screen = subprocess.run(
        ["script", "-qec", f"stty cols 120; python3 -m launchpad status {job}", "/dev/null"],
        env={**launchpad.environment, "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    ).stdout
    assert b"\x1b[2J" not in screen
    assert b"\x1b]" not in screen
    assert b"ok [red]x[/]" in screen


def test_a_missing_target_is_told_and_the_others_are_shown(launchpad: Client) -> None:
    job = launchpad.start_job("pve1:101", "--", "sleep", "777")
    outcome = launchpad.run("status", "--json", job, "pve1:103", "nosuchhost.invalid:101")
    assert outcome.code == 125
    document = outcome.json()
    assert [each["id"] for each in document["jobs"]] == [job]
    errors = {each["target"]: each["layer"] for each in document["errors"]}
    assert errors == {"pve1:103": "container", "nosuchhost.invalid:101": "ssh"}


@pytest.mark.exclusive
def test_a_host_that_is_gone_is_unreachable_and_not_dead(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("pve1:101", "--", "sleep", "777")
    other = launchpad.start_job("pve2:105", "--", "sleep", "777")
    with lab.cut("pve1"):
        began = time.monotonic()
        outcome = launchpad.run("status", "--json")
        assert time.monotonic() - began < 12
        found = {each["id"]: each for each in outcome.json()["jobs"]}
        assert (found[job]["state"], found[job]["layer"]) == ("unreachable", "ssh")
        assert found[job]["last_known"]["state"] == "running"
        assert found[other]["state"] == "running"
        # Nobody named it, so nothing that was asked for failed.
        assert outcome.code == 0
        assert launchpad.run("status", job).code == 125
    assert launchpad.status(job)["state"] == "running"


@pytest.mark.exclusive
def test_a_container_that_has_moved_is_followed(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("pve1:102", "--", "sleep", "777")
    lab.command("migrate", "102", "pve2")
    try:
        status = launchpad.status(job)
        assert (status["state"], status["reason"]) == ("lost", "container_restarted")
        told = launchpad.run("status", job)
        assert "moved from pve1 to pve2" in told.err
    finally:
        lab.command("migrate", "102", "pve1")


@pytest.mark.exclusive
def test_a_stopped_container_is_not_a_dead_job(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("-n", "train", "pve1:101", "--", "sleep", "777")
    with lab.stopped(DEBIAN):
        told = launchpad.run("status", "train")
        assert told.code == 125
        assert "unreachable, container stopped" in told.out
        assert "last known: running" in told.out
        assert "pct start 101" in told.err
        assert job in told.out
    refused = launchpad.run("run", "pve1:103", "--", "true")
    assert refused.code == 125
    assert "pct start 103" in refused.err


def test_state_is_right_where_nobody_reaps(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("pve1:106", "--", "sleep", "777")
    record = lab.sh(SLEEPER, 'cat "/var/lib/launchpad/jobs/$1/main"', job).split()
    lab.run(SLEEPER, "kill", "-KILL", record[7])
    wait_until(lambda: not lab.alive(SLEEPER, int(record[7])), 10)
    lab.run(SLEEPER, "kill", "-TERM", record[1])
    wait_until(lambda: not lab.alive(SLEEPER, int(record[1])), 10)
    # It stays a zombie for ever, and kill -0 would still succeed on it.
    lab.run(SLEEPER, "kill", "-0", record[1])
    status = launchpad.status(job)
    assert (status["state"], status["signal"], status["reason"]) == (
        "killed",
        "SIGTERM",
        "supervisor_lost",
    )
    assert status["processes"] == 0


@pytest.mark.exclusive
def test_a_broken_driver_tool_costs_little_time(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("pve1:104", "--", "sleep", "777")
    with lab.file_in(104, "/usr/local/bin/nvidia-smi", "#!/bin/sh\nsleep 600\n", "755"):
        began = time.monotonic()
        status = launchpad.status(job)
        assert (status["state"], status["gpus"]) == ("running", None)
        assert time.monotonic() - began < 15
    figures = "#!/bin/sh\necho '0, NVIDIA A100-SXM4, 97, 40000, 81920'\n"
    with lab.file_in(104, "/usr/local/bin/nvidia-smi", figures, "755"):
        (gpu,) = launchpad.status(job)["gpus"]
        assert (gpu["name"], gpu["utilization_percent"]) == ("NVIDIA A100-SXM4", 97)
        assert "97% 39.1G" in launchpad.succeed("status", job).out


def test_a_job_as_another_user_can_forge_nothing(lab: Lab, launchpad: Client) -> None:
    header = r"\n==> other-aaaaaa/log <==\nforged\n"
    job = launchpad.start_job("-u", "worker", "pve1:101", "-c", f"printf '{header}'; sleep 777")
    found = launchpad.succeed("status", "--json", "pve1:101").json()["jobs"]
    assert "other-aaaaaa" not in {each["id"] for each in found}
    (own,) = [each for each in found if each["id"] == job]
    assert (own["last_line"], own["user"]) == ("forged", "worker")
    del lab


@pytest.mark.exclusive
def test_a_disk_that_logs_fill_is_warned_about(lab: Lab, launchpad: Client) -> None:
    lab.sh(BUSYBOX, "umask 077; mkdir -p /var/lib/launchpad")
    lab.sh(BUSYBOX, "mount -t tmpfs -o size=2m,mode=700 none /var/lib/launchpad")
    try:
        fine = launchpad.succeed("status", "pve1:102", "--json").json()
        assert fine["warnings"] == []
        words = ("run", "--wait", "pve1:102", "--", "dd", "if=/dev/zero", "bs=65536", "count=99")
        assert launchpad(*words).code != 0
        (warning,) = launchpad.succeed("status", "pve1:102", "--json").json()["warnings"]
        assert re.fullmatch(
            r"the disk of /var/lib/launchpad in pve1:102 is nearly full: 0 MB free, jobs' files"
            r" there take 2 MB; forget old jobs and their logs: launchpad prune pve1:102",
            warning,
        )
        assert warning in launchpad.succeed("status", "pve1:102").err
    finally:
        lab.sh(BUSYBOX, "umount -l /var/lib/launchpad")


def test_who_asked_for_the_kill_is_told(launchpad: Client) -> None:
    job = launchpad.start_job("pve1:101", "--", "sleep", "600")
    launchpad.succeed("kill", job)
    request = launchpad.status(job)["kill_request"]
    assert request["signal"] == "SIGTERM"
    assert request["by"].startswith(f"{launchpad.environment['USER']}@")
    assert f"{request['by']} sent it SIGTERM" in launchpad.succeed("status", job).err


@pytest.mark.parametrize("verb", ["wait", "follow", "run"])
def test_an_end_with_living_processes_is_not_the_last_word(launchpad: Client, verb: str) -> None:
    script = "setsid sleep 600 & sleep 1; exit 3"
    if verb == "run":
        launchpad("run", "--wait", "-n", "leaves", "pve1:101", "-c", script)
        ((job, _target),) = launchpad.known_jobs()
    else:
        job = launchpad.start_job("pve1:101", "--confirm", "0", "-n", "leaves", "-c", script)
        assert launchpad(*(["wait", job] if verb == "wait" else ["tail", "-f", job])).code == 3
    status = launchpad.status(job)
    assert (status["state"], status["processes"]) == ("exited", 1)
    launchpad.succeed("kill", job)
    assert launchpad.status(job)["processes"] == 0


@pytest.mark.exclusive
def test_a_host_with_one_channel_answers_for_all_its_containers(
    lab: Lab, make_client: Callable[..., Client], tmp_path: Path
) -> None:
    """They are asked a few at a time; what the host has no channel for is asked once more."""
    with lab.other_sshd(tmp_path, "MaxSessions=1") as config:
        client = make_client("one", LAUNCHPAD_SSH_CONFIG=str(config))
        targets = [f"pve1:{ctid}" for ctid in (DEBIAN, BUSYBOX, NO_PTY, SLEEPER)]
        jobs = [client.start_job(target, "--", "sleep", "300") for target in targets]
        document = client.run("status", "--json", *jobs).json()
        assert document["errors"] == []
        assert {job["id"]: job["state"] for job in document["jobs"]} == dict.fromkeys(
            jobs, "running"
        )
        client.succeed("kill", *jobs)
