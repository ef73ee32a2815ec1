"""Framed bytes → what is known of jobs, typed: the counterpart of ``remote/facts.sh``.

Everything here comes from elsewhere and may be damaged, foreign or hostile. Nothing raises: what
cannot be read is noted as such, and never hides what stands beside it. What the facts *mean* is
decided in :mod:`launchpad.verdict`. Nothing grows without end either: what is more than a container
can have to tell is left out, and that it was is noted (:attr:`Facts.flooded`).
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from launchpad.command import to_text
from launchpad.frames import Frame
from launchpad.job import EndRecord, Identity, JobId, Launcher, is_job_id
from launchpad.state import Spec

_NUMBER = re.compile(r"[0-9]{1,18}")
_END = re.compile(
    r"end,1,(exited|killed),([0-9]{1,3}),([0-9]{1,18}),([0-9]{1,18}),"
    r"([ch])([0-9]{1,18}),[ch]([0-9]{1,18}),(stopped|-),\."
)
# Longer than any user@machine can be (characters).
_NAME_LIMIT = 400
# Bytes of what is said about one job: many times what facts.sh sends. And of a log's end.
_PART_LIMIT = 65536
_TAIL_LIMIT = 4096
# Bytes of a spec (spec_limit in facts.sh), and how many values all specs of a reply may have.
SPEC_LIMIT = 262_144
_VALUES_LIMIT = 300_000
# Jobs and processes of one container.
JOB_LIMIT = 20_000
MEMBER_LIMIT = 100_000
_KILL = re.compile(r"kill,1,(launchpad|time_limit),([0-9]{1,3}),([0-9]{1,18}),\.")


@dataclass(frozen=True, slots=True)
class Now:
    """The moment of the answer: seconds since the epoch by the container's clock, and ticks.

    ``boot``: boot_id and PID 1's start ticks. ``oom``: the OOM killer's counter, ``oom_own`` if it
    is the container's and not the host's. ``memory_limit``, ``memory_peak``: the container's, in
    bytes; None where there is none, or it cannot be seen.
    """

    epoch: int
    ticks: int
    boot: tuple[str, int]
    oom: int
    oom_own: bool
    memory_limit: int | None = None
    memory_peak: int | None = None


@dataclass(frozen=True, slots=True)
class Disk:
    """Where the state directory lies, in bytes. ``jobs``: what jobs' files take, if known."""

    total: int
    used: int
    free: int
    jobs: int | None = None


@dataclass(frozen=True, slots=True)
class KillRecord:
    """Who signalled the job last: ``at`` by the container's clock, ``by`` as ``user@machine``."""

    reason: Literal["launchpad", "time_limit"]
    signal: int
    at: int
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A living process of a job. ``cpu_ticks`` and ``pages`` are the kernel's units."""

    pid: int
    ticks: int
    state: str
    cpu_ticks: int
    pages: int
    name: str


@dataclass(frozen=True, slots=True)
class Process:
    """The main process: running, a zombie with its status as wait(2) gives it, or gone."""

    condition: Literal["running", "zombie", "gone"]
    status: int | None = None


