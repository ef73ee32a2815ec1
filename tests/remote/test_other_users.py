"""Another user of the container, who plants links and directories where root will work."""

from __future__ import annotations

import os
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from launchpad.command import Argv
from launchpad.job import JobSpec, new_job_id
from launchpad.scripts import remote_call
from launchpad.state import Killed, Reason
from support.calls import launch_call
from support.remote_jobs import KILL, STATUS
from support.waiting import wait_until

if TYPE_CHECKING:
    from launchpad.scripts import RemoteCall
    from support.remote_jobs import RemoteJobs
    from support.shells import Shell

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user too")

# daemon in Debian's passwd and in busybox' images.
OTHER = 1
LOOKUP = ("common", "members", "facts", "lookup")
PRUNE = ("common", "members", "facts", "prune")


def launch(jobs: RemoteJobs, *words: str, **spec: object) -> RemoteCall:
    job = JobSpec(new_job_id("job"), Argv(words), login=False, **spec)  # type: ignore[arg-type]
    jobs.launched[job.id] = ()
    return launch_call((), str(jobs.state), job, '{"command":["x"]}', follow=False)


def refusal(jobs: RemoteJobs, call: RemoteCall) -> str:
    return " ".join(word for f in jobs.call(call) if f.name == "refused" for word in f.words[:1])


def names_in(place: Path) -> list[str]:
    return sorted(str(each.relative_to(place)) for each in place.rglob("*"))


@pytest.fixture(params=["owned", "writable", "linked"])
def planted(request: pytest.FixtureRequest, jobs: RemoteJobs, tmp_path: Path) -> Path:
    """A state directory that another user has a say in, with links to a directory of root's."""
    victim = tmp_path / "victim"
    victim.mkdir()
    state = jobs.state
    if request.param == "linked":
        state = tmp_path / "elsewhere"
        jobs.state.symlink_to(state)
    (state / "jobs").mkdir(parents=True)
    for name in ("keys", "fences"):
        (state / name).symlink_to(victim)
    if request.param == "owned":
        os.chown(state, OTHER, OTHER)
    elif request.param == "writable":
        state.chmod(0o777)
    return victim


def test_nothing_is_done_in_a_state_directory_that_others_have_a_say_in(
    jobs: RemoteJobs, planted: Path
) -> None:
    where, job = str(jobs.state), str(new_job_id("job"))
    calls = (
        launch(jobs, "sleep", "300", idempotency_key="k"),
        remote_call((), STATUS, [where, "yes", "1024", "once", "*"]),
        remote_call((), KILL, [where, "me", "15", "100", job]),
        remote_call((), LOOKUP, [job, where, "1"]),
        remote_call((), PRUNE, [where, job]),
    )
    assert [refusal(jobs, call) for call in calls] == ["state-owner"] * len(calls)
    assert names_in(planted) == []
    assert names_in(jobs.state / "jobs") == []


def test_a_log_that_is_appended_to_is_no_link_of_another_user(
    jobs: RemoteJobs, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("root's own\n")
    link = tmp_path / "run.log"
    link.symlink_to(victim)
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    call = launch(jobs, "echo", "evil", log=str(link), append=True)
    assert refusal(jobs, call) == "log-link"
    assert victim.read_text() == "root's own\n"
    assert names_in(jobs.state / "jobs") == []
    # A link of one's own is followed, as anywhere.
    os.chown(link, 0, 0, follow_symlinks=False)
    jobs.run("echo", "mine", log=str(link), append=True)
    wait_until(lambda: victim.read_text() == "root's own\nmine\n", what="appended")


def test_a_new_log_is_opened_by_its_name_once(jobs: RemoteJobs, tmp_path: Path) -> None:
    """Whoever may write in its directory could put a link in its place before the second time."""
    log, trace = tmp_path / "run.log", tmp_path / "trace"
    call = launch(jobs, "echo", "x", log=str(log))
    done = subprocess.run(
        [
            "strace",
            "-f",
            "-qq",
            "-e",
            "trace=open,openat",
            "-o",
            trace,
            *jobs.shell.words(call.words),
        ],
        input=call.data,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b" launched " in done.stdout
    wait_until(lambda: log.read_text() == "x\n", what="the log")
    opened = [line for line in trace.read_text(errors="replace").splitlines() if f'"{log}"' in line]
    writing = [line for line in opened if "O_WRONLY" in line or "O_RDWR" in line]
    assert len(writing) == 1, writing
    assert "O_EXCL" in writing[0]
    assert "O_APPEND" in next(
        line for line in trace.read_text(errors="replace").splitlines() if "/proc/self/fd/4" in line
    )


# busybox's own way to another user needs its programs where that user may look.
@pytest.mark.parametrize("shell", ["bash", "dash"], indirect=True)
def test_the_end_of_another_users_job_is_found_where_no_directory_is_left(
    jobs: RemoteJobs,
) -> None:
    job = jobs.run("sleep", "300", user=str(OTHER))
    identity = jobs.facts(job.text).of(job).identity
    assert identity is not None
    word = f"{job}={identity.pid},{identity.ticks},{identity.session}"
    word += f",{identity.boot_id},{identity.boot_ticks}"
    subprocess.run(["rm", "-rf", jobs.directory(job)], check=True)
    os.kill(identity.pid, 9)
    try:
        wait_until(lambda: jobs.look(job, word).ended_at, what="an end")
        assert jobs.look(job, word).state == Killed(9, Reason.OTHER)
    finally:
        for left in Path("/dev/shm/launchpad-0").glob(f"{job}*"):
            left.unlink()


@pytest.mark.parametrize(
    "squat",
    [
        "mkdir /victim && chmod 777 /victim && ln -s /victim /dev/shm/launchpad-0",
        "mkdir /dev/shm/launchpad-0 && chown 1:1 /dev/shm/launchpad-0",
    ],
    ids=["link", "directory"],
)
def test_no_record_goes_to_a_place_in_dev_shm_that_another_user_has_taken(
    shell: Shell, squat: str
) -> None:
    text = (files("launchpad") / "remote/supervise.sh").read_text("utf-8")
    functions = text[: text.rindex('supervise "$@"')]
    squat = squat.replace("/victim", "/mnt/victim")
    private = (
        "mount -t tmpfs -o mode=1777 none /dev/shm && mount -t tmpfs none /mnt &&"
        f' {{ {squat}; }} && chown -h 1:1 /dev/shm/launchpad-0 && "$@";'
        " ls /dev/shm/launchpad-0/ >&2"
    )
    done = subprocess.run(
        [
            *("unshare", "--mount", "sh", "-c", private, "sh", *shell.argv, "-c"),
            f"{functions}\ndir=/nowhere id=job-aaaaaa uid=1 switch=setpriv\n"
            "record_end end\necho $?",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == "1\n"
    assert "job-aaaaaa" not in done.stderr
