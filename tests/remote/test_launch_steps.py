"""A launch that is killed at each of its steps, and the truth that is told about it afterwards.

A step is the moment before a program that the scripts call does its work. The programs are wrapped
on PATH, outside of the scripts. busybox finds its applets before it looks at PATH, so this is
proven under bash and dash.
"""

from __future__ import annotations

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from launchpad.command import Argv
from launchpad.frames import Frame, is_whole, parse_frames
from launchpad.job import JobId, JobSpec, new_job_id
from launchpad.scripts import remote_call
from launchpad.state import Running
from support.calls import launch_call
from support.processes import end_process, start_ticks
from support.remote_jobs import RemoteJobs
from support.shells import Shell
from support.waiting import wait_until

# What launch.sh, supervise.sh and main.sh call from their beginning until the program runs.
PROGRAMS = ("cat", "date", "dd", "env", "mkdir", "mkfifo", "mv", "rm", "setsid", "timeout")
VICTIMS = ("launcher", "supervisor", "main", "supervisor and main", "everything")

# A call waits at its gate if it is the one to be stopped: the Nth of its name since the beginning.
_WRAPPER = """\
#!/bin/dash
number=1
until /bin/mkdir "{place}/calls/{name},$number" 2>/dev/null; do number=$((number + 1)); done
read -r wanted <"{place}/wanted"
if [ "$wanted" = "{name},$number" ]; then
  echo $$ >"{place}/reached.new" && /bin/mv "{place}/reached.new" "{place}/reached"
  read -r _ <"{place}/gate"
fi
exec "{program}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """A userland in which one call of one program can be held."""

    place: Path
    shell: Shell

    def begin(self, wanted: str) -> None:
        """Forget earlier calls; hold the call ``wanted`` ("mkdir,2")."""
        calls = self.place / "calls"
        calls.mkdir(exist_ok=True)
        for call in calls.iterdir():
            call.rmdir()
        (self.place / "reached").unlink(missing_ok=True)
        (self.place / "gate").unlink(missing_ok=True)
        os.mkfifo(self.place / "gate")
        (self.place / "wanted").write_text(f"{wanted}\n")

    def calls(self) -> list[str]:
        found = (self.place / "calls").iterdir()
        return [each.name for each in sorted(found, key=lambda each: each.stat().st_mtime_ns)]

    def release(self) -> None:
        """Let the held call go on, if it lives."""
        gate = os.open(self.place / "gate", os.O_RDWR | os.O_NONBLOCK)
        os.write(gate, b"go\n")
        reached = int((self.place / "reached").read_text())
        # The line is in the FIFO as long as we hold it open.
        wait_until(lambda: not _waits_at(reached, self.place / "gate"), what="the gate is passed")
        os.close(gate)


def _waits_at(pid: int, gate: Path) -> bool:
    with suppress(OSError):
        return any(link.readlink() == gate for link in Path(f"/proc/{pid}/fd").iterdir())
    return False


def make_stage(place: Path, shell: Shell) -> Stage:
    wrapped = place / "bin"
    wrapped.mkdir(parents=True)
    for name in PROGRAMS:
        wrapper = wrapped / name
        wrapper.write_text(_WRAPPER.format(place=place, name=name, program=shell.path / name))
        wrapper.chmod(0o755)
    return Stage(place, Shell(shell.name, Path(f"{wrapped}:{shell.path}")))


@dataclass(slots=True)
class Launch:
    """One launch that is under way."""

    jobs: RemoteJobs
    id: JobId
    process: subprocess.Popen[bytes]
    marker: bytes

    def processes(self) -> dict[str, list[int]]:
        """Those of the launch, by the part that they play; the program of the job is "main"."""
        found: dict[str, list[int]] = {"launcher": [], "supervisor": [], "main": []}
        directory = str(self.jobs.directory(self.id)).encode()
        mark = f"LAUNCHPAD_JOB_ID={self.id}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes()
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in environment or (b"$LAUNCHPAD_MAIN" in words and directory in words):
                found["main"].append(int(entry.name))
            elif b"$LAUNCHPAD_SUPERVISE" in words and directory in words:
                found["supervisor"].append(int(entry.name))
        if self.process.poll() is None:
            found["launcher"].append(self.process.pid)
        return {part: pids for part, pids in found.items() if pids}

    def reply(self) -> list[Frame]:
        stdout, stderr = self.process.communicate(timeout=30)
        if self.process.returncode == -signal.SIGKILL:
            return []
        frames = parse_frames(self.marker, stdout)
        assert is_whole(frames), (stdout, stderr)
        return frames

    def runs(self) -> bool:
        """Whether the job's program runs, looked at from outside."""
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                mark = f"LAUNCHPAD_JOB_ID={self.id}".encode()
                words = (entry / "cmdline").read_bytes()
                if words == b"sleep\x00300\x00" and mark in (entry / "environ").read_bytes():
                    return True
        return False


