"""The end of all of a job and of nothing else, through real ssh into real containers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, SLEEPER, Lab
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.client import Client

PLACES = pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX, SLEEPER])
FOREVER = "while :; do sleep 0.2; done"


def pids_in_log(launchpad: Client, job: str, count: int) -> list[int]:
    def found() -> list[int]:
        lines = [line.split() for line in launchpad.log(job).decode().splitlines()]
        pids = [int(words[1]) for words in lines if len(words) == 2 and words[0] == "pid"]
        return pids if len(pids) >= count else []

    return wait_until(found, 30, f"{count} PIDs")


def living(lab: Lab, ctid: int, pids: list[int]) -> list[int]:
    return [pid for pid in pids if lab.alive(ctid, pid)]


@PLACES
def test_one_parent_killed_and_seven_that_outlive_it(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    script = (
        "for i in 1 2 3; do setsid sh -c 'echo pid $$; exec sleep 500' & done\n"
        "for i in 1 2; do (sh -c 'echo pid $$; exec sleep 500' &); done\n"
        "for i in 1 2; do sh -c 'trap \"\" TERM; echo pid $$; exec sleep 500' & done\n"
        "wait"
    )
    job = launchpad.start_job(f"pve1:{ctid}", "-c", script)
    pids = pids_in_log(launchpad, job, 7)
    main = launchpad.status(job)["pid"]
    lab.run(ctid, "kill", "-KILL", str(main))
    status = wait_until(lambda: (s := launchpad.status(job))["state"] != "running" and s, 20)
    assert (status["state"], status["signal"], status["processes"]) == ("killed", "SIGKILL", 7)
    began = time.monotonic()
    killed = launchpad.succeed("kill", "--grace", "3s", job)
    assert "7 processes ended" in killed.err
    assert time.monotonic() - began < 3 + 2 + 10  # the promise, and a machine that is busy
    assert living(lab, ctid, pids) == []
    assert launchpad.status(job)["signal"] == "SIGKILL"


@PLACES
def test_saving_on_term_is_waited_for_and_told(lab: Lab, launchpad: Client, ctid: int) -> None:
    script = 'trap "sleep 2; echo saved; exit 0" TERM; sleep 500 & ' + FOREVER
    job = launchpad.start_job("-n", "train", f"pve1:{ctid}", "-c", script)
    main = launchpad.status(job)["pid"]
    killed = launchpad.succeed("kill", "train")
    assert "1 on TERM after saving for 2." in killed.err, killed
    assert "exit code 0 kept" in killed.err
    assert not lab.alive(ctid, main)
    assert launchpad.log(job).endswith(b"saved\n")
    status = launchpad.status(job)
    assert (status["state"], status["exit_code"], status["reason"]) == ("exited", 0, "launchpad")
    again = launchpad.succeed("kill", job)
    assert "ended already" in again.err


def test_a_grace_time_that_is_too_short_escalates(launchpad: Client) -> None:
    # TERM reaches its children at half of the grace time: a save that does not hang on one of them.
    job = launchpad.start_job("pve1:101", "-c", f'trap "{FOREVER}; echo saved" TERM; {FOREVER}')
    killed = launchpad.succeed("kill", "--grace", "1s", job)
    assert "on KILL" in killed.err
    assert launchpad.status(job)["signal"] == "SIGKILL"
    assert b"saved" not in launchpad.log(job)


@PLACES
def test_of_jobs_with_the_same_command_only_one_is_killed(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    one = launchpad.start_job(f"pve1:{ctid}", "--", "sleep", "777")
    two = launchpad.start_job(f"pve1:{ctid}", "--", "sleep", "777")
    names_one = launchpad.start_job(
        f"pve1:{ctid}", "--", "sh", "-c", "sleep 777; :", one, "launchpad"
    )
    launchpad.succeed("kill", one)
    assert launchpad.status(one)["state"] == "killed"
    assert launchpad.status(two)["state"] == "running"
    assert launchpad.status(names_one)["state"] == "running"
    assert lab.alive(ctid, launchpad.status(two)["pid"])


@pytest.mark.exclusive
def test_a_job_in_the_kernel_is_listed_and_its_kill_can_be_repeated(
    lab: Lab, launchpad: Client
) -> None:
    # A process that a TERM would end dies of that one when it thaws, whatever came behind it.
    deaf = "from signal import *; signal(SIGTERM, SIG_IGN); print(1); import time; time.sleep(777)"
    job = launchpad.start_job("--confirm", "10s", "pve1:101", "--", "python3", "-c", deaf)
    pid = launchpad.status(job)["pid"]
    host_pid = _pid_on_this_machine(lab, DEBIAN, pid)
    freezer = Path("/sys/fs/cgroup/freezer") / f"test-{job}"
    freezer.mkdir()
    try:
        (freezer / "cgroup.procs").write_text(str(host_pid))
        (freezer / "freezer.state").write_text("FROZEN")
        began = time.monotonic()
        killed = launchpad.run("kill", "--grace", "1s", job)
        assert time.monotonic() - began < 40
        assert killed.code == 1, killed
        assert f"PID {pid} python3, state D" in killed.err
        assert launchpad.status(job)["state"] == "running"
    finally:
        (freezer / "freezer.state").write_text("THAWED")
        wait_until(lambda: not (freezer / "cgroup.procs").read_text(), 20)
        freezer.rmdir()
    status = wait_until(lambda: (s := launchpad.status(job))["state"] == "killed" and s, 20)
    assert (status["signal"], status["reason"]) == ("SIGKILL", "launchpad")
    launchpad.succeed("kill", job)


def _pid_on_this_machine(lab: Lab, ctid: int, pid: int) -> int:
    """The number that a container's process has outside of it."""
    init = lab.sh(ctid, "readlink /proc/self/ns/pid").strip()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            inside = (status.parent / "ns/pid").readlink()
            lines = status.read_text().splitlines()
        except OSError:
            continue
        numbers = next(line.split() for line in lines if line.startswith("NSpid:"))
        if str(inside) == init and numbers[-1] == str(pid):
            return int(status.parent.name)
    raise AssertionError(f"PID {pid} of {ctid} is not seen from outside")


