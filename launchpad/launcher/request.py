"""What `run` is asked for, and what comes of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from launchpad.errors import INTERRUPTED, LAUNCHPAD_FAILED, TIMED_OUT, LaunchpadError
from launchpad.job import JobId, JobSpec
from launchpad.state import Exited, Job, Killed, Lost, is_ended
from launchpad.target import Target

if TYPE_CHECKING:
    from launchpad.launcher.transfer import Push, Transferred

Started = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What `run` was asked for.

    ``confirm``, ``ready_timeout``: seconds. ``mode``: return once the start is confirmed (or the
    job is ready), or follow the log to the job's end, or wait for its end without the log.
    ``on_started`` is called once, when the job runs; ``on_output`` with the log's bytes in mode
    "follow". ``push`` comes before the start, on the same connection; ``on_pushed`` is told
    what came of it. ``again``: what `rerun` will want to know besides the spec, for the record.
    """

    target: Target
    spec: JobSpec
    confirm: float = 2.0
    ready: str | None = None
    ready_timeout: float | None = None
    mode: Literal["confirm", "follow", "wait"] = "confirm"
    on_started: Callable[[Job], None] = field(default=lambda _job: None)
    on_output: Callable[[bytes], None] = field(default=lambda _data: None)
    push: "Push | None" = None
    on_pushed: "Callable[[Transferred], None]" = field(default=lambda _done: None)
    again: Mapping[str, Any] = field(default_factory=dict)


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


class StartFailed(Exception):
    """`run` did not get to its end. ``started`` is what whoever wants to retry must know."""

    def __init__(self, error: LaunchpadError, job: JobId, started: Started) -> None:
        super().__init__(error.what)
        self.error = error
        self.job = job
        self.started: Started = started


class Interrupted(LaunchpadError):
    """Ctrl-C, which never harms the job."""

    def __init__(self, what: str, advice: str) -> None:
        super().__init__(what, advice=advice, exit_code=INTERRUPTED)


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
