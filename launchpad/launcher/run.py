"""`run`: start a job, prove that it started, and never start it twice.

The index knows the job before a byte of it is sent. From then on every outcome is one of three,
and ``started`` says which: *yes*, *no*, or *unknown*. A start whose answer was lost is looked up
by its id, and forbidden if it has not happened yet; it is never repeated.
"""

import json
import time
from dataclasses import dataclass, replace
from typing import assert_never

from launchpad.errors import ContainerSilent, JobUnknown, LaunchpadError, UsageError
from launchpad.frames import FrameReader
from launchpad.index import Entry
from launchpad.job import JobId, JobPaths
from launchpad.launch_reply import Existing, Launched, Refused
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.conversation import Notice
from launchpad.launcher.desk import Desk
from launchpad.launcher.follow import Follow, JobEnded, OpenLine
from launchpad.launcher.launching import NEVER_ENTERED, Doubt, await_launch, look_up, new_job
from launchpad.launcher.request import Interrupted, RunRequest, RunResult, StartFailed
from launchpad.logstream import LogBytes
from launchpad.record import GitState, make_record, same_request
from launchpad.scripts import launch_call
from launchpad.state import Job
from launchpad.watch import Confirmation, FirstLines, Readiness, Watch, compile_ready

# How long a start whose answer was lost is looked for before it is called unknown (seconds).
_RECOVERY = 30.0
_RECOVERY_STEP = 5.0


@dataclass(slots=True)
class _Start:
    """One start in progress: what is known of it, for whoever has to end it early."""

    desk: Desk
    request: RunRequest
    began: float
    entry: Entry | None = None
    sent: bool = False
    launched: bool = False


def start(desk: Desk, request: RunRequest) -> RunResult:
    """Start the job and prove it. Raises :class:`StartFailed`, :class:`UsageError`."""
    begun = _Start(desk, request, time.monotonic())
    spec = request.spec
    try:
        return _start(begun)
    except UsageError:
        _forget(begun)
        raise
    except LaunchpadError as error:
        if not begun.sent:
            _forget(begun)
            raise StartFailed(error, spec.id, "no") from error
        if begun.launched:
            raise StartFailed(error, spec.id, "yes") from error
        find_out = f"whether it was started is not known: launchpad status {spec.id}"
        error.advice = f"{find_out}; {error.advice}" if error.advice else find_out
        raise StartFailed(error, spec.id, "unknown") from error
    except KeyboardInterrupt:
        raise _interrupted(begun) from None


def _start(begun: _Start) -> RunResult:
    desk, request, spec = begun.desk, begun.request, begun.request.spec
    options = desk.options_for(request.target)
    tree = request.push.source if request.push is not None else None
    with GitState.ask(tree) as git, connect(request.target, options) as contact:
        if request.push is not None:
            # Late: most starts do without what copying needs.
            from launchpad.launcher.transfer import push_over

            request.on_pushed(push_over(contact, request.push))
        record = make_record(
            spec,
            str(request.target),
            ready=request.ready,
            git=git.answer(),
            again=request.again,
        )
        entry = _remember(desk, contact, request, record)
        begun.entry = entry
        call = launch_call(
            contact.prefix, contact.state_directory, spec, record, follow=_follows(request)
        )
        begun.sent = True
        channel = contact.start(call)
        reader = FrameReader(call.marker, raw=frozenset({"log"}))
        try:
            reply = await_launch(contact, channel, reader, request)
        except Doubt as doubt:
            channel.close()
            return _recover(begun, doubt.error)
        except ContainerSilent:
            channel.close()
            contact.release(call)
            raise
        except NEVER_ENTERED:
            begun.sent = False
            raise
        match reply:
            case Refused(error):
                channel.close()
                begun.sent = False
                raise error
            case Existing(holder):
                channel.close()
                return _existing(begun, contact, holder, record)
            case Launched():
                begun.launched = True
                elapsed = time.monotonic() - begun.began
                entry = replace(entry, log=reply.log, identity=reply.identity)
                desk.index.learn([entry])
                job = new_job(entry, reply)
                request.on_started(job)
                if not _follows(request):
                    channel.close()
                    return RunResult(job, (), elapsed)
                follow = Follow(desk, entry, line=OpenLine(contact, channel, reader))
                # Not before: the way to a host may take longer than --confirm.
                return _observe(begun, follow, job, _watch(request), elapsed)
            case _:
                assert_never(reply)


def _watch(request: RunRequest) -> Watch | None:
    if request.ready is not None:
        return Readiness(compile_ready(request.ready), request.ready_timeout, time.monotonic())
    if request.mode == "confirm":
        return Confirmation(request.confirm, time.monotonic())
    return None


def _follows(request: RunRequest) -> bool:
    return request.mode != "confirm" or request.ready is not None or request.confirm > 0


