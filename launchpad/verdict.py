"""What became of a job, judged by the facts. Pure.

The order of belief: an end record that is whole; then the processes themselves; then what is
missing. What cannot be known is never called running, and never a success.
"""

from dataclasses import dataclass
from signal import SIGINT, SIGKILL, SIGPIPE, SIGTERM

from launchpad.errors import Layer
from launchpad.job import STARTING_LIMIT, TICKS_PER_SECOND, EndRecord, Identity, JobPaths
from launchpad.replies import Disk, JobFacts, KillRecord, Now, Process, last_line
from launchpad.state import (
    Exited,
    Job,
    JobState,
    Killed,
    KillRequest,
    Lost,
    Reason,
    Running,
    Spec,
    Starting,
    Unreachable,
    is_ended,
)

# Bytes in a page of memory: Proxmox VE runs on amd64.
PAGE_SIZE = 4096

MEGABYTE = 1024**2

# Codes that a shell cannot tell from a real signal: dying of INT and PIPE prints nothing.
_SILENT_SIGNALS = {128 + SIGINT: SIGINT, 128 + SIGPIPE: SIGPIPE}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job lives: the target as it was spelt, and what is known behind it."""

    target: str
    host: str | None
    node: str | None
    ctid: int | None
    state_directory: str


def _asked(kill: KillRecord | None, signal: int | None) -> Reason | None:
    """Whether launchpad's own signal explains an end by ``signal`` (None: by itself)."""
    if kill is None:
        return None
    # TERM begins the whole of a kill; any other signal was sent once, and explains only itself.
    if kill.signal in {SIGTERM, SIGKILL} or kill.signal == signal:
        return Reason(kill.reason)
    return None


def _oom_moved(end: EndRecord) -> bool:
    return end.oom_after > end.oom_before


def judge_end(end: EndRecord, kill: KillRecord | None, *, restarted: bool) -> Exited | Killed:
    """The state that an end record stands for.

    ``restarted``: the container was started again since. Only then did a SIGTERM that reached the
    supervisor too mean that the container was being stopped.
    """
    if not end.killed:
        silent = _SILENT_SIGNALS.get(end.code)
        if silent is not None and kill is not None and kill.signal == silent:
            return Killed(silent, Reason(kill.reason))
        reason = _asked(kill, None)
        if reason is None and end.stopped and restarted:
            reason = Reason.CONTAINER_STOPPED
        if reason is None and end.code == 128 + SIGKILL and end.oom_own and _oom_moved(end):
            # A shell hands on the code of the child that the OOM killer chose.
            reason = Reason.OUT_OF_MEMORY
        return Exited(end.code, reason)
    reason = _asked(kill, end.code)
    if reason is None and end.code == SIGKILL and _oom_moved(end):
        reason = Reason.OUT_OF_MEMORY
    if reason is None and end.stopped and restarted:
        reason = Reason.CONTAINER_STOPPED
    return Killed(end.code, reason or Reason.OTHER)


def _judge_zombie(status: int, kill: KillRecord | None) -> Exited | Killed:
    """The state that a status as of wait(2) stands for, when nobody recorded it."""
    signal = status & 0x7F
    if signal:
        return Killed(signal, _asked(kill, signal) or Reason.SUPERVISOR_LOST)
    return Exited(status >> 8 & 0xFF, _asked(kill, None) or Reason.SUPERVISOR_LOST)


def judge(facts: JobFacts, now: Now) -> JobState:
    """The state of a job."""
    restarted = facts.identity is not None and (
        (facts.identity.boot_id, facts.identity.boot_ticks) != now.boot
    )
    if facts.end is not None:
        return judge_end(facts.end, facts.kill, restarted=restarted)
    if restarted:
        damaged = "end" in facts.damaged
        return Lost(Reason.RECORD_DAMAGED if damaged else Reason.CONTAINER_RESTARTED)
    if facts.process is not None:
        if facts.process.condition == "running" and _is_launching(facts, now):
            return Starting()
        return _judge_process(facts, facts.process)
    return _judge_traces(facts, now)


def _is_launching(facts: JobFacts, now: Now) -> bool:
    """Its shell reads a profile, or the launch that would have told us of its end was killed."""
    if not facts.launching or facts.identity is None:
        return False
    return now.ticks - facts.identity.ticks < STARTING_LIMIT * TICKS_PER_SECOND


def _judge_process(facts: JobFacts, process: Process) -> JobState:
    if process.condition == "running":
        if not facts.directory or facts.damaged & {"main", "end"}:
            return Running(Reason.RECORD_DAMAGED)
        return Running(None if facts.supervisor_lives else Reason.SUPERVISOR_LOST)
    if facts.supervisor_lives and "end" not in facts.damaged:
        return Unreachable(
            Layer.JOB,
            f"its main process has ended, and its supervisor (PID {facts.supervisor_pid}) has not "
            "yet recorded how",
            advice="is that one stopped, or its disk not answering? Ask again later",
        )
    if process.condition == "zombie" and process.status is not None:
        return _judge_zombie(process.status, facts.kill)
    if not facts.directory or "end" in facts.damaged:
        return Lost(Reason.RECORD_DAMAGED)
    return Lost(Reason.SUPERVISOR_LOST)