def test_a_checkpoint_signal_is_delivered_once(launchpad: Client) -> None:
    job = launchpad.start_job("pve1:101", "-c", f"trap 'echo checkpoint' USR1; {FOREVER}")
    pid = launchpad.status(job)["pid"]
    sent = launchpad.succeed("kill", "-s", "USR1", job)
    assert f"sent SIGUSR1 to {job}, PID {pid}; it runs on" in sent.err
    wait_until(lambda: launchpad.log(job) == b"checkpoint\n", 10)
    assert launchpad.status(job)["state"] == "running"


def test_several_jobs_at_once_and_two_containers(launchpad: Client) -> None:
    jobs = [launchpad.start_job(f"pve1:{ctid}", "--", "sleep", "777") for ctid in (101, 101, 102)]
    killed = launchpad.succeed("kill", *jobs)
    assert all(f"killed {job}: 1 process ended" in killed.err for job in jobs)
    assert {launchpad.status(job)["state"] for job in jobs} == {"killed"}


def test_a_name_must_mean_exactly_one_running_job(launchpad: Client) -> None:
    first = launchpad.start_job("-n", "sweep", "pve1:101", "--", "sleep", "777")
    second = launchpad.start_job("-n", "sweep", "pve1:101", "--", "sleep", "777")
    refused = launchpad.run("kill", "sweep")
    assert refused.code == 2
    assert "2 running jobs are named sweep" in refused.err
    assert first in refused.err
    assert second in refused.err
    assert "launchpad kill $(launchpad status -q sweep)" in refused.err
    launchpad.succeed("kill", second)
    # The newest has ended: the one that runs is meant.
    assert first in launchpad.succeed("kill", "sweep").err
    assert launchpad.status(first)["state"] == "killed"


