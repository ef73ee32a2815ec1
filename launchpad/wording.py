"""How states and times are said in messages; the same words from every verb. Pure."""

import signal
from typing import assert_never

from launchpad.printable import printable
from launchpad.state import (
    Exited,
    Job,
    JobState,
    Killed,
    Lost,
    Reason,
    Running,
    Starting,
    Unreachable,
)

_MINUTE = 60
_HOUR = 3600
_DAY = 86400


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9; real-time signals and others as ``signal 35``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def duration_words(seconds: float) -> str:
    """Seconds for people: ``0.6 s``, ``41.2 s``, ``6 m 12 s``, ``5 h 10 m``, ``3 d 2 h``."""
    if seconds < _MINUTE:
        return f"{max(0.0, seconds):.1f} s"
    whole = int(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} m {whole % _MINUTE} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} m"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"


def reason_words(reason: Reason) -> str:
    """The reason as it stands behind a state."""
    return {
        Reason.LAUNCHPAD: "by launchpad",
        Reason.TIME_LIMIT: "time limit",
        Reason.OUT_OF_MEMORY: "out of memory",
        Reason.OTHER: "not by launchpad",
        Reason.CONTAINER_RESTARTED: "container restarted",
        Reason.CONTAINER_STOPPED: "container stopped",
        Reason.RECORD_DAMAGED: "its record is damaged",
        Reason.SUPERVISOR_LOST: "its supervisor is gone",
        Reason.NEVER_STARTED: "never started",
    }[reason]


def state_words(state: JobState) -> str:
    """The state as the end of a sentence that begins with the job's id."""
    return f"{_verb_words(state)}{_because(state)}"


def _verb_words(state: JobState) -> str:
    match state:
        case Starting():
            return "is starting"
        case Running():
            return "is running"
        case Exited(code):
            return f"exited with code {code}"
        case Killed(number):
            return f"was killed by {signal_name(number)}"
        case Lost():
            return "is lost"
        case Unreachable(layer, what):
            return f"is unreachable ({layer}: {printable(what)})"
        case _:
            assert_never(state)


def _because(state: JobState) -> str:
    reason = None if isinstance(state, Starting) else state.reason
    return f", {reason_words(reason)}" if reason else ""


def end_sentence(job: Job) -> str:
    """``train-k3f9ab exited with code 1 after 41.2 s``."""
    after = f" after {duration_words(job.elapsed_s)}" if job.elapsed_s is not None else ""
    return f"{job.id} {_verb_words(job.state)}{after}{_because(job.state)}"