def launch(jobs: RemoteJobs) -> Launch:
    spec = JobSpec(new_job_id("step"), Argv(("sleep", "300")), login=False)
    record = '{"command":["sleep","300"],"started_by":"tester@here"}'
    call = launch_call((), str(jobs.state), spec, record, follow=False)
    jobs.launched[spec.id] = ()
    process = subprocess.Popen(
        jobs.shell.words(call.words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(call.data)
        process.stdin.close()
    process.stdin = None
    return Launch(jobs, spec.id, process, call.marker)


def lookup(jobs: RemoteJobs, job: JobId) -> list[str]:
    call = remote_call(
        (), ("common", "members", "facts", "lookup"), [job.text, str(jobs.state), "2"]
    )
    return [frame.name for frame in jobs.call(call)]


def steps_of_a_launch(stage: Stage) -> list[str]:
    """Every call of a wrapped program in a launch that nobody disturbs."""
    stage.begin("")
    jobs = RemoteJobs(stage.shell, stage.place / "state")
    undisturbed = launch(jobs)
    assert undisturbed.reply()[-2].name == "launched"
    jobs.clean_up()
    return stage.calls()


def kill(under_way: Launch, victim: str) -> bool:
    """SIGKILL to the victim; False where there is none yet, or no more."""
    parts = under_way.processes()
    wanted = list(parts) if victim == "everything" else victim.split(" and ")
    if not all(part in parts for part in wanted):
        return False
    pids = [pid for part in wanted for pid in parts[part]]
    identities = [(pid, start_ticks(pid)) for pid in pids]
    for pid, ticks in identities:
        if ticks is not None:
            end_process(pid, ticks)
    return True


def check(under_way: Launch, victim: str) -> None:
    """The reply and all later answers are true, and nothing runs that nobody knows of."""
    jobs, job = under_way.jobs, under_way.id
    frames = under_way.reply()
    names = [frame.name for frame in frames]
    if not frames:
        # Its client has no answer, and asks.
        names = lookup(jobs, job)
    directory = jobs.directory(job)
    if "launched" in names or "job" in names:
        state = _settled(under_way)
        assert isinstance(state, Running) == under_way.runs(), (state, under_way.processes())
        if "launched" in names and "main" not in victim and victim != "everything":
            assert isinstance(state, Running), state
        if not under_way.runs():
            wait_until(lambda: not _without_launcher(under_way), what=_left(under_way))
        return
    assert "refused" in names or "absent" in names, names
    assert not directory.exists(), f"a half-made job stays: {sorted(os.listdir(directory))}"  # noqa: PTH208
    wait_until(lambda: not _without_launcher(under_way), what=_left(under_way))


def _settled(under_way: Launch) -> object:
    """What status says, once it says the same as the processes."""

    def state() -> object:
        found = under_way.jobs.state_of(under_way.id)
        return found if isinstance(found, Running) == under_way.runs() else None

    return wait_until(state, 10, "status says what is the case")


def _without_launcher(under_way: Launch) -> dict[str, list[int]]:
    return {part: pids for part, pids in under_way.processes().items() if part != "launcher"}


def _left(under_way: Launch) -> str:
    return f"nothing runs: {under_way.processes()}"


def strike(stage: Stage, step: str, victim: str) -> tuple[bool, str]:
    """Launch, hold at the step, kill, let go: whether the victim was there, and what is wrong."""
    stage.begin(step)
    jobs = RemoteJobs(stage.shell, stage.place / "state")
    under_way = launch(jobs)
    struck = False
    try:
        wait_until((stage.place / "reached").exists, 30, what=f"{step} is reached")
        struck = kill(under_way, victim)
        stage.release()
        check(under_way, victim)
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return struck, f"{step}: {error}"
    finally:
        under_way.process.kill()
        under_way.process.wait(10)
        jobs.clean_up()
    return struck, ""


# Which shell it is matters little here, and the time of all of them a lot.
@pytest.mark.parametrize(
    ("shell", "victim"),
    [(("bash", "dash")[number % 2], victim) for number, victim in enumerate(VICTIMS)],
    indirect=["shell"],
)
def test_a_launch_that_is_killed_at_any_step_is_told_truly(
    shell: Shell, tmp_path: Path, victim: str
) -> None:
    steps = steps_of_a_launch(make_stage(tmp_path / "undisturbed", shell))
    assert len(steps) > 10, steps
    # Most of the time is waiting.
    with ThreadPoolExecutor(4) as threads:
        stages = [make_stage(tmp_path / str(number), shell) for number in range(len(steps))]
        results = list(threads.map(strike, stages, steps, [victim] * len(steps)))
    wrong = [what for _struck, what in results if what]
    assert not wrong, "\n".join(wrong)
    assert sum(struck for struck, _what in results) > 2, "the victim was there at hardly any step"
