"""Real jobs on this machine, started and asked through the scripts themselves."""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from launchpad.command import Argv, ShellLine
from launchpad.frames import Frame, is_whole, parse_frames
from launchpad.job import JobId, JobSpec, new_job_id
from launchpad.replies import Facts, parse_facts
from launchpad.scripts import RemoteCall, remote_call
from launchpad.verdict import Place, job_of
from support.calls import launch_call
from support.processes import end_jobs
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from launchpad.state import Job, JobState
    from support.shells import Shell

STATUS = ("common", "members", "facts", "status")
KILL = ("common", "members", "facts", "end", "kill")


@dataclass(slots=True)
class RemoteJobs:
    """The scripts under one shell, with a state directory of their own."""

    shell: Shell
    state: Path
    launched: dict[JobId, tuple[str, ...]] = field(default_factory=dict)

    def call(self, call: RemoteCall, timeout: float = 60) -> list[Frame]:
        done = subprocess.run(
            self.shell.words(call.words),
            input=call.data,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        frames = parse_frames(call.marker, done.stdout)
        assert is_whole(frames), (done.stdout, done.stderr)
        return frames

    def run(self, *words: str, name: str = "job", **spec: object) -> JobId:
        """Start a job; its id."""
        command = ShellLine(words[0]) if len(words) == 1 else Argv(words)
        job = JobSpec(new_job_id(name), command, login=False, **spec)  # type: ignore[arg-type]
        record = '{"command":["x"],"started_by":"tester@here"}'
        call = launch_call((), str(self.state), job, record, follow=False)
        self.launched[job.id] = ()
        launched = [frame.words for frame in self.call(call) if frame.name == "launched"]
        assert launched, job
        self.launched[job.id] = launched[0]
        return job.id

    def script(self, job: str, *arguments: str, name: str = "job") -> JobId:
        """Start ``sh -c SCRIPT`` whose main process is the shell of the container."""
        return self.run("sh", "-c", job, "sh", *arguments, name=name)

    def directory(self, job: JobId) -> Path:
        return self.state / "jobs" / job.text

    def main(self, job: JobId) -> int:
        """The main process."""
        return int(self.launched[job][0])

    def supervisor(self, job: JobId) -> int:
        return int(self.launched[job][6])

    def facts(self, *words: str) -> Facts:
        """What status.sh says; with no words of all jobs."""
        call = remote_call(
            (),
            STATUS,
            [str(self.state), "yes", "1024", "once", *(words or ("*",))],
        )
        return parse_facts(self.call(call))

    def look(self, job: JobId, word: str = "") -> Job:
        facts = self.facts(word or job.text)
        assert facts.now is not None
        return job_of(facts.of(job), facts.now, Place("local", None, None, None, str(self.state)))

    def state_of(self, job: JobId) -> JobState:
        return self.look(job).state

    def kill(
        self, *words: str, signal_: int = signal.SIGTERM, grace: int | str = 500
    ) -> list[Frame]:
        call = remote_call(
            (),
            KILL,
            [str(self.state), "tester@here", str(int(signal_)), str(grace), *words],
        )
        return self.call(call)

    def log(self, job: JobId) -> str:
        return (self.directory(job) / "log").read_text(errors="replace")

    def wait_log(self, job: JobId, text: str) -> str:
        def has() -> str:
            log = self.log(job)
            return log if text in log else ""

        return wait_until(has, what=f"{text!r} in the log")

    def clean_up(self) -> None:
        """End what the test left running."""
        end_jobs(
            {
                job.text: (int(words[0]), int(words[1])) if words else None
                for job, words in self.launched.items()
            }
        )


def is_alive(pid: int) -> bool:
    """Whether the process lives: a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(") ")[2][:1] not in ("Z", "X", "")


def wait_gone(*pids: int, timeout: float = 10) -> None:
    wait_until(lambda: not any(map(is_alive, pids)), timeout, what=f"{pids} gone")


def ended_payload(frames: Sequence[Frame], job: JobId) -> list[str]:
    """The lines of the frame ``ended`` of a job."""
    (frame,) = [f for f in frames if f.name == "ended" and f.words == (job.text,)]
    return frame.payload.decode(errors="replace").splitlines()