@dataclass(slots=True)
class JobFacts:
    """What was found of one job. None and False: was not found, was not looked at.

    ``started_at``: epoch. ``launcher``: only where it is another one than was wanted.
    ``log_bytes``, ``log_at``, ``spec_at``: sizes and mtimes. ``tail``: the last bytes of its log.
    ``emptied``: how many bytes the log had when a follower saw it lose them, the last time.
    ``damaged``: the records that could not be read, by name.
    """

    id: JobId
    directory: bool = False
    launching: bool = False
    identity: Identity | None = None
    started_at: int | None = None
    supervisor_pid: int | None = None
    launcher: Launcher | None = None
    launcher_reason: str | None = None
    end: EndRecord | None = None
    kill: KillRecord | None = None
    process: Process | None = None
    supervisor_lives: bool = False
    members: list[Member] = field(default_factory=list)
    spec: Spec | None = None
    spec_at: int | None = None
    log_bytes: int | None = None
    log_at: int | None = None
    tail: bytes | None = None
    emptied: int | None = None
    damaged: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Facts:
    """The whole of a reply. ``now`` is None only where the reply is not one of facts.sh.

    ``flooded``: more jobs or processes were told of than a container can have, and were left out.
    ``values``: how many values the specs had that were read.
    """

    now: Now | None = None
    jobs: dict[JobId, JobFacts] = field(default_factory=dict)
    gpus: list[dict[str, Any]] | None = None
    disk: Disk | None = None
    flooded: bool = False
    values: int = 0
    members: int = 0

    def about(self, job: JobId) -> JobFacts | None:
        """Where to note what is said of ``job``; None once there are too many jobs."""
        found = self.jobs.get(job)
        if found is None:
            if len(self.jobs) >= JOB_LIMIT:
                self.flooded = True
                return None
            found = self.jobs[job] = JobFacts(job)
        return found

    def of(self, job: JobId) -> JobFacts:
        """What was found of ``job``; nothing where it did not occur."""
        return self.jobs.get(job) or JobFacts(job)


def _numbers(words: Iterable[str]) -> list[int] | None:
    texts = list(words)
    if not all(_NUMBER.fullmatch(text) for text in texts):
        return None
    return [int(text) for text in texts]


def parse_identity(words: list[str]) -> Identity | None:
    """PID TICKS SESSION BOOT_ID BOOT_TICKS, as in main records and the launch's reply."""
    if len(words) < 5:  # noqa: PLR2004
        return None
    numbers = _numbers((*words[:3], words[4]))
    if numbers is None:
        return None
    pid, ticks, session, boot_ticks = numbers
    return Identity(pid, ticks, session, words[3], boot_ticks)


def parse_end(name: str) -> EndRecord | None:
    """The end record that a file's name is; None where it is none, or not whole."""
    match = _END.fullmatch(name)
    if match is None:
        return None
    state, code, at, ticks, own, before, after, stopped = match.groups()
    return EndRecord(
        killed=state == "killed",
        code=int(code),
        at=int(at),
        ticks=int(ticks),
        oom_before=int(before),
        oom_after=int(after),
        oom_own=own == "c",
        stopped=stopped == "stopped",
    )


def parse_kill(name: str) -> KillRecord | None:
    """The kill record that a file's name is; None where it is none, or not whole."""
    match = _KILL.fullmatch(name)
    if match is None:
        return None
    reason: Literal["launchpad", "time_limit"] = (
        "launchpad" if match[1] == "launchpad" else "time_limit"
    )
    return KillRecord(reason, int(match[2]), int(match[3]))