def _remember(desk: Desk, contact: Contact, request: RunRequest, record: str) -> Entry:
    """Write the index entry. The key stays with the container, which alone can decide about it."""
    spec = request.spec
    paths = JobPaths(contact.state_directory, spec.id)
    kept = {**json.loads(record), "idempotency_key": None}
    entry = Entry(
        id=spec.id,
        target=str(request.target),
        host=contact.host,
        node=contact.node,
        ctid=contact.ctid,
        state_directory=contact.state_directory,
        log=spec.log or paths.log,
        record=json.dumps(kept),
        created_at=desk.now(),
    )
    return desk.index.add(entry)


def _recover(begun: _Start, error: LaunchpadError) -> RunResult:
    """The answer to the start was lost: find out what became of it, and never start again."""
    entry = begun.entry
    if entry is None:
        raise error
    begun.desk.say(f"{error.what}; looking up what became of {entry.id}")
    ends = time.monotonic() + _RECOVERY
    while True:
        try:
            job = look_up(begun.desk, entry)
            break
        except LaunchpadError as failure:
            if time.monotonic() + _RECOVERY_STEP > ends:
                raise error from failure
            time.sleep(_RECOVERY_STEP)
    if job is None:
        begun.sent = False
        error.advice = "nothing was started, and nothing will be: run it again"
        raise error
    begun.launched = True
    elapsed = time.monotonic() - begun.began
    begun.request.on_started(job)
    if not _follows(begun.request):
        return RunResult(job, (), elapsed)
    watch = _watch(begun.request)
    with Follow(begun.desk, entry) as follow:
        return _observe(begun, follow, job, watch, elapsed)


def _existing(begun: _Start, contact: Contact, holder: JobId, record: str) -> RunResult:
    """Another job has the idempotency key: that one is the answer, if it is the same request."""
    _forget(begun)
    begun.sent = False
    desk, request = begun.desk, begun.request
    entry = desk.index.get(holder)
    if entry is None and begun.entry is not None:
        paths = JobPaths(contact.state_directory, holder)
        entry = replace(begun.entry, id=holder, log=paths.log)
    job = look_up(desk, entry) if entry else None
    if job is None or entry is None or job.spec is None:
        raise JobUnknown(
            f"the job {holder} has this idempotency key, and ended its start just now",
            advice="run the same command again",
        )
    if not same_request(job.spec.record, json.loads(record)):
        raise UsageError(
            f"the idempotency key {request.spec.idempotency_key!r} belongs to {holder},"
            " which was another command",
            advice=f"launchpad status {holder}; or choose another key",
        )
    desk.index.learn([replace(entry, record=json.dumps(job.spec.record), identity=job.identity)])
    return RunResult(replace(job, created=False), (), time.monotonic() - begun.began)


def _observe(
    begun: _Start, follow: Follow, job: Job, watch: Watch | None, elapsed: float
) -> RunResult:
    """Follow the log until the watch is satisfied, or the job has ended."""
    request = begun.request
    first = FirstLines()
    with follow:
        while True:
            timeout = watch.remaining(time.monotonic()) if watch else None
            if timeout == 0.0:
                if not follow.is_ending:
                    break
                # A crash right behind the first output: never call that a job that runs.
                timeout = None
            event = follow.next_event(timeout)
            match event:
                case LogBytes(data):
                    first.feed(data)
                    if request.mode == "follow":
                        request.on_output(data)
                    if watch is not None:
                        watch.feed(data, time.monotonic())
                        if (
                            isinstance(watch, Readiness)
                            and watch.is_met
                            and request.mode != "confirm"
                        ):
                            watch = None
                case JobEnded(ended):
                    ready = watch.is_met if isinstance(watch, Readiness) else None
                    return RunResult(replace(ended, ready=ready), first.lines, elapsed)
                case Notice(text):
                    begun.desk.say(text)
                case _:
                    pass
    ready = watch.is_met if isinstance(watch, Readiness) else None
    return RunResult(replace(job, ready=ready), first.lines, elapsed, timed_out=ready is False)


def _interrupted(begun: _Start) -> StartFailed:
    """Ctrl-C: say what is true of the job, looked up where its start was on its way."""
    job = begun.request.spec.id
    if not begun.sent or begun.entry is None:
        _forget(begun)
        return StartFailed(Interrupted(f"interrupted: {job} was not started", ""), job, "no")
    if begun.launched:
        return StartFailed(
            Interrupted(f"interrupted: {job} runs on", f"launchpad tail -f {job}"), job, "yes"
        )
    try:
        found = look_up(begun.desk, begun.entry)
    except (LaunchpadError, KeyboardInterrupt):
        return StartFailed(
            Interrupted(
                f"interrupted: nobody knows yet whether {job} was started",
                f"launchpad status {job}",
            ),
            job,
            "unknown",
        )
    if found is None:
        _forget(begun)
        return StartFailed(Interrupted(f"interrupted: {job} was not started", ""), job, "no")
    return StartFailed(
        Interrupted(f"interrupted: {job} has started and runs on", f"launchpad tail -f {job}"),
        job,
        "yes",
    )


def _forget(begun: _Start) -> None:
    if begun.entry is not None:
        begun.desk.index.forget(begun.entry.id)
