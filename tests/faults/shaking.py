"""The run of the harness: step after step, each broken and judged."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from faults import invariants
from faults.breaking import armed, broken, last
from faults.calls import Call, World, identify, prepare
from faults.step import DISKS, Fault, Moment, Step, make_step

from support.client import Outcome, _end_session
from support.waiting import wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from support.client import Client
    from support.lab import Lab, Traffic

# Longer than any deadline of launchpad, once all is mended again.
_NO_END = 150
_KEPT = 2


@dataclass(slots=True)
class Tally:
    """``struck``: steps in which the call had not ended before the fault."""

    seed: int
    steps: int = 0
    seconds: float = 0
    struck: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    verbs: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        rows = [f"seed {self.seed}: {self.steps} steps in {self.seconds:.0f} s,"]
        rows[0] += f" {self.struck} of them struck while the call ran"
        for counter in (self.faults, self.verbs):
            rows += [f"  {count:5}  {name}" for name, count in sorted(counter.items())]
        return [*rows, f"invariants broken: {len(self.broken)}", *self.broken]


def shake(
    lab: Lab,
    client: Client,
    place: Path,
    *,
    seed: int,
    seconds: float,
    first: int = 1,
    long_ones: bool = True,
    say: Callable[[str], Any] = print,
) -> Tally:
    """Break things for ``seconds``. A broken invariant is told and noted; the run goes on.

    ``first``: the number of the first step, to see one again without those before it.
    """
    world = World(lab, client, place)
    tally = Tally(seed)
    began = time.monotonic()
    number = first
    try:
        while time.monotonic() - began < seconds or number == first:
            step = make_step(seed, number, long_ones=long_ones)
            wrong, was_struck, story = _one(world, step)
            tally.steps += 1
            tally.struck += was_struck
            tally.faults[step.fault] += 1
            tally.verbs[step.verb] += 1
            for sentence in wrong:
                tally.broken.append(f"seed {seed}, {step}: {sentence}")
                say(f"BROKEN: {tally.broken[-1]}\n{story}")
            number += 1
    finally:
        _end_all(world)
    tally.seconds = time.monotonic() - began
    return tally


def _one(world: World, step: Step) -> tuple[list[str], bool, str]:
    wrong: list[str] = []
    if step.fault is Fault.FULL:
        # The small disk lies over the state directory with the jobs that were there before.
        world.hidden = [job for job in world.jobs if job.ctid == step.ctid]
        world.jobs = [job for job in world.jobs if job.ctid != step.ctid]
    story = "before the call"
    was_struck = False
    try:
        with armed(world.lab, step):
            call = prepare(world, step)
            ids = {job for job, _target in world.client.known_jobs()}
            outcome, was_struck, how = _strike(world, step, call)
            identify(world, call, outcome, ids)
            story = f"{how}\n{outcome}"
            invariants.excuse(world, step)
            for check in (
                invariants.of_the_call(world, step, call, outcome),
                invariants.of_the_container(world, step),
                invariants.of_the_jobs(world, step),
            ):
                wrong += check
            _clear(world, step)
    except AssertionError as error:
        wrong.append(f"a call that nothing had broken: {error}")
    if step.fault is Fault.FULL:
        world.jobs = [job for job in world.jobs if job.ctid != step.ctid] + world.hidden
        world.hidden = []
    return wrong, was_struck, story


def _strike(world: World, step: Step, call: Call) -> tuple[Outcome, bool, str]:
    """Make the call and break it; its outcome, whether it was still under way, and the story."""
    traffic = world.lab.watch("pve1")
    began = time.monotonic()
    process = None
    if step.moment is not Moment.BEFORE or step.fault is Fault.CLIENT_KILLED:
        process = world.client.start(*call.words)
        _await_moment(world, step, process, traffic)
        time.sleep(step.delay)
    struck_at = time.monotonic()
    was_running = process is None or process.poll() is None
    with broken(world.lab, step, process):
        if process is None:
            process = world.client.start(*call.words)
        last(step)
    healed_at = time.monotonic()
    outcome = _finish(process, call, began)
    how = f"struck {struck_at - began:.2f} s after the call, mended at {healed_at - began:.2f} s"
    return outcome, was_running, f"{how}; the call {'ran' if was_running else 'had ended'}"


def _finish(process: subprocess.Popen[bytes], call: Call, began: float) -> Outcome:
    try:
        stdout, stderr = process.communicate(timeout=_NO_END)
    except Exception:  # noqa: BLE001  # whatever it is: the call has not ended
        _end_session(process)
        stdout, stderr = process.communicate()
    seconds = time.monotonic() - began
    return Outcome(tuple(call.words), process.returncode, stdout, stderr, seconds)


def _await_moment(
    world: World, step: Step, process: subprocess.Popen[bytes], traffic: Traffic
) -> None:
    truth = world.truth(step.ctid)
    reached: dict[Moment, Callable[[], object]] = {
        Moment.BEFORE: lambda: True,
        Moment.AT_ONCE: lambda: True,
        Moment.CONNECTED: lambda: traffic.connections,
        Moment.SESSION: lambda: traffic.sessions,
        Moment.PCT: lambda: traffic.pct_calls,
        Moment.INSIDE: lambda: any(each.attached for each in truth.processes()),
        Moment.SPOKEN: lambda: _has_spoken(process),
    }
    with suppress(AssertionError):
        wait_until(lambda: process.poll() is not None or reached[step.moment](), 5)


def _has_spoken(process: subprocess.Popen[bytes]) -> bool:
    import select

    streams = [each for each in (process.stdout, process.stderr) if each]
    return bool(select.select(streams, [], [], 0)[0])


def _clear(world: World, step: Step) -> None:
    """Let a few jobs live on to meet the next faults; end the others as a user does."""
    truth = world.truth(step.ctid)
    here = [job for job in world.jobs if job.ctid == step.ctid]
    living = [job for job in here if truth.lives(truth.witness(job.token))]
    kept = [] if step.fault in DISKS else living[-_KEPT:]
    for job in living:
        if job not in kept:
            world.client.succeed("kill", "--grace", "2s", str(job.id), timeout=120)
            assert not truth.lives(truth.witness(job.token)), f"{job.id} lives after its kill"
    # An ended job is asked once more in its next step, and then forgotten.
    world.jobs = [job for job in world.jobs if job.ctid != step.ctid or job in kept]


def _end_all(world: World) -> None:
    """Without launchpad: whatever was found, the next run begins with nothing."""
    for ctid, jobs in _identities(world).items():
        world.lab.end_jobs(ctid, jobs)


def _identities(world: World) -> dict[int, dict[str, tuple[int, int] | None]]:
    identities = world.client.identities()
    found: dict[int, dict[str, tuple[int, int] | None]] = {}
    for job, target in world.client.known_jobs():
        found.setdefault(int(target.rpartition(":")[2]), {})[job] = identities[job]
    return found
