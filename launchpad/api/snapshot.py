"""A job as programs see it: the fields of `status --json`, with times as times."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal, Self

from launchpad.document import job_document
from launchpad.state import Job

_TIMES = ("last_output_at", "started_at", "ended_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    r"""How a job stood when it was asked about. None: not known, or does not apply.

    The fields are those of ``launchpad status --json`` (docs/schema/job.json), and mean the same:

    - ``state``: how the main process stands. ``starting``, ``running``; ``exited`` (``exit_code``),
      ``killed`` (``signal``, such as ``"SIGKILL"``), ``lost`` (nobody knows how it ended: no
      process, no record); ``unreachable`` (could not be asked: ``layer``, ``what``, ``advice``,
      and ``last_known``, what was true when it last could).
    - ``reason``: why, where that is known: ``launchpad``, ``time_limit``, ``out_of_memory``,
      ``other``, ``container_restarted``, ``container_stopped``, ``record_damaged``,
      ``supervisor_lost``, ``never_started``.
    - ``created``: False where an idempotency key gave back a job that was there already.
    - ``processes``: how many live now, the main process included; they may outlive it.
    - ``command`` or ``shell``: one of the two. Bytes that are not UTF-8 are lone surrogates.
    - times (``started_at``, ``ended_at``, ``last_output_at``): aware, by the container's clock.
      ``elapsed_s``, ``time_limit_s``: seconds. ``log_bytes``, ``rss_bytes``: bytes.
    - ``cpu_percent``: the mean over the job's life; 100 is one core.
    - ``kill_request``: who last had it signalled through launchpad: ``by``, ``signal``, ``at``.
    - ``rerun``: what else a rerun needs: times, ``push``, ``job_file``, ``env_files``, where given;
      ``version``: launchpad's, when it started the job.
    - ``oom_kills``: how many kills the container's OOM counter went up by while it ran.
    """

    id: str
    name: str
    target: str
    host: str | None
    node: str | None
    ctid: int | None
    state: Literal["starting", "running", "exited", "killed", "lost", "unreachable"]
    reason: str | None
    exit_code: int | None
    signal: str | None
    created: bool
    started: Literal["yes", "no", "unknown"]
    started_by: str | None
    pid: int | None
    processes: int | None
    launcher: Literal["setsid", "tmux", "nohup"] | None
    launcher_reason: str | None
    command: tuple[str, ...] | None
    shell: str | None
    cwd: str | None
    user: str | None
    env_names: tuple[str, ...]
    log: str
    log_bytes: int | None
    last_line: str | None
    last_output_at: datetime | None
    ready: bool | None
    time_limit_s: float | None
    started_at: datetime | None
    ended_at: datetime | None
    elapsed_s: float | None
    cpu_percent: float | None
    rss_bytes: int | None
    oom_kills: int | None
    gpus: tuple[dict[str, Any], ...] | None
    kill_request: dict[str, Any] | None
    login: bool | None
    on_exit: str | None
    rerun: dict[str, Any] | None
    version: str | None
    git: dict[str, Any] | None
    last_known: dict[str, Any] | None
    layer: str | None
    what: str | None
    advice: str | None
    notes: tuple[str, ...]

    @property
    def is_ended(self) -> bool:
        """Whether the state is final. False for ``unreachable``: that is not dead."""
        return self.state in {"exited", "killed", "lost"}

    @classmethod
    def of(cls, job: Job) -> Self:
        """How ``job`` stands."""
        document = job_document(job)
        values: dict[str, Any] = {item.name: document.get(item.name) for item in fields(cls)}
        for name in _TIMES:
            text = values[name]
            values[name] = datetime.fromisoformat(text) if text else None
        for name, value in values.items():
            values[name] = tuple(value) if isinstance(value, list) else value
        return cls(**values)
