"""The end of all of a job and of nothing else: real processes under bash, dash and busybox."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from launchpad.kill_reply import Ended, parse_ended
from launchpad.scripts import remote_call
from launchpad.state import Exited, Killed, Lost, Reason, Running
from support.remote_jobs import KILL, is_alive, wait_gone
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from launchpad.job import JobId
    from support.remote_jobs import RemoteJobs

FOREVER = "while :; do sleep 0.2; done"
# A child that writes its PID into the log: $1 is what it does.
LEAVE_CGROUP = (
    "for g in /sys/fs/cgroup /sys/fs/cgroup/unified; do echo 0 >$g/cgroup.procs; done 2>/dev/null"
)


def end(
    jobs: RemoteJobs, job: JobId, *, signal_: int = signal.SIGTERM, grace: int | str = 500
) -> Ended:
    return parse_ended(jobs.kill(job.text, signal_=signal_, grace=grace))[job]


def pids_in(jobs: RemoteJobs, job: JobId, count: int) -> list[int]:
    """The PIDs that a job's processes have written into its log, one a line: ``pid N``."""

    def found() -> list[int]:
        lines = [line.split() for line in jobs.log(job).splitlines()]
        pids = [int(words[1]) for words in lines if len(words) == 2 and words[0] == "pid"]
        return pids if len(pids) >= count else []

    return wait_until(found, 30, f"{count} PIDs")


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with any job."""
    process = subprocess.Popen(["sleep", "777"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_eight_workers_and_their_parent(jobs: RemoteJobs) -> None:
    job = jobs.script("for i in 1 2 3 4 5 6 7 8; do sleep 500 & echo pid $!; done; wait")
    pids = pids_in(jobs, job, 8)
    ended = end(jobs, job)
    assert not any(map(is_alive, [*pids, jobs.main(job)]))
    assert ended.count == 9
    assert not ended.left
    assert jobs.state_of(job) == Killed(15, Reason.LAUNCHPAD)


def test_saving_is_waited_for_and_workers_live_until_it_is_done(jobs: RemoteJobs) -> None:
    job = jobs.script(
        "sleep 500 & worker=$!; echo pid $worker\n"
        "save() { sleep 1; kill -0 $worker && echo saved with worker; exit 0; }\n"
        f"trap save TERM; {FOREVER}"
    )
    (worker,) = pids_in(jobs, job, 1)
    ended = end(jobs, job, grace=2000)
    assert "saved with worker" in jobs.log(job)
    assert not is_alive(worker)
    assert ended.main_signal == signal.SIGTERM
    assert ended.main_after >= 1.0
    assert ended.kill == 0
    assert jobs.state_of(job) == Exited(0, Reason.LAUNCHPAD)


def test_who_asked_is_known_afterwards(jobs: RemoteJobs) -> None:
    job = jobs.script(FOREVER)
    end(jobs, job)
    request = jobs.look(job).kill_request
    assert request is not None
    assert (request.by, request.signal) == ("tester@here", signal.SIGTERM)
    (record,) = jobs.directory(job).glob("kill,1,*")
    record.write_text("")
    request = jobs.look(job).kill_request
    assert request is not None
    assert request.by is None


def test_a_second_kill_is_a_no_op(jobs: RemoteJobs) -> None:
    job = jobs.script("exit 3")
    wait_until(lambda: not (jobs.directory(job) / "running").exists())
    ended = end(jobs, job)
    assert ended.count == 0
    assert jobs.state_of(job) == Exited(3)
    assert (jobs.directory(job) / "unasked").exists()


def test_who_ignores_term_is_killed_at_the_end_of_the_grace_time(jobs: RemoteJobs) -> None:
    job = jobs.script(f"trap '' TERM; echo pid $$; {FOREVER}")
    pids_in(jobs, job, 1)
    began = time.monotonic()
    ended = end(jobs, job, grace=100)
    assert ended.main_signal == signal.SIGKILL
    assert time.monotonic() - began < 60
    assert ended.main_after >= 1.0
    assert jobs.state_of(job) == Killed(9, Reason.LAUNCHPAD)


def test_half_of_the_grace_time_is_for_the_main_process_alone(jobs: RemoteJobs) -> None:
    job = jobs.script(
        'sh -c \'trap "echo worker got it; exit" TERM; echo pid $$;'
        " while :; do sleep 0.1; done' &\n"
        "trap 'echo main got it' TERM; while :; do wait; done"
    )
    pids_in(jobs, job, 1)
    end(jobs, job, grace=200)
    log = jobs.log(job)
    assert log.index("main got it") < log.index("worker got it")


def test_stopped_processes_act_on_term_too(jobs: RemoteJobs) -> None:
    job = jobs.script(f"trap 'echo saved; exit 0' TERM; echo pid $$; {FOREVER}")
    (main,) = pids_in(jobs, job, 1)
    os.kill(main, signal.SIGSTOP)
    ended = end(jobs, job, grace=2000)
    assert "saved" in jobs.log(job)
    assert ended.main_signal == signal.SIGTERM


MEMBERS = {
    "session of its own": "setsid sh -c 'echo pid $$; exec sleep 500' &",
    "double fork": "( (sh -c 'echo pid $$; exec sleep 500' &) & )",
    "double fork and session": "(setsid sh -c 'echo pid $$; exec sleep 500' &)",
    "ignores TERM": "setsid sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 0.1; done' &",
    "environment of its own": "env -i PATH=$PATH sh -c 'echo pid $$; exec sleep 500' &",
    "stopped": "setsid sh -c 'echo pid $$; kill -STOP $$; exec sleep 500' &",
}


@pytest.mark.parametrize("kind", MEMBERS)
@pytest.mark.parametrize("parent_lives", [True, False], ids=["parent lives", "parent ended"])
def test_members_are_found_without_a_cgroup(
    jobs: RemoteJobs, kind: str, *, parent_lives: bool
) -> None:
    rest = FOREVER if parent_lives else "sleep 0.3"
    job = jobs.script(f"{LEAVE_CGROUP}\n{MEMBERS[kind]}\n{rest}")
    (pid,) = pids_in(jobs, job, 1)
    if not parent_lives:
        wait_gone(jobs.main(job))
        assert jobs.look(job).processes, "shown as living on"
    ended = end(jobs, job, grace=100)
    assert not is_alive(pid), ended
    assert ended.count >= 1
    assert not ended.left


def test_nothing_escapes_a_cgroup(jobs: RemoteJobs) -> None:
    """No parent, no session, no mark: a daemon that wrote its title over its environment."""
    job = jobs.script("(env -i setsid sh -c 'echo pid $$; exec sleep 500' &); sleep 0.2")
    (pid,) = pids_in(jobs, job, 1)
    wait_gone(jobs.main(job))
    if not (jobs.directory(job) / "cgroup").exists():
        pytest.skip("no cgroup can be made on this machine")
    assert jobs.look(job).processes == 1
    end(jobs, job)
    assert not is_alive(pid)


def test_a_member_once_seen_is_remembered(jobs: RemoteJobs) -> None:
    """Only its parent betrays it; then the parent is gone."""
    job = jobs.script(f"{LEAVE_CGROUP}\nenv -i setsid sh -c 'echo pid $$; exec sleep 500' &\nwait")
    (pid,) = pids_in(jobs, job, 1)
    wait_until(lambda: str(pid) in [str(m.pid) for m in jobs.facts(job.text).of(job).members])
    os.kill(jobs.main(job), signal.SIGKILL)
    wait_gone(jobs.main(job))
    assert [member.pid for member in jobs.facts(job.text).of(job).members] == [pid]
    end(jobs, job)
    assert not is_alive(pid)


def test_a_title_over_the_environment(jobs: RemoteJobs) -> None:
    """As setproctitle leaves it: where the environment was, there are NULs."""
    wipe = (
        "import ctypes,os,time\n"
        "fields=open('/proc/self/stat').read().rpartition(') ')[2].split()\n"
        "start,end=int(fields[47]),int(fields[48])\n"
        "ctypes.memset(start,0,end-start)\n"
        "print('pid',os.getpid(),flush=True)\n"
        "time.sleep(500)\n"
    )
    job = jobs.run("sh", "-c", f'{LEAVE_CGROUP}; python3 -c "$1" & wait', "sh", wipe)
    (pid,) = pids_in(jobs, job, 1)
    assert b"LAUNCHPAD" not in Path(f"/proc/{pid}/environ").read_bytes()
    os.kill(jobs.main(job), signal.SIGKILL)
    wait_gone(jobs.main(job))
    end(jobs, job)
    assert not is_alive(pid)


def test_one_parent_and_seven_that_outlive_its_sigkill(jobs: RemoteJobs) -> None:
    job = jobs.script(
        "for i in 1 2 3; do setsid sh -c 'echo pid $$; exec sleep 500' & done\n"
        "for i in 1 2; do (sh -c 'echo pid $$; exec sleep 500' &); done\n"
        "for i in 1 2; do sh -c 'trap \"\" TERM; echo pid $$; exec sleep 500' & done\n"
        "wait"
    )
    pids = pids_in(jobs, job, 7)
    os.kill(jobs.main(job), signal.SIGKILL)
    wait_until(lambda: not (jobs.directory(job) / "running").exists())
    found = jobs.look(job)
    assert found.state == Killed(9, Reason.OTHER)
    assert found.processes == 7
    ended = end(jobs, job, grace=200)
    assert not any(map(is_alive, pids))
    assert ended.count == 7
    # How long it takes is tested in a container: here, every process of the machine is looked at.
    assert (ended.term, ended.kill) == (5, 2)
    assert jobs.state_of(job) == Killed(9, Reason.OTHER)


def test_the_same_command_in_another_job_is_safe(
    jobs: RemoteJobs, bystander: subprocess.Popen[bytes]
) -> None:
    one = jobs.run("sleep", "777")
    two = jobs.run("sleep", "777")
    talks_of_one = jobs.run("sh", "-c", "exec sleep 777", f"LAUNCHPAD_JOB_ID={one}")
    end(jobs, one)
    assert not is_alive(jobs.main(one))
    assert is_alive(jobs.main(two))
    assert is_alive(jobs.main(talks_of_one))
    assert bystander.poll() is None


def test_a_mark_inside_a_value_is_no_mark(jobs: RemoteJobs) -> None:
    one = jobs.run("sleep", "777")
    lines = {
        "NOTE": f"x\nLAUNCHPAD_JOB_ID={one}",
        "FORGED": f"x\n==> /proc/1/environ <==\nLAUNCHPAD_JOB_ID={one}\n",
        "AAA": f"\x01LAUNCHPAD_JOB_ID={one}",
    }
    with subprocess.Popen(["sleep", "777"], env=lines, start_new_session=True) as stranger:
        try:
            assert [m.pid for m in jobs.facts(one.text).of(one).members] == [jobs.main(one)]
            end(jobs, one, signal_=signal.SIGKILL)
            assert stranger.poll() is None
        finally:
            stranger.kill()


def test_no_record_can_point_at_somebody_else(
    jobs: RemoteJobs, bystander: subprocess.Popen[bytes]
) -> None:
    """A PID that was recycled; sessions 0 and 1."""
    job = jobs.script("exit 0")
    wait_until(lambda: not (jobs.directory(job) / "running").exists())
    main = jobs.directory(job) / "main"
    words = main.read_text().split()
    for pid, session in ((bystander.pid, bystander.pid), (1, 1), (0, 0), (2, 0)):
        words[1], words[3] = str(pid), str(session)
        main.write_text(" ".join(words) + "\n")
        assert end(jobs, job, grace=10).count == 0
    assert bystander.poll() is None


def test_a_state_directory_of_somebody_else_is_refused(jobs: RemoteJobs) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    job = jobs.run("sleep", "777")
    os.chown(jobs.state / "jobs", 12345, 12345)
    call = remote_call((), KILL, [str(jobs.state), "me", "15", "100", job.text])
    assert [frame.name for frame in jobs.call(call)] == ["begin", "refused", "done"]
    assert is_alive(jobs.main(job))
    os.chown(jobs.state / "jobs", 0, 0)


def test_a_checkpoint_signal_and_nothing_more(jobs: RemoteJobs) -> None:
    job = jobs.script(
        "sh -c 'trap \"echo worker\" USR1; echo pid $$; while :; do sleep 0.1; done' &\n"
        f"trap 'echo checkpoint' USR1; {FOREVER}"
    )
    pids_in(jobs, job, 1)
    ended = end(jobs, job, signal_=signal.SIGUSR1, grace="once")
    assert (ended.once, ended.pid) == (signal.SIGUSR1, jobs.main(job))
    jobs.wait_log(job, "checkpoint")
    assert "worker" not in jobs.log(job)
    assert jobs.state_of(job) == Running()
    # What ends it later is not launchpad's signal.
    os.kill(jobs.main(job), signal.SIGKILL)
    wait_until(lambda: not (jobs.directory(job) / "running").exists())
    assert jobs.state_of(job) == Killed(9, Reason.OTHER)


def test_sigint_that_nobody_handles_is_told_from_exit_130(jobs: RemoteJobs) -> None:
    job = jobs.run("sleep", "777")
    end(jobs, job, signal_=signal.SIGINT, grace=1000)
    assert jobs.state_of(job) in {Killed(2, Reason.LAUNCHPAD), Exited(130, Reason.LAUNCHPAD)}


def test_sigkill_takes_the_whole_tree_at_once(jobs: RemoteJobs) -> None:
    job = jobs.script("trap 'echo saved' TERM; setsid sleep 500 & echo pid $!; wait")
    (pid,) = pids_in(jobs, job, 1)
    ended = end(jobs, job, signal_=signal.SIGKILL)
    assert not is_alive(pid)
    assert (ended.main_signal, ended.kill) == (signal.SIGKILL, 1)
    assert "saved" not in jobs.log(job)


@pytest.mark.parametrize("cgroup", [True, False], ids=["cgroup", "no cgroup"])
def test_a_storm_of_forks(jobs: RemoteJobs, *, cgroup: bool) -> None:
    leave = "" if cgroup else LEAVE_CGROUP
    job = jobs.script(
        f"{leave}\ntrap '' TERM\n"
        "storm() { trap '' TERM; while :; do sleep 0.2 & sleep 0.01; done; }\n"
        "storm & storm &\n"
        "setsid sh -c 'trap \"\" TERM; while :; do (sleep 0.1 &) ; sleep 0.01; done' &\n"
        "echo pid $$; storm"
    )
    pids_in(jobs, job, 1)
    ended = end(jobs, job, grace=50)
    assert not ended.left
    assert jobs.look(job).processes == 0


def test_several_jobs_in_one_call_side_by_side(jobs: RemoteJobs, tmp_path: Path) -> None:
    # Each waits, when it is told to end, until all have been told.
    script = (
        "save() { : >$1/$$; until set -- $1/* && [ $# = 4 ]; do set -- ${1%/*}; sleep 0.1; done; "
        "exit 0; }\n"
        f"trap 'save $1' TERM; echo pid $$; {FOREVER}"
    )
    told = tmp_path / "told"
    told.mkdir()
    several = [jobs.script(script, str(told)) for _ in range(4)]
    for job in several:
        pids_in(jobs, job, 1)
    ended = parse_ended(jobs.kill(*(job.text for job in several), grace=6000))
    assert set(ended) == set(several)
    assert all(each.main_signal == signal.SIGTERM for each in ended.values())
    for job in several:
        assert jobs.state_of(job) == Exited(0, Reason.LAUNCHPAD)


def test_it_goes_on_when_nobody_listens_any_more(jobs: RemoteJobs) -> None:
    job = jobs.script(f"trap '' TERM; echo pid $$; {FOREVER}")
    pids_in(jobs, job, 1)
    call = remote_call((), KILL, [str(jobs.state), "me", "15", "150", job.text])
    process = subprocess.Popen(
        jobs.shell.words(call.words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdin.write(call.data)
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()
    wait_until(lambda: list(jobs.directory(job).glob("kill,*")), 30, "a record of who asked")
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGHUP)
    wait_gone(jobs.main(job), timeout=30)
    process.wait(30)


def test_a_job_that_lost_its_directory(jobs: RemoteJobs) -> None:
    job = jobs.script("setsid sleep 500 & echo pid $!; wait")
    (pid,) = pids_in(jobs, job, 1)
    identity = jobs.look(job).identity
    assert identity is not None
    subprocess.run(["rm", "-rf", jobs.directory(job)], check=True)
    numbers = (
        identity.pid,
        identity.ticks,
        identity.session,
        identity.boot_id,
        identity.boot_ticks,
    )
    ended = parse_ended(jobs.kill(f"{job}={','.join(map(str, numbers))}"))[job]
    assert ended.count == 2
    assert not any(map(is_alive, (pid, identity.pid)))
    for left in Path(f"/dev/shm/launchpad-{os.getuid()}").glob(f"{job}*"):
        left.unlink()


def test_the_supervisor_is_gone_and_the_rest_is_ended(jobs: RemoteJobs) -> None:
    job = jobs.script("sleep 500 & echo pid $!; wait")
    (pid,) = pids_in(jobs, job, 1)
    os.kill(jobs.supervisor(job), signal.SIGKILL)
    wait_gone(jobs.supervisor(job))
    ended = end(jobs, job)
    assert ended.count == 2
    assert not is_alive(pid)
    assert jobs.state_of(job) in {
        Lost(Reason.SUPERVISOR_LOST),
        Killed(15, Reason.LAUNCHPAD),  # where nobody reaps, the zombie still knows
    }


def test_a_job_can_kill_itself_wholly(jobs: RemoteJobs, tmp_path: Path) -> None:
    """The kill runs inside the job, and is not a member while it works."""
    call = tmp_path / "call"
    job = jobs.run(
        "sh",
        "-c",
        f"sleep 500 & echo pid $!; until [ -e {call}.sh ]; do sleep 0.1; done; . {call}.sh;"
        " sleep 500",
    )
    (pid,) = pids_in(jobs, job, 1)
    made = remote_call((), KILL, [str(jobs.state), "me", "15", "100", job.text])
    call.write_bytes(made.data)
    script = tmp_path / "call.part"
    script.write_text(f"{shlex.join(jobs.shell.words(made.words))} <{call} >{call}.out 2>&1\n")
    script.rename(f"{call}.sh")
    wait_gone(pid, jobs.main(job), timeout=30)


def test_a_process_in_the_kernel_is_listed_and_can_be_killed_later(jobs: RemoteJobs) -> None:
    freezer = Path("/sys/fs/cgroup/freezer")
    if not (freezer / "cgroup.procs").exists():
        pytest.skip("no freezer of cgroup version 1")
    job = jobs.script(f"trap '' TERM; {FOREVER}")
    place = freezer / f"test-{job}"
    place.mkdir()
    try:
        (place / "cgroup.procs").write_text(str(jobs.main(job)))
        (place / "freezer.state").write_text("FROZEN")
        wait_until(lambda: (place / "freezer.state").read_text().strip() == "FROZEN")
        began = time.monotonic()
        ended = end(jobs, job, grace=100)
        assert time.monotonic() - began < 40
        assert [(each.pid, each.state) for each in ended.left] == [(jobs.main(job), "D")]
        (place / "freezer.state").write_text("THAWED")
        wait_until(lambda: not (jobs.directory(job) / "running").exists())
        assert jobs.state_of(job) == Killed(9, Reason.LAUNCHPAD)
        assert end(jobs, job).count == 0
    finally:
        (place / "freezer.state").write_text("THAWED")
        wait_gone(jobs.main(job))
        wait_until(lambda: not (place / "cgroup.procs").read_text())
        place.rmdir()
