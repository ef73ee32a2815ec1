"""What became of a job: the states, and the whole of what is known about one."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from launchpad.errors import Layer
from launchpad.job import Identity, JobId, Launcher


class Reason(StrEnum):
    """Why a job is in the state that it is in."""

    LAUNCHPAD = "launchpad"
    TIME_LIMIT = "time_limit"
    OUT_OF_MEMORY = "out_of_memory"
    OTHER = "other"
    CONTAINER_RESTARTED = "container_restarted"
    CONTAINER_STOPPED = "container_stopped"
    RECORD_DAMAGED = "record_damaged"
    SUPERVISOR_LOST = "supervisor_lost"
    NEVER_STARTED = "never_started"


@dataclass(frozen=True, slots=True)
class Starting:
    """The job directory is there, the main process is not yet (30 s at most)."""


@dataclass(frozen=True, slots=True)
class Running:
    """The main process lives. ``reason``: SUPERVISOR_LOST where its end will not be recorded."""

    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Exited:
    """The main process ended by itself with ``code``."""

    code: int
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Killed:
    """A signal (its number) ended the main process."""

    signal: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Lost:
    """No process, no end record: nobody knows how it ended."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Unreachable:
    """It could not be asked. ``last_known`` is what was true when it last could."""

    layer: Layer
    what: str
    advice: str = ""
    reason: Reason | None = None


JobState = Starting | Running | Exited | Killed | Lost | Unreachable


def is_ended(state: JobState) -> bool:
    """Whether the state is final: it will never be anything else."""
    return isinstance(state, Exited | Killed | Lost)


@dataclass(frozen=True, slots=True)
class Spec:
    """The part of a job that its ``spec`` record tells: what was asked for, without values.

    ``record`` is the whole record as it was read, for what this version does not know.
    """

    command: tuple[str, ...] | None
    shell: str | None
    cwd: str | None
    user: str | None
    env_names: tuple[str, ...]
    log: str | None
    launcher: Launcher
    login: bool
    started_by: str
    time_limit_s: float | None = None
    on_exit: str | None = None
    ready: str | None = None
    git: dict[str, Any] | None = None
    idempotency_key: str | None = None
    record: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KillRequest:
    """Who last asked launchpad to signal a job: ``user@machine``, the signal, when (epoch)."""

    by: str | None
    signal: int
    at: float


@dataclass(frozen=True, slots=True)
class Job:
    """One job as `status --json` shows it.

    Times are seconds since the epoch by the container's clock, durations are seconds, sizes bytes.
    None: not known. ``target`` is spelt as on the command line; ``last_known`` is a state's word
    and the time (epoch) when it was seen.
    """

    id: JobId
    target: str
    host: str | None
    node: str | None
    ctid: int | None
    state: JobState
    spec: Spec | None
    log: str
    created: bool = True
    started: Literal["yes", "no", "unknown"] = "yes"
    identity: Identity | None = None
    launcher: Launcher | None = None
    launcher_reason: str | None = None
    processes: int | None = None
    log_bytes: int | None = None
    last_line: str | None = None
    last_output_at: float | None = None
    ready: bool | None = None
    started_at: float | None = None
    ended_at: float | None = None
    elapsed_s: float | None = None
    cpu_percent: float | None = None
    rss_bytes: int | None = None
    oom_kills: int | None = None
    gpus: list[dict[str, Any]] | None = None
    last_known: dict[str, Any] | None = None
    kill_request: KillRequest | None = None
    notes: tuple[str, ...] = ()