def test_without_a_word_nothing_is_ended_unasked(launchpad: Client) -> None:
    nothing = launchpad.run("kill")
    assert nothing.code == 2
    job = launchpad.start_job("pve1:101", "--", "sleep", "777")
    refused = launchpad.run("kill")
    assert refused.code == 2
    assert f"launchpad kill {job}" in refused.err
    assert launchpad.status(job)["state"] == "running"


@pytest.mark.exclusive
def test_a_lost_directory_hides_no_job_from_its_client(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("pve1:101", "-c", "setsid sleep 777 & wait")
    pid = launchpad.status(job)["pid"]
    lab.run(DEBIAN, "rm", "-rf", f"/var/lib/launchpad/jobs/{job}")
    status = launchpad.status(job)
    assert (status["state"], status["reason"], status["processes"]) == (
        "running",
        "record_damaged",
        2,
    )
    assert "2 processes ended" in launchpad.succeed("kill", job).err
    assert not lab.alive(DEBIAN, pid)
    lab.sh(DEBIAN, "rm -f /dev/shm/launchpad-0/*")


@pytest.mark.exclusive
@pytest.mark.parametrize("ctid", [DEBIAN, SLEEPER])
def test_after_a_hard_restart_a_recycled_pid_is_safe(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    job = launchpad.start_job(
        "-n", "train", f"pve1:{ctid}", "-c", "echo step 20110; exec sleep 777"
    )
    pid = launchpad.status(job)["pid"]
    with lab.stopped(ctid):
        stopped = launchpad.status(job)
        assert (stopped["state"], stopped["reason"]) == ("unreachable", "container_stopped")
        assert stopped["last_known"]["state"] == "running"
        assert launchpad.run("status", job).code == 125
    # Whoever enters from outside waits for what holds its output.
    recycle = f"echo {pid - 1} >/proc/sys/kernel/ns_last_pid; setsid sleep 778"
    lab.sh(ctid, f"({recycle}) >/dev/null 2>&1 </dev/null & sleep 0.3")
    stranger = wait_until(lambda: lab.processes(ctid, "sleep", "778"), 10)
    status = launchpad.status(job)
    assert (status["state"], status["reason"]) == ("lost", "container_restarted")
    assert status["last_line"] == "step 20110"
    launchpad.succeed("kill", job)
    assert living(lab, ctid, stranger) == stranger
    assert launchpad.log(job) == b"step 20110\n"
    assert launchpad.run("wait", job).code == 125
    lab.run(ctid, "kill", *map(str, stranger))


@pytest.mark.exclusive
def test_a_clean_stop_is_told_from_a_hard_one(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("pve1:101", "--", "sleep", "777")
    with lab.stopped(DEBIAN, clean=True):
        pass
    status = wait_until(lambda: (s := launchpad.status(job))["state"] != "unreachable" and s, 30)
    assert (status["state"], status["signal"], status["reason"]) == (
        "killed",
        "SIGTERM",
        "container_stopped",
    )


@pytest.mark.exclusive
def test_a_frozen_container_is_said_to_be_one(lab: Lab, launchpad: Client) -> None:
    job = launchpad.start_job("pve1:102", "--", "sleep", "777")
    with lab.frozen(BUSYBOX):
        began = time.monotonic()
        status = launchpad.run("status", "--json", job)
        assert time.monotonic() - began < 20
        assert status.code == 125
        (found,) = status.json()["jobs"]
        assert (found["state"], found["layer"]) == ("unreachable", "container")
        killed = launchpad.run("kill", "--grace", "1s", job, timeout=90)
        assert killed.code == 125
        assert "did not answer" in killed.err
        assert killed.seconds < 30
    assert launchpad.status(job)["state"] == "running" or launchpad.status(job)["state"] == "killed"


STEPS = {
    "supervisor": "kill -KILL $supervisor",
    "main process": "kill -KILL $main",
    "both": "kill -KILL $supervisor $main",
    "everything": "kill -KILL $supervisor $main $workers",
    "supervisor, later the main process": "kill -KILL $supervisor; sleep 0.3; kill -KILL $main",
    "workers": "kill -KILL $workers",
}
AFTERWARDS: dict[str, set[tuple[str, str | None]]] = {
    "supervisor": {("running", "supervisor_lost")},
    "main process": {("killed", "other")},
    "both": {("lost", "supervisor_lost"), ("killed", "supervisor_lost")},
    "everything": {("lost", "supervisor_lost"), ("killed", "supervisor_lost")},
    "supervisor, later the main process": {
        ("lost", "supervisor_lost"),
        ("killed", "supervisor_lost"),
    },
    "workers": {("running", None)},
}


@PLACES
@pytest.mark.parametrize("victim", STEPS)
def test_status_is_right_whatever_was_killed(
    lab: Lab, launchpad: Client, ctid: int, victim: str
) -> None:
    script = f"sleep 777 & sleep 778 & echo pid $!; {FOREVER}"
    job = launchpad.start_job(f"pve1:{ctid}", "-c", script)
    (worker,) = pids_in_log(launchpad, job, 1)
    record = lab.sh(ctid, 'cat "/var/lib/launchpad/jobs/$1/main"', job).split()
    names = f"main={record[1]} supervisor={record[7]} workers={worker}; "
    lab.sh(ctid, names + STEPS[victim])

    def settled() -> bool:
        status = launchpad.status(job)
        return (status["state"], status["reason"]) in AFTERWARDS[victim]

    wait_until(settled, 15, f"{AFTERWARDS[victim]}: {json.dumps(launchpad.status(job))}")
    launchpad.succeed("kill", job)
    status = launchpad.status(job)
    assert status["processes"] == 0
    assert status["state"] in {"killed", "lost"}
    assert not lab.alive(ctid, worker)


def test_a_time_limit_ends_a_job_as_kill_does(launchpad: Client, lab: Lab) -> None:
    script = f"setsid sleep 777 & trap 'echo saved; exit 0' TERM; {FOREVER}"
    job = launchpad.start_job("--time-limit", "2s", "pve1:101", "-c", script)

    def is_over() -> bool:
        now = launchpad.status(job)
        return now["state"] != "running" and not now["processes"]

    wait_until(is_over, 30, "the time limit has ended it")
    status = launchpad.status(job)
    assert (status["state"], status["exit_code"], status["reason"]) == ("exited", 0, "time_limit")
    assert status["time_limit_s"] == 2
    assert launchpad.log(job) == b"saved\n"
    del lab


@PLACES
def test_on_exit_knows_how_the_job_ended(lab: Lab, launchpad: Client, ctid: int) -> None:
    line = 'echo "$LAUNCHPAD_STATE $LAUNCHPAD_EXIT_CODE $LAUNCHPAD_ENDED_JOB" >>"$LAUNCHPAD_LOG"'
    job = launchpad.start_job("--confirm", "0", "--on-exit", line, f"pve1:{ctid}", "-c", "exit 7")
    wait_until(lambda: launchpad.log(job) == f"exited 7 {job}\n".encode(), 20)
    status = launchpad.status(job)
    assert (status["state"], status["exit_code"], status["processes"]) == ("exited", 7, 0)
    del lab


def test_two_clients_may_kill_the_same_job(make_client: Callable[..., Client]) -> None:
    one, two = make_client("one"), make_client("two")
    job = one.start_job("pve1:101", "-c", f"trap 'sleep 1; exit 0' TERM; {FOREVER}")
    two.succeed("status", "pve1:101")
    first, second = one.start("kill", job), two.start("kill", job)
    assert first.wait(60) == 0
    assert second.wait(60) == 0
    assert one.status(job)["exit_code"] == 0
