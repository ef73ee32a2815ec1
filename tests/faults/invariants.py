"""What must hold after each step, whatever was broken meanwhile. What does not is a sentence."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Any

from faults.calls import JOB_CODE, Call, Job, World, is_whole_copy, torn_files
from faults.step import DISKS, VIOLENT, Fault, Step, Verb

from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from faults.truth import Process, Truth, Witness

    from support.client import Outcome

_LAYER = re.compile(r"\[(client|ssh|login|sudo|pct|container|shell|job)\]")
_OF_A_JOB = {0, 1, 124, JOB_CODE, 128 + signal.SIGTERM, 128 + signal.SIGKILL}
# A far side without a client ends itself 15 s after the last heartbeat, a frozen one later.
_PATIENCE = 60
# A job is told as starting for 30 s at most.
_STARTING = 40


def of_the_call(world: World, step: Step, call: Call, outcome: Outcome) -> Iterator[str]:
    """What the call itself said and did."""
    if b"Traceback" in outcome.stderr:
        yield "a traceback is shown"
    was_killed = outcome.code == -signal.SIGKILL
    if was_killed and step.fault is not Fault.CLIENT_KILLED:
        yield "the call did not end"
    if not was_killed and outcome.code not in _OF_A_JOB:
        yield from _error_tells(step, outcome)
    yield from _did_what_it_said(world.truth(step.ctid), step, call, outcome)


def _did_what_it_said(truth: Truth, step: Step, call: Call, outcome: Outcome) -> Iterator[str]:
    job = call.new or call.old
    starts = truth.witness(job.token).starts if job else ()
    match step.verb:
        case Verb.RUN_FOLLOW | Verb.TAIL_FOLLOW | Verb.TAIL:
            yield from _shown_log(step, truth, job, outcome)
        case Verb.KILL:
            if outcome.code == 0 and job and truth.lives(truth.witness(job.token)):
                yield "kill said 0, and the job lives"
        case Verb.EXEC:
            if len(starts) > 1:
                yield "exec ran its command twice"
            if outcome.code == JOB_CODE and not starts:
                yield "exec gave the command's code, and it never ran"
        case Verb.PUSH | Verb.PULL:
            yield from _copy_is_whole(truth, step, call, outcome)
        case _:
            pass


def _copy_is_whole(truth: Truth, step: Step, call: Call, outcome: Outcome) -> Iterator[str]:
    assert call.file is not None
    push = step.verb is Verb.PUSH
    place = truth.root / "var/tmp" / call.file.name if push else call.file
    if torn := torn_files(place):
        yield f"half-written after {step.verb}: {torn}"
    if outcome.code == 0 and not is_whole_copy(place):
        yield f"{step.verb} said 0, and not everything is there"


def _error_tells(step: Step, outcome: Outcome) -> Iterator[str]:
    if step.verb is Verb.STATUS and outcome.stdout.startswith(b"{"):
        document = outcome.json()
        told: list[dict[str, Any]] = document["errors"]
        if not told or not all(each["layer"] and each["advice"] for each in told):
            yield f"status ended with {outcome.code} without a layer and an advice"
        return
    if step.verb is Verb.DOCTOR:
        if not outcome.stdout and not outcome.stderr:
            yield "doctor says nothing"
        return
    if step.fault in VIOLENT and " is lost, " in outcome.err:
        return  # the state of the job, and the truth
    if not _LAYER.search(outcome.err) or "help: " not in outcome.err:
        yield f"exit code {outcome.code} without a layer and an advice"


def _shown_log(step: Step, truth: Truth, job: Job | None, outcome: Outcome) -> Iterator[str]:
    if job is None or job.id is None:
        return
    log = truth.log(job.id)
    if log is None:
        if outcome.stdout:
            yield "bytes are shown of a log that does not exist"
        return
    if not log.startswith(outcome.stdout):
        yield f"shown bytes are not the log's: {outcome.stdout[-200:]!r} in {log[-200:]!r}"
    elif outcome.code == JOB_CODE and step.verb is not Verb.TAIL and outcome.stdout != log:
        yield f"the job's code came, and {len(log) - len(outcome.stdout)} bytes of log did not"


def of_the_container(world: World, step: Step) -> Iterator[str]:
    """What is left in the container and on its node."""
    truth = world.truth(step.ctid)

    def left() -> list[str]:
        calls = [f"on the node: {pid}" for pid in truth.on_node("lxc-attach ", "@notty")]
        return calls + [str(each) for each in _strangers(world, truth)]

    try:
        wait_until(lambda: not left(), _PATIENCE)
    except AssertionError:
        yield f"left behind: {left()}"
    yield from (f"half-written: {record}" for record in truth.damaged_records())
    known = {job.id for job in world.jobs} - world.stuck
    for name in truth.directories():
        place = truth.root / "var/lib/launchpad/jobs" / name
        if name not in known or (place / "main").exists():
            continue
        if step.fault is Fault.READ_ONLY:
            # What was begun before it struck, nobody could take away.
            world.stuck.add(name)
        elif step.fault not in VIOLENT:
            yield f"a half-made job stays: {name}"


def _strangers(world: World, truth: Truth) -> list[Process]:
    """Processes of launchpad or of a job that have no business any more."""
    processes = truth.processes()
    identities = {(each.number, each.ticks) for each in processes}
    living = {
        job.id.encode()
        for job in world.jobs + world.hidden
        if job.id and job.ctid == truth.ctid and identities & set(truth.witness(job.token).starts)
    }
    return [
        each
        for each in processes
        if (each.attached or each.is_script or each.is_supervisor or _is_marked(each))
        and not any(job in each.words or each.belongs_to(job.decode()) for job in living)
    ]


def _is_marked(each: Process) -> bool:
    return any(word.startswith(b"LAUNCHPAD_JOB_ID=") for word in each.environment)


def of_the_jobs(world: World, step: Step) -> Iterator[str]:
    """What launchpad says of the jobs, against what is the case."""
    truth = world.truth(step.ctid)
    jobs = [job for job in world.jobs if job.ctid == step.ctid]
    for job in jobs:
        yield from _starts_are_true(job, truth.witness(job.token))
    asked = [job for job in jobs if job.id]
    if not asked:
        return
    # One that was never started is in no index: asking for it is an error of its own.
    index = {name for name, _target in world.client.known_jobs()}
    words = [str(job.id) for job in asked if job.id in index]
    before: dict[str, bool] = {}
    told: dict[str, dict[str, Any]] = {}

    def settled() -> bool:
        """A start that was on its way when its client was killed may still go ahead."""
        before.update({job.token: truth.lives(truth.witness(job.token)) for job in asked})
        if words:
            told.update(_ask(world, words))
        return not any(each["state"] == "starting" for each in told.values())

    try:
        wait_until(settled, _STARTING)
    except AssertionError as error:
        yield f"once all is mended: {error}"
    for job in asked:
        witness = truth.witness(job.token)
        after = truth.lives(witness)
        state = told.get(str(job.id))
        if before[job.token] == after:
            yield from _state_is_true(job, witness, state, lives=after)
        if job.id in index:
            yield from _log_is_whole(truth, world, job)


def _starts_are_true(job: Job, witness: Witness) -> Iterator[str]:
    starts = len(witness.starts)
    if starts > 1:
        yield f"{job.id} was started {starts} times"
    if job.forbidden and starts:
        yield f"{job.id} was started, and launchpad says that it was not"


def _ask(world: World, words: list[str]) -> dict[str, dict[str, Any]]:
    outcome = world.client.run("status", "--json", *words, timeout=120)
    document = outcome.json()
    assert "jobs" in document, f"status cannot be asked: {outcome}"
    assert not document["errors"], f"status has an error: {outcome}"
    return {each["id"]: each for each in document["jobs"]}


def _state_is_true(
    job: Job, witness: Witness, told: dict[str, Any] | None, *, lives: bool
) -> Iterator[str]:
    state = told and told["state"]
    shown = f"{job.id} is told as {state} ({told and told['reason']}), "
    if lives:
        if state != "running":
            yield shown + "and it lives"
    elif state in {"running", "starting", "unreachable"}:
        yield shown + "and it does not live"
    elif not job.excuses:
        yield from (shown + why for why in _end_is_true(job, witness, told))


def _end_is_true(job: Job, witness: Witness, told: dict[str, Any] | None) -> Iterator[str]:
    """Of one that has ended, and to which nothing was done that would excuse it."""
    if not witness.starts:
        if told is not None and told["state"] != "lost":
            yield "and it never ran"
    elif told is None:
        if not job.forgotten:
            yield "and it ran"
    elif job.asked_to_end:
        pass
    elif witness.code is None:
        yield "and nobody has ended it"
    elif (told["state"], told["exit_code"]) != ("exited", witness.code):
        yield f"and it exited with {witness.code}"


def _log_is_whole(truth: Truth, world: World, job: Job) -> Iterator[str]:
    log = truth.log(str(job.id))
    if log is None:
        return
    lines = log.decode().split("\n")[:-1]
    if lines != [f"{job.token} {number}" for number in range(len(lines))] and not job.gaps:
        yield f"the log of {job.id} is not what the job wrote"
    outcome = world.client.run("tail", "-n", "all", str(job.id), timeout=120)
    now = truth.log(str(job.id)) or b""
    if not (now.startswith(outcome.stdout) and len(outcome.stdout) >= len(log)):
        yield f"tail gives {len(outcome.stdout)} bytes of {job.id}'s {len(log)} to {len(now)}"


def excuse(world: World, step: Step) -> None:
    """Note what the fault has rightly done to the jobs of its container."""
    for job in world.jobs:
        if job.ctid == step.ctid:
            job.gaps = job.gaps or step.fault in DISKS
            job.forgotten = job.forgotten or step.verb is Verb.PRUNE
            if step.fault in VIOLENT:
                job.excuses.add(str(step.fault))
