"""The moment between sending a start and knowing what came of it."""

import time
from dataclasses import dataclass, field

from launchpad.errors import (
    ContainerElsewhere,
    ContainerSilent,
    ContainerStopped,
    ContainerUnknown,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LaunchpadError,
    LoginRefused,
    NotAContainer,
    PctMissing,
    ShellError,
    SudoRefused,
)
from launchpad.frames import FrameReader
from launchpad.index import Entry
from launchpad.job import Launcher
from launchpad.launch_reply import Launched, LaunchReply, read_launch
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.launcher.request import RunRequest
from launchpad.proxmox import ANSWER_DEADLINE
from launchpad.replies import parse_facts, parse_spec
from launchpad.scripts import PROFILE_DEADLINE
from launchpad.state import Job, Running
from launchpad.transport.base import Channel, Completed, Event, Exited, Output, Stream
from launchpad.verdict import Place, job_of

# The layer below the container refused: its shell never ran, so nothing was started.
NEVER_ENTERED = (
    ContainerElsewhere,
    ContainerStopped,
    ContainerUnknown,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LoginRefused,
    NotAContainer,
    PctMissing,
    SudoRefused,
)

_KEPT = 65536


class Doubt(Exception):
    """The answer was lost: the job may have been started, or not. ``error``: what was lost.

    An outcome more than an error: it is looked up.
    """

    def __init__(self, error: LaunchpadError) -> None:
        super().__init__(error.what)
        self.error = error


@dataclass(slots=True)
class _Answer:
    """What has come of a launch so far: kept, in case it has to explain a failure."""

    stdout: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)

    def take(self, output: Output) -> None:
        kept = self.stderr if output.stream is Stream.STDERR else self.stdout
        kept += output.data[: max(0, _KEPT - len(kept))]

    def ended(self, code: int | None, *, silent: bool = False) -> Completed:
        return Completed(bytes(self.stdout), bytes(self.stderr), code, silent=silent)


def await_launch(
    contact: Contact, channel: Channel, reader: FrameReader, request: RunRequest
) -> LaunchReply:
    """The outcome of a launch that was sent on ``channel``.

    Raises the error of the layer that refused before the container's shell ran, or :class:`Doubt`.
    """
    answer = _Answer()
    ends = time.monotonic() + ANSWER_DEADLINE
    while True:
        event = _receive(channel, ends)
        match event:
            case Output(stream, data):
                answer.take(event)
                began = reader.has_begun
                if stream is Stream.STDOUT and (reply := _reply(reader, data, request)):
                    return reply
                if reader.has_begun and not began:
                    # The shell in the container lives; a profile may take its time now.
                    ends = time.monotonic() + PROFILE_DEADLINE + ANSWER_DEADLINE
            case Exited(code):
                error = contact.explain(answer.ended(code), answered=reader.has_begun)
                if not reader.has_begun and isinstance(error, NEVER_ENTERED):
                    raise error
                raise Doubt(error)
            case None:
                silence = answer.ended(None, silent=True)
                error = contact.explain(silence, answered=reader.has_begun)
                if isinstance(error, ContainerSilent):
                    # Nobody answers, so nobody can be asked either. Once the container goes on,
                    # its shell writes to a line that is closed, and ends before it starts anything.
                    raise error
                raise Doubt(error)


def _receive(channel: Channel, ends: float) -> Event | None:
    try:
        return channel.receive(max(0.0, ends - time.monotonic()))
    except NEVER_ENTERED:
        raise
    except LaunchpadError as lost:
        raise Doubt(lost) from lost


def _reply(reader: FrameReader, data: bytes, request: RunRequest) -> LaunchReply | None:
    try:
        for frame in reader.feed(data):
            reply = read_launch(frame, where=str(request.target), command=request.spec.command)
            if reply is not None:
                return reply
    except ShellError as unreadable:
        raise Doubt(unreadable) from unreadable
    return None


def place_of(entry: Entry) -> Place:
    """Where the job of an index entry lives."""
    return Place(entry.target, entry.host, entry.node, entry.ctid, entry.state_directory)


def new_job(entry: Entry, launched: Launched) -> Job:
    """The job as it stands in the moment of its start."""
    return Job(
        id=entry.id,
        target=entry.target,
        host=entry.host,
        node=entry.node,
        ctid=entry.ctid,
        state=Running(),
        spec=parse_spec(entry.record),
        log=entry.log,
        identity=launched.identity,
        launcher=Launcher(launched.launcher),
        launcher_reason=launched.launcher_reason or None,
        started_at=float(launched.at),
    )


def look_up(desk: Desk, entry: Entry) -> Job | None:
    """What became of a start whose answer was lost; waits until it is settled.

    None: nothing was started, and nothing will be, however late its bytes arrive. Raises
    :class:`LaunchpadError` where nobody can be asked.
    """
    target = entry.place
    with connect(target, desk.options_for(target)) as contact:
        words = [entry.id.text, entry.state_directory, str(PROFILE_DEADLINE)]
        frames = contact.ask(
            ("common", "members", "facts", "lookup"),
            words,
            deadline=2 * PROFILE_DEADLINE + ANSWER_DEADLINE,
        )
    names = {frame.name for frame in frames}
    if "absent" in names:
        return None
    facts = parse_facts(frames)
    if "unknown" in names or facts.now is None:
        raise ShellError(
            f"whether {entry.id} was started cannot be told: launchpad's directory in"
            f" {entry.target} cannot be written",
            advice="is its disk full or read-only?",
        )
    job = job_of(
        facts.of(entry.id),
        facts.now,
        place_of(entry),
        spec=parse_spec(entry.record),
        log=entry.log,
        identity=entry.identity,
    )
    if job.identity is not None:
        desk.index.note_started(entry.id, job.identity, entry.node, entry.ctid)
    return job
