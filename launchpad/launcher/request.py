"""What `run` is asked for, and how far a start has come."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from launchpad.errors import INTERRUPTED, LaunchpadError
from launchpad.job import JobId, JobSpec
from launchpad.target import Target

if TYPE_CHECKING:
    from launchpad.index import Entry
    from launchpad.launcher.desk import Desk
    from launchpad.launcher.transfer import Push, Transferred
    from launchpad.state import Job

Started = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What `run` was asked for.

    ``confirm``, ``ready_timeout``: seconds. ``mode``: return once the start is confirmed (or the
    job is ready), or follow the log to the job's end, or wait for its end without the log.
    ``on_started`` is called once, when the job runs; ``on_output`` with the log's bytes in mode
    "follow". ``push`` comes before the start, on the same connection; ``on_pushed`` is told
    what came of it. ``on_sent`` is called while the container works: time to get ready for the
    answer. ``again``: what `rerun` will want to know besides the spec, for the record.
    """

    target: Target
    spec: JobSpec
    confirm: float = 2.0
    ready: str | None = None
    ready_timeout: float | None = None
    mode: Literal["confirm", "follow", "wait"] = "confirm"
    on_sent: Callable[[], None] = field(default=lambda: None)
    on_started: "Callable[[Job], None]" = field(default=lambda _job: None)
    on_output: Callable[[bytes], None] = field(default=lambda _data: None)
    push: "Push | None" = None
    on_pushed: "Callable[[Transferred], None]" = field(default=lambda _done: None)
    again: Mapping[str, Any] = field(default_factory=dict)

    @property
    def follows(self) -> bool:
        """Whether the log is looked at once the job has started."""
        return self.mode != "confirm" or self.ready is not None or self.confirm > 0


@dataclass(slots=True)
class Start:
    """One start in progress: what is known of it, for whoever has to end it early.

    ``began``: by the monotonic clock. ``sent``: bytes that can start the job are on their way.
    """

    desk: "Desk"
    request: RunRequest
    began: float
    entry: "Entry | None" = None
    sent: bool = False
    launched: bool = False

    def forget(self) -> None:
        """Nothing was started: the index need not know of it."""
        if self.entry is not None:
            self.desk.index.forget(self.entry.id)


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
