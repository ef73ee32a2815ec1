"""`attach`: the terminal of a job that was started with ``--tmux``."""

from dataclasses import dataclass

from launchpad import console
from launchpad.console import GaveUp, Signals
from launchpad.errors import INTERRUPTED, JobError, JobUnknown, LaunchpadError
from launchpad.index import Entry
from launchpad.job import Launcher
from launchpad.launcher import ends
from launchpad.launcher.asking import Question, ask_all, ask_status
from launchpad.launcher.contact import connect
from launchpad.launcher.desk import Desk
from launchpad.launcher.on_terminal import on_terminal, terminal_name
from launchpad.printable import printable
from launchpad.scripts import terminal_call
from launchpad.state import Job, is_ended
from launchpad.wording import state_words


@dataclass(frozen=True, slots=True)
class Attached:
    """How it went. ``job``: how the job stood afterwards, None where nobody could be asked."""

    exit_code: int
    job: Job | None


class _Refused(JobError):
    """There is no terminal to attach to; ``reason`` as attach.sh gives it."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"attach: {reason}")
        self.reason = reason


def attach(desk: Desk, entry: Entry) -> Attached:
    """Show the job's terminal on ours until the user detaches, or the job has ended.

    Raises :class:`JobError` that explains why a job has no terminal, or the error of the layer that
    failed.
    """
    if (known := ends.known_end(entry)) is not None:
        raise _ended(known)
    console.flush_standard_streams()
    with Signals() as signals:
        try:
            with connect(entry.place, desk.options_for(entry.place)) as contact:
                words = (entry.state_directory, entry.id.text, terminal_name())
                scripts = ("common", "descriptors", "terminal", "attach")
                call = terminal_call(contact.prefix, scripts, "attach_words", words)
                code = on_terminal(desk, contact, call, signals, lambda _c, why, _d: _Refused(why))
        except GaveUp as end:
            code = INTERRUPTED if end.number == INTERRUPTED - 128 else end.exit_code
        except _Refused as refused:
            raise _explain(_ask(desk, entry), refused.reason) from None
    try:
        job = _ask(desk, entry)
    except LaunchpadError:
        return Attached(code, None)
    ends.remember(desk, [job])
    if is_ended(job.state):
        ends.mark_shown(desk.index, [job])
    return Attached(code, job)


def _ask(desk: Desk, entry: Entry) -> Job:
    """How the job is. Raises what kept its container from answering."""
    (answer,) = ask_all(desk, [Question(entry.place, (entry,))], ask_status(desk))
    if answer.error is not None:
        raise answer.error
    (job,) = answer.jobs
    return job


def _ended(job: Job) -> JobError:
    return JobError(
        f"{job.id} {state_words(job.state)}: there is nothing to attach to",
        advice=f"launchpad tail {job.id}   shows its log",
    )


def _explain(job: Job, reason: str) -> LaunchpadError:
    """Why a job has no terminal (any more)."""
    if reason == "no-job":
        return JobUnknown(
            f"job {job.id} is not in {job.target}",
            advice=f"was it pruned? launchpad status {job.target}",
        )
    if is_ended(job.state):
        return _ended(job)
    show = f"launchpad tail -f {job.id}   shows what it prints"
    if job.launcher is not Launcher.TMUX:
        wanted = job.spec is not None and job.spec.launcher is Launcher.TMUX
        return JobError(
            f"{job.id} has no terminal: it was started with {job.launcher or 'setsid'}",
            details=printable(f"--tmux was asked for; {job.launcher_reason}") if wanted else "",
            advice=show if wanted else f"{show}; launchpad run --tmux lends a job one",
        )
    what = "tmux is gone from the container" if reason == "no-tmux" else "its tmux server is gone"
    return JobError(
        f"{job.id} {state_words(job.state)}, but it has no terminal any more: {what}",
        details="the job itself never depends on tmux: its log, status and kill are as ever",
        advice=show,
    )
