"""`run`: start a job, prove that it started, and never start it twice.

The index knows the job before a byte of it is sent. From then on every outcome is one of three,
and ``started`` says which: *yes*, *no*, or *unknown*. A start whose answer was lost is looked up
by its id, and forbidden if it has not happened yet; it is never repeated.

The way into the container takes longest. So it is opened first, and what can be done meanwhile is
done then, the loading of modules among it; the script that was sent waits for its words.
"""

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from launchpad.errors import LaunchpadError, LineLost, UsageError
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.launcher.request import Interrupted, RunRequest, Start, StartFailed
from launchpad.scripts import LAUNCH_SCRIPTS, begun_call, launch_data

if TYPE_CHECKING:
    from launchpad.index import Entry
    from launchpad.launcher.result import RunResult


def start(desk: Desk, request: RunRequest) -> "RunResult":
    """Start the job and prove it. Raises :class:`StartFailed`, :class:`UsageError`."""
    begun = Start(desk, request, time.monotonic())
    spec = request.spec
    try:
        return _start(begun)
    except UsageError:
        begun.forget()
        raise
    except LaunchpadError as error:
        if not begun.sent:
            begun.forget()
            raise StartFailed(error, spec.id, "no") from error
        if begun.launched:
            raise StartFailed(error, spec.id, "yes") from error
        find_out = f"whether it was started is not known: launchpad status {spec.id}"
        error.advice = f"{find_out}; {error.advice}" if error.advice else find_out
        raise StartFailed(error, spec.id, "unknown") from error
    except KeyboardInterrupt:
        raise _interrupted(begun) from None


def _start(begun: Start) -> "RunResult":
    desk, request = begun.desk, begun.request
    options = desk.options_for(request.target)
    with connect(request.target, options) as contact:
        if request.push is not None:
            # Late: most starts do without what copying needs.
            from launchpad.launcher.transfer import push_over

            request.on_pushed(push_over(contact, request.push))
        call = begun_call(contact.prefix, LAUNCH_SCRIPTS)
        channel = contact.start(call)
        # From here on everything is late: the container is being entered meanwhile.
        record = _record(request)
        begun.entry = entry = _remember(desk, contact, request, record)
        data = launch_data(
            call.marker, contact.state_directory, request.spec, record, follow=request.follows
        )
        begun.sent = True
        # A line that is lost is told by whoever receives.
        with suppress(LineLost):
            channel.send(data)
        from launchpad.launcher.outcome import settle

        request.on_sent()
        return settle(begun, entry, contact, channel, call)


def _record(request: RunRequest) -> str:
    """What is kept of the request, with the commit of the tree that it concerns."""
    from launchpad.gitstate import GitState

    with GitState.ask(request.push.source if request.push is not None else None) as git:
        from launchpad.record import make_record

        return make_record(
            request.spec,
            str(request.target),
            ready=request.ready,
            git=git.answer(),
            again=request.again,
        )


def _remember(desk: Desk, contact: Contact, request: RunRequest, record: str) -> "Entry":
    """Write the index entry. The key stays with the container, which alone can decide about it."""
    import json

    from launchpad.index import Entry
    from launchpad.job import JobPaths

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


def _interrupted(begun: Start) -> StartFailed:
    """Ctrl-C: say what is true of the job, looked up where its start was on its way."""
    job = begun.request.spec.id
    if not begun.sent or begun.entry is None:
        begun.forget()
        return StartFailed(Interrupted(f"interrupted: {job} was not started", ""), job, "no")
    if begun.launched:
        return StartFailed(
            Interrupted(f"interrupted: {job} runs on", f"launchpad tail -f {job}"), job, "yes"
        )
    from launchpad.launcher.launching import look_up

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
        begun.forget()
        return StartFailed(Interrupted(f"interrupted: {job} was not started", ""), job, "no")
    return StartFailed(
        Interrupted(f"interrupted: {job} has started and runs on", f"launchpad tail -f {job}"),
        job,
        "yes",
    )
