"""Starting a job through the real entry line, in a userland of this machine, without ssh or pct."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from launchpad.command import Argv, Secret, to_text
from launchpad.frames import Frame, is_whole, parse_frames
from launchpad.job import JobSpec, new_job_id
from support.calls import launch_call
from support.processes import end_process
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from support.shells import Shell


@dataclass(frozen=True, slots=True)
class StartedJob:
    """A job that was started by hand: its directory and the reply."""

    directory: Path
    frames: list[Frame]

    def end(self, timeout: float = 20.0) -> tuple[str, int]:
        """State and code of the end record, once there is one."""
        names = wait_until(lambda: list(self.directory.glob("end,1,*")), timeout, "end record")
        _, _, state, code, *_ = names[0].name.split(",")
        return state, int(code)

    def log(self) -> bytes:
        return (self.directory / "log").read_bytes()


@contextmanager
def started(
    shell: Shell,
    argv: Sequence[bytes],
    environment: Mapping[str, bytes] | None = None,
    *,
    on_exit: str | None = None,
) -> Iterator[StartedJob]:
    """Start ``argv`` as launchpad does in a container; what is left of it ends with the block."""
    with TemporaryDirectory(prefix="launchpad-test-") as state:
        spec = JobSpec(
            new_job_id("test"),
            Argv(tuple(map(to_text, argv))),
            environment=tuple(
                (name, Secret(to_text(value))) for name, value in (environment or {}).items()
            ),
            on_exit=on_exit,
        )
        call = launch_call((), state, spec, "{}", follow=False)
        done = subprocess.run(
            shell.words(call.words), input=call.data, capture_output=True, timeout=60, check=False
        )
        frames = parse_frames(call.marker, done.stdout)
        assert is_whole(frames), done
        job = StartedJob(Path(state) / "jobs" / spec.id.text, frames)
        try:
            yield job
        finally:
            _end(job)


def _end(job: StartedJob) -> None:
    try:
        _, pid, ticks, *_ = (job.directory / "main").read_text().split()
    except FileNotFoundError:
        return
    end_process(int(pid), int(ticks))
    # Until the supervisor is gone it may still write into the directory.
    wait_until(lambda: _is_closed(job.directory / "alive"), what="the supervisor has ended")


def _is_closed(fifo: Path) -> bool:
    """Whether nobody holds the write end of a FIFO."""
    if not fifo.exists():
        return True
    done = subprocess.run(
        ["sh", "-c", 'exec 6<>"$1" 7<"$1" 6>&-; timeout 0.05 cat <&7', "sh", str(fifo)],
        stdout=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode == 0
