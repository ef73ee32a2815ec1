"""The calls of launchpad that are struck, and the jobs that they start."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from faults.step import Verb
from faults.truth import WITNESSES, Truth

from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from faults.step import Step

    from support.client import Client, Outcome
    from support.lab import Lab

# It notes each start and its end where no fault of the state directory reaches, and numbers its
# lines, so that a lost or repeated one is seen.
_PROGRAM = (
    f"mkdir -p /{WITNESSES}; set -- $(cat /proc/$$/stat);"
    f' echo "start $$ ${{22}}" >>/{WITNESSES}/$TOKEN; line=0;'
    " while [ $line -lt $LINES_WANTED ]; do"
    ' echo "$TOKEN $line"; line=$((line + 1)); sleep 0.05; done;'
    f' echo "end $CODE" >>/{WITNESSES}/$TOKEN; exit $CODE'
)
SHORT, LONG = 20, 200_000
JOB_CODE = 7


@dataclass(slots=True)
class Job:
    """What the harness knows of a job. ``id``: None until it is known.

    ``excuses``: why it may rightly be lost or killed. ``gaps``: lines may be missing in its
    log. ``forbidden``: launchpad has said that it was not started.
    """

    token: str
    ctid: int
    id: str | None = None
    excuses: set[str] = field(default_factory=set)
    gaps: bool = False
    forbidden: bool = False
    asked_to_end: bool = False
    forgotten: bool = False


@dataclass(slots=True)
class World:
    """``jobs``: all that may still live or be asked for; ``hidden``: those below a small disk.

    ``stuck``: names of half-made job directories that nobody could take away.
    """

    lab: Lab
    client: Client
    place: Path
    jobs: list[Job] = field(default_factory=list)
    hidden: list[Job] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)

    def truth(self, ctid: int) -> Truth:
        return Truth(self.lab, ctid)


def target(ctid: int) -> str:
    return f"pve1:{ctid}"


def start_words(token: str, ctid: int, lines: int, *options: str) -> list[str]:
    return ["run", "-n", token, *options, *settings(token, lines), target(ctid), "-c", _PROGRAM]


def settings(token: str, lines: int) -> list[str]:
    values = (f"TOKEN={token}", f"LINES_WANTED={lines}", f"CODE={JOB_CODE}")
    return [word for value in values for word in ("-e", value)]


def start(world: World, token: str, ctid: int, lines: int) -> Job:
    """A job that was started while nothing was broken."""
    job = Job(token, ctid)
    job.id = world.client.succeed(*start_words(token, ctid, lines, "--confirm", "0")).out.strip()
    world.jobs.append(job)
    wait_until(lambda: world.truth(ctid).witness(token).starts, 20, "its first word")
    return job


@dataclass(slots=True)
class Call:
    """One call that is to be struck. ``new``: the job it starts; ``old``: the one it is about."""

    words: list[str]
    new: Job | None = None
    old: Job | None = None
    file: Path | None = None


# How many lines the job writes that a call is about, and the words of the call.
_ABOUT_A_JOB: dict[Verb, tuple[int, tuple[str, ...]]] = {
    Verb.TAIL: (LONG, ("tail", "-n", "all")),
    Verb.TAIL_FOLLOW: (SHORT * 2, ("tail", "-n", "all", "-f")),
    Verb.STATUS: (LONG, ("status", "--json")),
    Verb.WAIT: (SHORT, ("wait",)),
    Verb.KILL: (LONG, ("kill", "--grace", "4s")),
}
_STARTS: dict[Verb, tuple[int, tuple[str, ...]]] = {
    Verb.RUN: (LONG, ("--json", "--confirm", "1")),
    Verb.RUN_FOLLOW: (SHORT, ("-f",)),
    Verb.RUN_WAIT: (SHORT, ("--wait", "--json")),
}
_NOTE = f'mkdir -p /{WITNESSES}; echo "start 0 0" >>/{WITNESSES}/$1; echo $1; exit {JOB_CODE}'


def prepare(world: World, step: Step) -> Call:
    """Make what the call needs, unharmed, and the words of the call."""
    token, ctid = f"f{step.number}-{os.getpid()}", step.ctid
    if step.verb in _STARTS:
        lines, options = _STARTS[step.verb]
        return Call(start_words(token, ctid, lines, *options), Job(token, ctid))
    if step.verb in _ABOUT_A_JOB:
        lines, words = _ABOUT_A_JOB[step.verb]
        old = start(world, token, ctid, lines)
        old.asked_to_end = step.verb is Verb.KILL
        return Call([*words, str(old.id)], old=old)
    return _OTHERS[step.verb](world, token, ctid)


def _rerun(world: World, token: str, ctid: int) -> Call:
    model = start(world, f"{token}m", ctid, SHORT)
    words = ["rerun", "--json", "--confirm", "0", *settings(token, SHORT), str(model.id)]
    return Call(words, Job(token, ctid), model)


def _exec(world: World, token: str, ctid: int) -> Call:
    words = ["exec", target(ctid), "--", "sh", "-c", _NOTE, "sh", token]
    return Call(words, old=Job(token, ctid))


def _push(world: World, token: str, ctid: int) -> Call:
    source = world.place / token
    _fill(source)
    return Call(["push", str(source), f"{target(ctid)}:/var/tmp/{token}"], file=source)


def _pull(world: World, token: str, ctid: int) -> Call:
    _fill(world.truth(ctid).root / "var/tmp" / token)
    goal = world.place / f"{token}-pulled"
    return Call(["pull", f"{target(ctid)}:/var/tmp/{token}", str(goal)], file=goal)


def _prune(world: World, token: str, ctid: int) -> Call:
    old = start(world, token, ctid, 1)
    return Call(["prune", "--yes", "--older-than", "0s", target(ctid)], old=old)


def _doctor(world: World, token: str, ctid: int) -> Call:
    return Call(["doctor", target(ctid)])


_OTHERS: dict[Verb, Callable[[World, str, int], Call]] = {
    Verb.RERUN: _rerun,
    Verb.EXEC: _exec,
    Verb.PUSH: _push,
    Verb.PULL: _pull,
    Verb.PRUNE: _prune,
    Verb.DOCTOR: _doctor,
}


def identify(world: World, call: Call, outcome: Outcome, ids_before: set[str]) -> None:
    """Learn which job it was that the call started: the client wrote that down first."""
    job = call.new
    if job is None:
        return
    own = {each for each, _target in world.client.known_jobs()} - ids_before
    if outcome.stdout.startswith(b"{") and outcome.code != -9:
        document = outcome.json()
        own.add(document["id"])
        job.forbidden = document.get("started") == "no"
    own.discard("")
    if own:
        (job.id,) = own
    world.jobs.append(job)


FILES = {"a": b"a" * 300_000, "b": b"b\n" * 50_000, "deep/c": b"c"}


def _fill(place: Path) -> None:
    for name, data in FILES.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def torn_files(place: Path) -> list[str]:
    """Files of a copy that exist under their names and are not whole."""
    return [
        name
        for name, data in FILES.items()
        if (place / name).exists() and (place / name).read_bytes() != data
    ]


def is_whole_copy(place: Path) -> bool:
    return all((place / name).exists() for name in FILES) and not torn_files(place)
