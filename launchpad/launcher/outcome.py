"""What comes of a start that was sent: loaded while the container works on it.

The answer is proof, refusal, or doubt; a doubt is looked up. Behind the proof comes what the
request wants to see of the job: its first output, a line that says it is ready, or its end.
"""

import json
import time
from dataclasses import replace
from typing import assert_never

from launchpad.errors import ContainerSilent, JobUnknown, LaunchpadError, UsageError
from launchpad.frames import FrameReader
from launchpad.index import Entry
from launchpad.job import JobId, JobPaths
from launchpad.launch_reply import Existing, Launched, Refused
from launchpad.launcher.contact import Contact
from launchpad.launcher.conversation import Notice
from launchpad.launcher.follow import Follow, JobEnded, OpenLine
from launchpad.launcher.launching import NEVER_ENTERED, Doubt, await_launch, look_up, new_job
from launchpad.launcher.request import RunRequest, Start
from launchpad.launcher.result import RunResult
from launchpad.logstream import LogBytes
from launchpad.record import same_request
from launchpad.scripts import RemoteCall
from launchpad.state import Job
from launchpad.transport.base import Channel
from launchpad.watch import Confirmation, FirstLines, Readiness, Watch, compile_ready

# How long a start whose answer was lost is looked for before it is called unknown (seconds).
_RECOVERY = 30.0
_RECOVERY_STEP = 5.0


def settle(
    begun: Start, entry: Entry, contact: Contact, channel: Channel, call: RemoteCall
) -> RunResult:
    """The outcome of ``call``, whose words were sent on ``channel``, and what was wanted of it.

    Raises :class:`LaunchpadError`; ``begun`` then says what is known of the job.
    """
    request = begun.request
    reader = FrameReader(call.marker, raw=frozenset({"log"}))
    try:
        reply = await_launch(contact, channel, reader, request)
    except Doubt as doubt:
        channel.close()
        return _recover(begun, entry, doubt.error)
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
            return _existing(begun, entry, contact, holder)
        case Launched():
            begun.launched = True
            elapsed = time.monotonic() - begun.began
            entry = replace(entry, log=reply.log, identity=reply.identity)
            begun.desk.index.learn([entry])
            job = new_job(entry, reply)
            request.on_started(job)
            if not request.follows:
                channel.close()
                return RunResult(job, (), elapsed)
            follow = Follow(begun.desk, entry, line=OpenLine(contact, channel, reader))
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


def _recover(begun: Start, entry: Entry, error: LaunchpadError) -> RunResult:
    """The answer to the start was lost: find out what became of it, and never start again."""
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
    if not begun.request.follows:
        return RunResult(job, (), elapsed)
    watch = _watch(begun.request)
    with Follow(begun.desk, entry) as follow:
        return _observe(begun, follow, job, watch, elapsed)


def _existing(begun: Start, own: Entry, contact: Contact, holder: JobId) -> RunResult:
    """Another job has the idempotency key: that one is the answer, if it is the same request."""
    begun.forget()
    begun.sent = False
    desk, request = begun.desk, begun.request
    log = JobPaths(contact.state_directory, holder).log
    entry = desk.index.get(holder) or replace(own, id=holder, log=log)
    job = look_up(desk, entry)
    if job is None or job.spec is None:
        raise JobUnknown(
            f"the job {holder} has this idempotency key, and ended its start just now",
            advice="run the same command again",
        )
    if not same_request(job.spec.record, own.spec):
        raise UsageError(
            f"the idempotency key {request.spec.idempotency_key!r} belongs to {holder},"
            " which was another command",
            advice=f"launchpad status {holder}; or choose another key",
        )
    desk.index.learn([replace(entry, record=json.dumps(job.spec.record), identity=job.identity)])
    return RunResult(replace(job, created=False), (), time.monotonic() - begun.began)


def _observe(
    begun: Start, follow: Follow, job: Job, watch: Watch | None, elapsed: float
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
