"""What became of a job, asked through the scripts under bash, dash and busybox."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from launchpad.state import Exited, Killed, Lost, Reason, Running, Starting, Unreachable
from launchpad.verdict import judge_disk
from support.remote_jobs import STATUS, is_alive, wait_gone
from support.waiting import wait_until

if TYPE_CHECKING:
    from launchpad.frames import Frame
    from launchpad.job import JobId
    from support.remote_jobs import RemoteJobs

FOREVER = "while :; do sleep 0.2; done"


def wait_end(jobs: RemoteJobs, job: JobId) -> None:
    wait_until(lambda: not (jobs.directory(job) / "running").exists(), what="an end record")


@pytest.mark.parametrize(
    ("script", "state"),
    [
        ("exit 0", Exited(0)),
        ("exit 7", Exited(7)),
        ("exit 255", Exited(255)),
        ("exit 137", Exited(137)),
        ("kill -9 $$", Killed(9, Reason.OTHER)),
        ("kill -11 $$", Killed(11, Reason.OTHER)),
        ("kill -15 $$", Killed(15, Reason.OTHER)),
    ],
)
def test_code_or_signal_of_a_job_that_nobody_watched(
    jobs: RemoteJobs, script: str, state: Exited | Killed
) -> None:
    job = jobs.script(script)
    wait_end(jobs, job)
    found = jobs.look(job)
    assert found.state == state
    assert found.processes == 0
    assert found.elapsed_s is not None
    assert found.elapsed_s < 30


def test_a_running_job_with_its_figures(jobs: RemoteJobs) -> None:
    job = jobs.script(f'sleep 100 & printf "a\\nstep 1\\r[red]step 2\\n"; {FOREVER}')
    jobs.wait_log(job, "step 2")
    found = jobs.look(job)
    assert found.state == Running()
    assert found.last_line == "[red]step 2"
    assert found.processes in {2, 3}
    assert found.log_bytes == len(jobs.log(job))
    assert found.rss_bytes
    assert found.elapsed_s is not None
    assert abs(found.elapsed_s - (time.time() - (found.started_at or 0))) < 5


def test_cpu_time_of_ended_children_counts(jobs: RemoteJobs) -> None:
    burn = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"
    job = jobs.script(f"sh -c '{burn}'; echo burnt; {FOREVER}")
    jobs.wait_log(job, "burnt")
    members = {member.pid: member for member in jobs.facts(job.text).of(job).members}
    assert members[jobs.main(job)].cpu_ticks > 2


def test_a_disk_that_job_files_fill(jobs: RemoteJobs) -> None:
    jobs.state.mkdir(mode=0o700)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "none", jobs.state], check=True
    )
    try:
        job = jobs.script("dd if=/dev/zero bs=65536 count=30 2>/dev/null")
        wait_end(jobs, job)
        disk = jobs.facts(job.text).disk
        assert disk is not None
        assert judge_disk(disk, "gpu", "/state") is None
        assert disk.jobs is None
        job = jobs.script("dd if=/dev/zero bs=65536 count=100 2>/dev/null")
        wait_end(jobs, job)
        disk = jobs.facts(job.text).disk
        assert disk is not None
        assert disk.total == 4 << 20
        assert disk.jobs is not None
        assert disk.jobs > 3 << 20
        warning = judge_disk(disk, "gpu", "/state")
        assert warning is not None
        assert "the disk of /state in gpu is nearly full: 0 MB free" in warning
        assert "launchpad prune gpu" in warning
    finally:
        subprocess.run(["umount", "-l", jobs.state], check=True)


def test_only_the_supervisor_was_killed(jobs: RemoteJobs) -> None:
    job = jobs.script(FOREVER)
    os.kill(jobs.supervisor(job), signal.SIGKILL)
    wait_gone(jobs.supervisor(job))
    assert jobs.state_of(job) == Running(Reason.SUPERVISOR_LOST)
    os.kill(jobs.main(job), signal.SIGKILL)
    wait_gone(jobs.main(job))
    assert jobs.state_of(job) in {
        Lost(Reason.SUPERVISOR_LOST),
        Killed(9, Reason.SUPERVISOR_LOST),  # where nobody reaps, the zombie still knows
    }


def test_supervisor_and_job_were_killed_together(jobs: RemoteJobs) -> None:
    job = jobs.script(FOREVER)
    pids = (jobs.supervisor(job), jobs.main(job))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_gone(*pids)
    assert jobs.state_of(job) in {
        Lost(Reason.SUPERVISOR_LOST),
        Killed(9, Reason.SUPERVISOR_LOST),
    }


def test_an_end_that_is_not_recorded_yet_is_not_invented(jobs: RemoteJobs) -> None:
    job = jobs.script(FOREVER)
    os.kill(jobs.supervisor(job), signal.SIGSTOP)
    os.kill(jobs.main(job), signal.SIGKILL)
    assert isinstance(jobs.state_of(job), Unreachable)
    os.kill(jobs.supervisor(job), signal.SIGCONT)
    wait_end(jobs, job)
    assert jobs.state_of(job) == Killed(9, Reason.OTHER)


def test_a_damaged_or_foreign_file_hides_no_other_job(jobs: RemoteJobs) -> None:
    good = jobs.script("echo fine; exit 3")
    bad = jobs.script("exit 0")
    pipes = jobs.script("exit 0")
    for job in (good, bad, pipes):
        wait_end(jobs, job)
    directory = jobs.directory(bad)
    (directory / "main").write_bytes(b"1 12 34\n\xff")
    (directory / "spec").write_bytes(os.urandom(5000))
    (directory / "log").write_bytes(b"==> other-aaaaaa/log <==\nx\n" + os.urandom(100))
    for end in directory.glob("end,*"):
        end.rename(directory / "end,1,exi")
    for name in ("spec", "main", "log", "members", "cgroup"):
        path = jobs.directory(pipes) / name
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    root = jobs.state / "jobs"
    (root / "README").write_text("foreign")
    (root / "not a job").mkdir()
    (root / "-rf-aaaaaa").mkdir()
    (root / "link-aaaaaa").symlink_to("/")
    (root / "loop-aaaaaa").symlink_to("loop-aaaaaa")
    facts = jobs.facts()
    found = {job.text for job, each in facts.jobs.items() if each.directory}
    assert found == {good.text, bad.text, pipes.text}
    assert jobs.look(good, "*").state == Exited(3)
    assert jobs.look(good, "*").last_line == "fine"
    assert jobs.look(bad, "*").state == Lost(Reason.RECORD_DAMAGED)
    assert jobs.look(pipes, "*").state == Exited(0)
    spec = facts.of(good).spec
    assert spec is not None
    assert spec.started_by == "tester@here"


def test_a_log_on_a_pipe_or_a_device_is_not_opened(jobs: RemoteJobs, tmp_path: Path) -> None:
    job = jobs.script("exit 0")
    wait_end(jobs, job)
    log = jobs.directory(job) / "log"
    for target in ("/dev/zero", str(tmp_path / "pipe"), "/nowhere"):
        log.unlink()
        log.symlink_to(target)
        if target.endswith("pipe"):
            os.mkfifo(target)
        found = jobs.look(job)
        assert found.state == Exited(0)
        assert found.log_bytes is None


def test_a_lost_directory_the_index_still_knows(jobs: RemoteJobs) -> None:
    job = jobs.script("sleep 0.3; " + FOREVER)
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
    word = f"{job}={','.join(map(str, numbers))}"
    assert jobs.look(job, word).state == Running(Reason.RECORD_DAMAGED)
    os.kill(identity.pid, signal.SIGKILL)
    wait_gone(identity.pid)
    # The supervisor, its directory gone, has put the end where it could.
    wait_until(lambda: jobs.look(job, word).ended_at, what="an end")
    assert jobs.look(job, word).state == Killed(9, Reason.OTHER)
    for left in Path(f"/dev/shm/launchpad-{os.getuid()}").glob(f"{job}*"):
        left.unlink()


def test_a_recycled_pid_is_another_process(jobs: RemoteJobs) -> None:
    job = jobs.script("exec sleep 300")
    record = (jobs.directory(job) / "main").read_text().split()
    stranger = subprocess.Popen(["sleep", "300"], start_new_session=True)
    try:
        os.kill(jobs.supervisor(job), signal.SIGKILL)
        os.kill(jobs.main(job), signal.SIGKILL)
        wait_gone(jobs.main(job))
        # As if the number had come round: the PID and session of the stranger, our start ticks.
        record[1] = record[3] = str(stranger.pid)
        (jobs.directory(job) / "main").write_text(" ".join(record) + "\n")
        found = jobs.look(job)
        assert found.state == Lost(Reason.SUPERVISOR_LOST)
        assert found.processes == 0
    finally:
        stranger.kill()
        stranger.wait()


def test_after_a_restart_no_process_is_ours(jobs: RemoteJobs) -> None:
    job = jobs.script(FOREVER)
    main = jobs.directory(job) / "main"
    words = main.read_text().split()
    words[4] = "00000000-0000-0000-0000-000000000000"
    main.write_text(" ".join(words) + "\n")
    assert jobs.state_of(job) == Lost(Reason.CONTAINER_RESTARTED)


def test_a_job_that_has_only_a_directory_is_starting_for_a_while(jobs: RemoteJobs) -> None:
    job = jobs.script("exit 0")
    wait_end(jobs, job)
    directory = jobs.directory(job)
    (directory / "main").unlink()
    for end in directory.glob("end,*"):
        end.unlink()
    (directory / "spec").touch()
    assert jobs.state_of(job) == Starting()
    os.utime(directory / "spec", (time.time() - 60, time.time() - 60))
    assert jobs.state_of(job) == Lost(Reason.NEVER_STARTED)


def test_a_thousand_ended_jobs_are_cheap(jobs: RemoteJobs) -> None:
    job = jobs.script("echo hello; exit 5")
    wait_end(jobs, job)
    root = jobs.state / "jobs"
    script = (
        "import os,shutil,sys; root,source=sys.argv[1:]\n"
        "letters='abcdefghijklmnopqrstuvwxyz'\n"
        "for n in range(1000):\n"
        "    name=f'many-aaa{letters[n//676]}{letters[n//26%26]}{letters[n%26]}'\n"
        "    os.mkdir(f'{root}/{name}')\n"
        "    for f in os.listdir(f'{root}/{source}'):\n"
        "        if f != 'alive': shutil.copy2(f'{root}/{source}/{f}', f'{root}/{name}/{f}')\n"
        "    os.mkfifo(f'{root}/{name}/alive')\n"
    )
    subprocess.run(["python3", "-c", script, root, job.text], check=True)
    began = time.process_time(), os.times().children_user + os.times().children_system
    facts = jobs.facts()
    spent = os.times().children_user + os.times().children_system - began[1]
    found = [each for each in facts.jobs.values() if each.directory]
    assert len(found) == 1001
    assert all(each.end and each.tail == b"hello\n" for each in found)
    assert spent < 2.0  # seconds of CPU; a process for each job would need several times that


def test_nothing_is_left_open_or_written_by_looking(jobs: RemoteJobs) -> None:
    job = jobs.script("exit 0")
    wait_end(jobs, job)
    before = sorted(path.name for path in jobs.directory(job).iterdir())
    jobs.look(job)
    assert sorted(path.name for path in jobs.directory(job).iterdir()) == before


def test_watch_answers_each_byte_and_ends_with_its_reader(jobs: RemoteJobs) -> None:
    from launchpad.frames import FrameReader
    from launchpad.replies import parse_facts
    from launchpad.scripts import remote_call

    job = jobs.script(f"echo one; {FOREVER}")
    call = remote_call((), STATUS, [str(jobs.state), "no", "100", "watch", job.text])
    process = subprocess.Popen(
        jobs.shell.words(call.words), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    reader = FrameReader(call.marker)

    def answer() -> bytes | None:
        frames: list[Frame] = []
        while not frames or frames[-1].name != "done":
            data = os.read(process.stdout.fileno(), 65536)  # type: ignore[union-attr]
            assert data
            frames += reader.feed(data)
        return parse_facts(frames).of(job).tail

    process.stdin.write(call.data)
    process.stdin.flush()
    jobs.wait_log(job, "one")
    assert answer() in {b"", b"one\n"}
    for _ in range(3):
        process.stdin.write(b"x")
        process.stdin.flush()
        assert answer() == b"one\n"
    process.stdin.close()
    assert process.wait(10) == 0
    process.stdout.close()
    assert is_alive(jobs.main(job))
