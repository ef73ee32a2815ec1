"""What happens in one step of a run of the harness, decided by seed and number alone."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from support.lab import BUSYBOX, DEBIAN, SLEEPER

PLACES = (DEBIAN, BUSYBOX, SLEEPER)


class Verb(StrEnum):
    RUN = "run"
    RUN_FOLLOW = "run -f"
    RUN_WAIT = "run --wait"
    RERUN = "rerun"
    TAIL = "tail"
    TAIL_FOLLOW = "tail -f"
    STATUS = "status"
    WAIT = "wait"
    KILL = "kill"
    EXEC = "exec"
    PUSH = "push"
    PULL = "pull"
    PRUNE = "prune"
    DOCTOR = "doctor"


class Fault(StrEnum):
    NONE = "none"
    SSHD_KILLED = "sshd session killed"
    CUT = "cable cut"
    DROPPED = "packets dropped"
    RESET = "connections reset"
    PCT_KILLED = "lxc-attach killed"
    FROZEN = "container frozen"
    STOPPED = "container stopped"
    RESTARTED = "container restarted"
    INSIDE_KILLED = "a shell inside killed"
    SUPERVISOR_KILLED = "supervisor killed"
    OUT_OF_MEMORY = "out of memory"
    FULL = "disk full"
    READ_ONLY = "disk read-only"
    CLOCK = "clock jumped"
    CLIENT_KILLED = "client killed"


# After these a container has new processes only.
RESTARTS = frozenset({Fault.STOPPED, Fault.RESTARTED})
# These end a process of launchpad or of a job inside, so that something may rightly be missing.
VIOLENT = RESTARTS | {Fault.INSIDE_KILLED, Fault.SUPERVISOR_KILLED, Fault.OUT_OF_MEMORY}
DISKS = frozenset({Fault.FULL, Fault.READ_ONLY})

# Memory is limited in one container only; busybox runs its own date, whatever lies on its PATH.
_WHERE = {Fault.OUT_OF_MEMORY: (SLEEPER,), Fault.CLOCK: (DEBIAN, SLEEPER)}


class Moment(StrEnum):
    """How far the call has come when it is struck."""

    BEFORE = "before it"
    AT_ONCE = "at once"
    CONNECTED = "connected"
    SESSION = "session open"
    PCT = "pct called"
    INSIDE = "inside"
    SPOKEN = "first output"


@dataclass(frozen=True, slots=True)
class Step:
    """``delay``, ``length``: seconds from the moment to the fault, and how long that lasts."""

    number: int
    verb: Verb
    fault: Fault
    moment: Moment
    ctid: int
    delay: float
    length: float

    def __str__(self) -> str:
        return (
            f"step {self.number}: {self.verb} in {self.ctid}; {self.fault} {self.delay:.2f} s"
            f" after '{self.moment}', for {self.length:.1f} s"
        )


def make_step(seed: int, number: int, *, long_ones: bool) -> Step:
    """``long_ones``: now and then a fault outlasts the deadlines of the client (25 s)."""
    dice = random.Random(f"{seed}/{number}")  # noqa: S311  # to be repeatable, not secret
    fault = dice.choice(list(Fault))
    length = dice.uniform(0.3, 3)
    if long_ones and dice.random() < 0.1:
        length = 25.0
    return Step(
        number,
        dice.choice(list(Verb)),
        fault,
        dice.choice(list(Moment)),
        dice.choice(_WHERE.get(fault, PLACES)),
        dice.choice((0.0, dice.uniform(0, 0.3))),
        length,
    )
