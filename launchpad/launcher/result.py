"""What comes of a `run`, and the exit code that it means."""

from dataclasses import dataclass

from launchpad.errors import LAUNCHPAD_FAILED, TIMED_OUT
from launchpad.state import Exited, Job, Killed, Lost, is_ended


@dataclass(frozen=True, slots=True)
class RunResult:
    """A job that started. ``elapsed``: seconds until its start was proven, by this machine's clock.

    ``timed_out``: `--ready-timeout` ran out; the job goes on.
    """

    job: Job
    first_lines: tuple[bytes, ...]
    elapsed: float
    timed_out: bool = False

    @property
    def exit_code(self) -> int:
        """What the process exits with."""
        if self.timed_out:
            return TIMED_OUT
        code = job_exit_code(self.job)
        if code == 0 and self.job.ready is False and is_ended(self.job.state):
            return LAUNCHPAD_FAILED
        return code


def job_exit_code(job: Job) -> int:
    """The exit code that a job's state means: its own, 128+N for signal N, 125 for lost."""
    match job.state:
        case Exited(code):
            return code
        case Killed(signal):
            return 128 + signal
        case Lost():
            return LAUNCHPAD_FAILED
        case _:
            return 0