def _typed(record: dict[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    value = record.get(key)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _words(record: dict[str, Any], key: str) -> tuple[str, ...] | None:
    value = record.get(key)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return None
    return tuple(value)


def spec_of(record: dict[str, Any]) -> Spec:
    """The spec that a record, or a job's document, tells; what it does not tell is None."""
    launcher = record.get("launcher")
    return Spec(
        command=_words(record, "command"),
        shell=_typed(record, "shell", str),
        cwd=_typed(record, "cwd", str),
        user=_typed(record, "user", str),
        env_names=_words(record, "env_names") or (),
        log=_typed(record, "log", str),
        launcher=Launcher(launcher) if launcher in list(Launcher) else Launcher.SETSID,
        login=record.get("login") is not False,
        started_by=_typed(record, "started_by", str) or "",
        time_limit_s=_typed(record, "time_limit_s", (int, float)),
        on_exit=_typed(record, "on_exit", str),
        ready=_typed(record, "ready", str),
        git=_typed(record, "git", dict),
        idempotency_key=_typed(record, "idempotency_key", str),
        record=record,
    )


def parse_spec(data: bytes | str) -> Spec | None:
    """A job's spec record (one line of JSON); None where it is not one."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return spec_of(record) if isinstance(record, dict) else None


def last_line(tail: bytes) -> str | None:
    """The last line of a log with anything on it: what a progress bar shows now, if it is one."""
    for line in reversed(to_text(tail[-_TAIL_LIMIT:]).split("\n")):
        for part in reversed(line.split("\r")):
            if part.strip():
                return part.strip()
    return None


def _parse_now(frame: Frame) -> Now | None:
    if len(frame.words) < 5:  # noqa: PLR2004
        return None
    epoch, ticks, boot_id, boot_ticks, oom = frame.words[:5]
    numbers = _numbers((epoch, ticks, boot_ticks, oom[1:]))
    if numbers is None:
        return None
    limit, peak = map(_bytes_of_memory, (*frame.words[5:], "-", "-")[:2])
    return Now(
        numbers[0],
        numbers[1],
        (boot_id, numbers[2]),
        numbers[3],
        oom.startswith("c"),
        limit,
        peak if limit else None,
    )


def _bytes_of_memory(word: str) -> int | None:
    # "No limit" is a number near 2^63, or "max": neither is one of 17 digits.
    return int(word) if _NUMBER.fullmatch(word) and len(word) < 18 else None  # noqa: PLR2004


def _read_main(job: JobFacts, words: list[str]) -> None:
    job.identity = parse_identity(words)
    numbers = _numbers(words[5:7])
    if job.identity is None:
        job.damaged.add("main")
    elif numbers and len(numbers) == 2:  # noqa: PLR2004
        job.started_at, job.supervisor_pid = numbers


def _read_end(job: JobFacts, name: str) -> None:
    # A second one lies where the first could not be written: in /dev/shm. They say the same.
    end = parse_end(name)
    job.end = job.end or end
    if end is None:
        job.damaged.add("end")


def _read_kill(job: JobFacts, name: str) -> None:
    kill = parse_kill(name)
    if kill is None:
        job.damaged.add("kill")
    elif job.kill is None or kill.at >= job.kill.at:
        job.kill = kill


def _read_asker(job: JobFacts, who: str) -> None:
    if job.kill is not None and job.kill.reason == "launchpad" and len(who) <= _NAME_LIMIT:
        job.kill = replace(job.kill, by=who)


def _read_line(job: JobFacts, line: str) -> None:
    key, _, rest = line.partition(" ")
    words = rest.split(" ")
    match key:
        case "directory":
            job.directory = True
        case "launching":
            job.launching = True
        case "main" | "known":
            _read_main(job, words)
        case "launcher" if words[0] in list(Launcher):
            job.launcher = Launcher(words[0])
            job.launcher_reason = " ".join(words[1:]).strip() or None
        case "emptied":
            numbers = _numbers(words[:1])
            job.emptied = numbers[0] if numbers else None
        case "end":
            _read_end(job, rest)
        case "kill" | "asker":
            (_read_kill if key == "kill" else _read_asker)(job, rest)
        case "process" if words[0] in {"running", "gone", "zombie"}:
            numbers = _numbers(words[1:2])
            job.process = Process(words[0], numbers[0] if numbers else None)  # type: ignore[arg-type]
        case "supervisor":
            job.supervisor_lives = rest == "living"


def _read_members(facts: Facts, frame: Frame) -> None:
    *lines, rest = frame.payload.split(b"\n", MEMBER_LIMIT - facts.members)
    facts.flooded = facts.flooded or b"\n" in rest
    for line in (*lines, *([] if b"\n" in rest else [rest])):
        words = to_text(line).split(" ", 6)
        if len(words) < 7 or not is_job_id(words[0]):  # noqa: PLR2004
            continue
        numbers = _numbers((words[1], words[2], words[4], words[5]))
        if numbers is None:
            continue
        pid, ticks, cpu_ticks, pages = numbers
        job = facts.about(JobId(words[0]))
        if job is not None:
            facts.members += 1
            job.members.append(Member(pid, ticks, words[3], cpu_ticks, pages, words[6]))


def _pieces(frame: Frame, file: str) -> Iterator[tuple[JobId, bytes]]:
    """The files of a frame ``specs`` or ``logs``, by the headers that nobody can forge."""
    if not frame.words:
        return
    noise = re.escape(frame.words[0].encode())
    header = rb"(?:\A|\n)==> ([A-Za-z0-9._-]+)%b/%b <==\n" % (noise, file.encode())
    before: re.Match[bytes] | None = None
    for match in (*re.finditer(header, frame.payload), None):
        if before is not None and is_job_id(name := to_text(before[1])):
            end = len(frame.payload) if match is None else match.start()
            yield JobId(name), frame.payload[before.end() : end]
        before = match


def _read_sizes(facts: Facts, frame: Frame) -> None:
    noise = frame.words[0] if frame.words else ""
    for line in to_text(frame.payload).split("\n", 2 * JOB_LIMIT):
        size, _, rest = line.partition(" ")
        at, _, path = rest.partition(" ")
        numbers = _numbers((size, at))
        name, _, file = path.partition(noise + "/")
        if numbers is None or not is_job_id(name) or JobId(name) not in facts.jobs:
            continue
        job = facts.jobs[JobId(name)]
        if file == "log":
            job.log_bytes, job.log_at = numbers
        elif file == "spec":
            job.spec_at = numbers[1]


def _read_job(facts: Facts, frame: Frame) -> None:
    if frame.words and is_job_id(frame.words[0]) and (job := facts.about(JobId(frame.words[0]))):
        for line in to_text(frame.payload[:_PART_LIMIT]).split("\n"):
            _read_line(job, line)


def _read_specs(facts: Facts, frame: Frame) -> None:
    for name, content in _pieces(frame, "spec"):
        job = facts.about(name)
        if job is None:
            return
        facts.values += sum(map(content.count, (b",", b"[", b"{")))
        small = len(content) <= SPEC_LIMIT and facts.values <= _VALUES_LIMIT
        job.spec = parse_spec(content) if small else None
        if job.spec is None:
            job.damaged.add("spec")


def _read_logs(facts: Facts, frame: Frame) -> None:
    for name, content in _pieces(frame, "log"):
        if job := facts.about(name):
            job.tail = content[-_TAIL_LIMIT:]


def _read_disk(facts: Facts, frame: Frame) -> None:
    numbers = _numbers(frame.words[:3])
    if numbers and len(numbers) == 3:  # noqa: PLR2004
        total, used, free = (1024 * number for number in numbers)
        jobs = _numbers(frame.words[3:4])
        facts.disk = Disk(total, used, free, 1024 * jobs[0] if jobs else None)


def _read_gpus(facts: Facts, frame: Frame) -> None:
    """Lines of ``nvidia-smi``: index, name, use in percent, MiB used, MiB there."""
    for line in to_text(frame.payload[:_PART_LIMIT]).split("\n"):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 5 or not _NUMBER.fullmatch(cells[0]):  # noqa: PLR2004
            continue
        use, used, total = (int(cell) if _NUMBER.fullmatch(cell) else None for cell in cells[2:])
        facts.gpus = facts.gpus or []
        facts.gpus.append(
            {
                "index": int(cells[0]),
                "name": cells[1],
                "utilization_percent": use,
                "memory_used_bytes": None if used is None else used * 1024 * 1024,
                "memory_total_bytes": None if total is None else total * 1024 * 1024,
            }
        )


_READERS: dict[str, Callable[[Facts, Frame], None]] = {
    "now": lambda facts, frame: setattr(facts, "now", _parse_now(frame)),
    "job": _read_job,
    "members": _read_members,
    "specs": _read_specs,
    "sizes": _read_sizes,
    "logs": _read_logs,
    "gpus": _read_gpus,
    "disk": _read_disk,
}


def parse_facts(frames: Iterable[Frame]) -> Facts:
    """The facts of a reply; frames of other kinds in it are left alone.

    What a later frame says of a job counts: a kill tells how it stood before and stands after.
    """
    facts = Facts()
    for frame in frames:
        if reader := _READERS.get(frame.name):
            reader(facts, frame)
    return facts
