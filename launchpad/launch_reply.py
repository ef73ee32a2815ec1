"""What launch.sh says at the end of a start, as types. Pure."""

from dataclasses import dataclass

from launchpad.command import Command, to_text
from launchpad.errors import (
    CANNOT_EXECUTE,
    LAUNCHPAD_FAILED,
    NOT_FOUND,
    LaunchpadError,
    ShellError,
)
from launchpad.frames import Frame
from launchpad.job import Identity, JobId
from launchpad.refusals import Refusal, refusal_error


@dataclass(frozen=True, slots=True)
class Launched:
    """The job runs: proven from inside. ``at``: epoch seconds by the container's clock.

    ``log``: its path, with the container user's home in the place of ``~``.
    """

    identity: Identity
    at: int
    supervisor: int
    launcher: str
    launcher_reason: str
    log: str


@dataclass(frozen=True, slots=True)
class Existing:
    """Another job has the idempotency key; nothing was started."""

    job: JobId


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was started; ``error`` tells why."""

    error: LaunchpadError


# A refused start must not look like a job's own exit code.
_REFUSING = {str(code): code for code in (LAUNCHPAD_FAILED, CANNOT_EXECUTE, NOT_FOUND)}

LaunchReply = Launched | Existing | Refused


def read_launch(frame: Frame, *, where: str, command: Command) -> LaunchReply | None:
    """The outcome that ``frame`` tells; None for a frame that is none.

    Raises :class:`ShellError` for one that cannot be read.
    """
    try:
        match frame.name:
            case "refused":
                reason, code = frame.words
                refusal = Refusal(reason, _REFUSING[code], to_text(frame.payload), where, command)
                return Refused(refusal_error(refusal))
            case "existing":
                (text,) = frame.words
                return Existing(JobId(text))
            case "launched":
                return _launched(frame)
    except (KeyError, ValueError, LaunchpadError) as error:
        raise ShellError(
            f"the reply of the shell in {where} cannot be read",
            details=" ".join((frame.name, *frame.words))[:200],
            advice="another version of launchpad at work there?",
        ) from error
    return None


def _launched(frame: Frame) -> Launched:
    pid, ticks, session, boot_id, boot_ticks, at, supervisor, launcher = frame.words
    identity = Identity(int(pid), int(ticks), int(session), boot_id, int(boot_ticks))
    if identity.session != identity.pid and launcher != "nohup":
        raise ValueError("the main process does not lead a session of its own")
    # A path may hold newlines, the reason never does.
    log, _, why = to_text(frame.payload).rpartition("\n")
    return Launched(identity, int(at), int(supervisor), launcher, why, log)
