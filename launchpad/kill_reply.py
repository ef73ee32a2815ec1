"""What remote/end.sh says at the end of a kill, as types and as words. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from signal import SIGKILL, SIGTERM
from typing import Self

from launchpad.command import to_text
from launchpad.frames import Frame
from launchpad.job import TICKS_PER_SECOND, JobId, is_job_id
from launchpad.printable import printable
from launchpad.state import Exited, Job, Lost, Reason, is_ended
from launchpad.wording import duration_words, signal_name, state_words

# From here on, a main process that exits by itself after TERM has been doing something (seconds).
_SAVING = 0.5

_NUMBER = re.compile(r"[0-9]{1,18}")
# Of what is said about one job, no more is read (bytes).
_PAYLOAD_LIMIT = 262_144

# What the letters of proc(5) mean for somebody who wonders why a process cannot be killed.
_STATES = {
    "D": "in the kernel: driver or dead mount",
    "T": "stopped",
    "t": "stopped by a debugger",
    "Z": "a zombie with a living thread",
}


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process that is still there. ``state``: its letter as in proc(5)."""

    pid: int
    state: str
    name: str

    def __str__(self) -> str:
        why = _STATES.get(self.state)
        meaning = f" ({why})" if why else ""
        return f"PID {self.pid} {printable(self.name)}, state {self.state}{meaning}"


@dataclass(frozen=True, slots=True)
class Ended:
    """What a kill did to one job; times in seconds.

    ``main_signal``: what the main process was sent last before it ended, 0: nothing; None: it had
    ended before, or is left. ``once``: the one signal that was sent, if that was all. ``alone``,
    ``term``, ``kill``: how many of the others ended by themselves, after TERM, after KILL.
    """

    main_signal: int | None = None
    main_after: float = 0.0
    once: int | None = None
    pid: int | None = None
    alone: int = 0
    term: int = 0
    kill: int = 0
    took: float = 0.0
    left: tuple[Survivor, ...] = ()

    @property
    def count(self) -> int:
        """How many processes have ended."""
        return (self.main_signal is not None) + self.alone + self.term + self.kill

    @classmethod
    def parse(cls, payload: bytes) -> Self:
        """The lines of a frame ``ended``; what cannot be read is left out."""
        values: dict[str, float | int] = {}
        left = []
        for line in to_text(payload[:_PAYLOAD_LIMIT]).split("\n"):
            key, *words = line.split(" ")
            if key == "left" and len(words) >= 3 and _NUMBER.fullmatch(words[0]):  # noqa: PLR2004
                left.append(Survivor(int(words[0]), words[1], " ".join(words[2:])))
                continue
            if not words or not all(_NUMBER.fullmatch(word) for word in words):
                continue
            match key, [int(word) for word in words]:
                case "main", [signal, ticks]:
                    values |= {"main_signal": signal, "main_after": ticks / TICKS_PER_SECOND}
                case "once", [signal, pid]:
                    values |= {"once": signal, "pid": pid}
                case "rest", [alone, term, kill]:
                    values |= {"alone": alone, "term": term, "kill": kill}
                case "took", [ticks]:
                    values["took"] = ticks / TICKS_PER_SECOND
                case _:
                    pass
        return cls(left=tuple(left), **values)  # type: ignore[arg-type]


def parse_ended(frames: Iterable[Frame]) -> dict[JobId, Ended]:
    """The frames ``ended`` of a reply."""
    return {
        JobId(frame.words[0]): Ended.parse(frame.payload)
        for frame in frames
        if frame.name == "ended" and frame.words and is_job_id(frame.words[0])
    }


def _processes(count: int) -> str:
    return f"{count} process{'' if count == 1 else 'es'}"


def _how(ended: Ended, job: Job) -> str:
    """How they ended, in the order in which they did."""
    parts = []
    others = ended.alone + ended.term
    killed = ended.kill
    if ended.main_signal == SIGKILL:
        killed += 1
    elif ended.main_signal is not None:
        word = signal_name(ended.main_signal or SIGTERM).removeprefix("SIG")
        saved = isinstance(job.state, Exited) and ended.main_after >= _SAVING
        after = f" after saving for {duration_words(ended.main_after)}" if saved else ""
        parts.append(f"1 on {word}{after}")
        if others:
            parts.append(f"{others} after it")
            others = 0
    if others:
        parts.append(f"{others} on TERM")
    if killed:
        parts.append(f"{killed} on KILL")
    return ", ".join(parts)


def kill_sentence(ended: Ended, job: Job) -> str:
    """What became of ``job``, for people: one line that is safe to show."""
    if ended.once is not None:
        then = state_words(job.state) if is_ended(job.state) else "runs on"
        return f"sent {signal_name(ended.once)} to {job.id}, PID {ended.pid}; it {then}"
    if ended.left:
        return _left(ended, job)
    if not ended.count:
        if job.state == Lost(Reason.NEVER_STARTED):
            return f"{job.id} was never started on {job.target}: there is nothing to end"
        return f"{job.id} has ended already ({state_words(job.state)}); nothing of it is left"
    kept = f"; exit code {job.state.code} kept" if isinstance(job.state, Exited) else ""
    return (
        f"killed {job.id}: {_processes(ended.count)} ended ({_how(ended, job)})"
        f" in {duration_words(ended.took)}{kept}"
    )


def _left(ended: Ended, job: Job) -> str:
    count = len(ended.left)
    shown = "; ".join(map(str, ended.left[:8]))
    more = f"; and {count - 8} more" if count > 8 else ""  # noqa: PLR2004
    where = f", or restart container {job.ctid}" if job.ctid is not None else ""
    verb = "is" if count == 1 else "are"
    return (
        f"{job.id}: {count} of {_processes(count + ended.count)} {verb} left: {shown}{more}."
        f" Repeat later{where}."
    )