def _judge_traces(facts: JobFacts, now: Now) -> JobState:
    """Nothing tells which process it is, or was."""
    if facts.members:
        # A mark in their environment says whose they are.
        return Running(Reason.RECORD_DAMAGED)
    if facts.damaged & {"main", "end"}:
        return Lost(Reason.RECORD_DAMAGED)
    if facts.directory and (facts.spec_at is None or now.epoch - facts.spec_at < STARTING_LIMIT):
        return Starting()
    return Lost(Reason.NEVER_STARTED)


def _memory(now: Now) -> str:
    """What the container may have and had at most, if it was not started again since."""
    if now.memory_limit is None:
        return ""
    peak = f", peak {now.memory_peak / MEGABYTE:,.0f} MB" if now.memory_peak is not None else ""
    return f" (limit {now.memory_limit / MEGABYTE:,.0f} MB{peak})"


# A disk with less than a twentieth and less than this left is nearly full (bytes).
_LITTLE_SPACE = 2 * 1024**3


def judge_disk(disk: Disk | None, target: str, state_directory: str) -> str | None:
    """A warning where jobs may soon be unable to write their logs; None: there is room."""
    if disk is None or disk.free >= _LITTLE_SPACE or disk.free * 20 >= disk.used + disk.free:
        return None
    warning = f"the disk of {state_directory} in {target} is nearly full:"
    warning += f" {disk.free / MEGABYTE:,.0f} MB free"
    if disk.jobs is not None:
        warning += f", jobs' files there take {disk.jobs / MEGABYTE:,.0f} MB"
    return f"{warning}; forget old jobs and their logs: launchpad prune {target}"


def _request(kill: KillRecord | None) -> KillRequest | None:
    if kill is None or kill.reason != "launchpad":
        return None
    return KillRequest(kill.by, kill.signal, kill.at)


def _notes(facts: JobFacts, state: JobState, now: Now) -> tuple[str, ...]:
    notes = []
    end = facts.end
    if end is not None and _oom_moved(end):
        whose = "the container's" if end.oom_own else "the whole host's"
        counted = f"{whose} OOM counter went {end.oom_before} -> {end.oom_after} while it ran"
        notes.append(counted + _memory(now) if end.oom_own else counted)
        if end.killed and end.code == SIGKILL and not end.oom_own:
            notes.append("the container's own counter cannot be seen: probably out of memory")
    if is_ended(state) and facts.members:
        count = len(facts.members)
        notes.append(f"{count} of its processes {'lives' if count == 1 else 'live'} on")
    if facts.emptied is not None:
        notes.append(
            f"its log was emptied when it had {facts.emptied:,} bytes (by the job itself?"
            " `>/dev/stderr` and `tee` without -a do that)"
        )
    if facts.damaged:
        notes.append(f"damaged records: {', '.join(sorted(facts.damaged))}")
    if facts.started_at is not None and facts.started_at > now.epoch:
        notes.append("the container's clock was set back since it started")
    return tuple(notes)


def _elapsed(facts: JobFacts, state: JobState, now: Now) -> float | None:
    if facts.identity is None:
        return None
    if facts.end is not None:
        ticks = facts.end.ticks
    elif isinstance(state, Running):
        ticks = now.ticks
    else:
        return None
    return max(0, ticks - facts.identity.ticks) / TICKS_PER_SECOND


def job_of(
    facts: JobFacts,
    now: Now,
    place: Place,
    *,
    spec: Spec | None = None,
    log: str | None = None,
    identity: Identity | None = None,
) -> Job:
    """The job that the facts tell of.

    ``spec``, ``log``, ``identity``: what the caller knows of it, for what the facts do not tell.
    """
    state = judge(facts, now)
    spec = facts.spec or spec
    elapsed = _elapsed(facts, state, now)
    end = facts.end
    living = state if isinstance(state, Running) else None
    cpu = sum(member.cpu_ticks for member in facts.members)
    return Job(
        id=facts.id,
        target=place.target,
        host=place.host,
        node=place.node,
        ctid=place.ctid,
        state=state,
        spec=spec,
        log=log or JobPaths(place.state_directory, facts.id).log,
        started="no" if state == Lost(Reason.NEVER_STARTED) else "yes",
        identity=facts.identity or identity,
        launcher=facts.launcher or (spec.launcher if spec else None),
        launcher_reason=facts.launcher_reason,
        processes=len(facts.members),
        log_bytes=facts.log_bytes,
        last_line=last_line(facts.tail) if facts.tail is not None else None,
        last_output_at=facts.log_at if facts.log_bytes else None,
        started_at=facts.started_at,
        ended_at=end.at if end else None,
        elapsed_s=elapsed,
        cpu_percent=(
            round(cpu / TICKS_PER_SECOND / elapsed * 100, 1) if living and elapsed else None
        ),
        rss_bytes=sum(member.pages for member in facts.members) * PAGE_SIZE,
        oom_kills=max(0, end.oom_after - end.oom_before) if end and end.oom_own else None,
        kill_request=_request(facts.kill),
        notes=_notes(facts, state, now),
    )
