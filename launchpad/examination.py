"""What doctor finds: checks, each with its verdict and, for a fault, its fix. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from launchpad.command import to_text
from launchpad.errors import LAUNCHPAD_FAILED, LaunchpadError, Layer
from launchpad.frames import Frame

Verdict = Literal["ok", "note", "fault", "skipped"]

Facts = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. ``fix``: what to do, a command where there is one.

    Only a ``fault`` keeps a job from starting; a ``note`` is worth knowing. ``milliseconds``: what
    the layer cost this time, where that was measured.
    """

    name: str
    layer: Layer
    verdict: Verdict
    what: str
    details: str = ""
    fix: str = ""
    milliseconds: float | None = None

    def document(self) -> dict[str, Any]:
        """As ``doctor --json`` shows it."""
        return {
            "name": self.name,
            "layer": str(self.layer),
            "verdict": self.verdict,
            "what": self.what,
            "details": self.details,
            "fix": self.fix,
            "ms": None if self.milliseconds is None else round(self.milliseconds, 1),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """All checks in order. ``transport``: which one, and why; None where none was chosen."""

    target: str
    checks: tuple[Check, ...]
    transport: tuple[str, str] | None
    node: str | None
    ctid: int | None

    @property
    def ok(self) -> bool:
        """Whether a job could start."""
        return not any(check.verdict in {"fault", "skipped"} for check in self.checks)

    @property
    def exit_code(self) -> int:
        """What the process exits with."""
        return 0 if self.ok else LAUNCHPAD_FAILED

    def document(self) -> dict[str, Any]:
        """As ``doctor --json`` shows it."""
        chosen = self.transport
        return {
            "schema": 1,
            "target": self.target,
            "ok": self.ok,
            "transport": {"name": chosen[0], "reason": chosen[1]} if chosen else None,
            "node": self.node,
            "ctid": self.ctid,
            "checks": [check.document() for check in self.checks],
        }


def fault(name: str, error: LaunchpadError, milliseconds: float | None = None) -> Check:
    """The check that failed with ``error``."""
    return Check(name, error.layer, "fault", error.what, error.details, error.advice, milliseconds)


def skipped(names: Iterable[tuple[str, Layer]], because: str) -> list[Check]:
    """Checks that could not be made."""
    return [Check(name, layer, "skipped", f"not looked at: {because}") for name, layer in names]


def read_facts(frames: Iterable[Frame]) -> Facts:
    """The facts of a reply of host.sh or doctor.sh, by key; each with all its values."""
    found: dict[str, tuple[str, ...]] = {}
    for frame in frames:
        if frame.name != "facts":
            continue
        for line in to_text(frame.payload).split("\n"):
            key, _, value = line.partition(" ")
            if value.strip():
                found[key] = (*found.get(key, ()), value.strip())
    return found


def login_shell(facts: Facts, noise: str, milliseconds: float) -> Check:
    """The check of the login shell; ``noise``: what is printed around every command there."""
    shell = facts.get("shell", ("unknown",))[0].rpartition("/")[2]
    what = f"{shell}; a round trip"
    if not noise:
        return Check("login shell", Layer.LOGIN, "ok", what, milliseconds=milliseconds)
    return Check(
        "login shell",
        Layer.LOGIN,
        "note",
        f"{what}; it prints {len(noise)} characters around every command (harmless here)",
        noise[:200],
        "other tools choke on it: in its start files, print for interactive shells only",
        milliseconds,
    )


def clock_skew(facts: Facts, began: float, ended: float) -> float:
    """By how many seconds the container's clock is ahead, at least; it told whole seconds."""
    text = facts.get("epoch", ("",))[0]
    if not text.isdecimal():
        return 0.0
    told = float(text)
    if told < began - 1:
        return told - (began - 1)
    return max(0.0, told - (ended + 1))
