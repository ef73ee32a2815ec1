"""What ``launchpad run`` says of a job that has started: lines for stderr."""

from launchpad.command import to_text
from launchpad.launcher.request import RunRequest
from launchpad.launcher.result import RunResult
from launchpad.printable import printable
from launchpad.state import Job, is_ended
from launchpad.wording import duration_words, end_sentence, state_words


def started_line(job: Job, elapsed: float) -> str:
    """``started train-k3f9ab on pve1:101   PID 4711   setsid   0.6 s``."""
    launcher_word = str(job.launcher or "")
    if job.launcher_reason:
        launcher_word += f" ({printable(job.launcher_reason)})"
    pid = f"   PID {job.identity.pid}" if job.identity else ""
    return f"started {job.id} on {job.target}{pid}   {launcher_word}   {duration_words(elapsed)}"


def log_line(job: Job) -> str:
    """Where the log is."""
    return f"log {printable(job.log)}"


def result_lines(result: RunResult, request: RunRequest) -> list[str]:
    """All that is said after the first line."""
    job = result.job
    if not job.created:
        held = f"{job.id} on {job.target} has this idempotency key already"
        said = f"{held} and {state_words(job.state)}; nothing was started"
        return [said, *_next_lines(job)]
    if request.mode == "follow":
        return [_end_line(result)]
    lines = [f"| {printable(to_text(line))}" for line in result.first_lines]
    if is_ended(job.state):
        last = job.last_line
        if last and to_text(b"".join(result.first_lines[-1:])) != last:
            lines += ["| …", f"| {printable(last)}"]
        # Who waited has seen the log's name already.
        log = [log_line(job)] if request.mode == "confirm" else []
        return [_end_line(result), *lines, *log, *_next_lines(job)]
    if result.timed_out:
        waited = duration_words(request.ready_timeout or 0)
        lines.append(
            f"not ready after {waited}: no line matched /{printable(request.ready or '')}/;"
            f" {job.id} runs on"
        )
    elif request.ready is not None:
        lines.append(f"ready: a line matched /{printable(request.ready)}/")
    elif not result.first_lines:
        lines.append(_silence(request))
    return [*lines, log_line(job), *_next_lines(job)]


def _silence(request: RunRequest) -> str:
    if not request.confirm:
        return "running; its output was not waited for (--confirm 0)"
    return f"running, no output yet ({request.confirm:g} s)"


def _end_line(result: RunResult) -> str:
    unready = ", before it was ready" if result.job.ready is False else ""
    return f"{end_sentence(result.job)}{unready}"


def _next_lines(job: Job) -> list[str]:
    if is_ended(job.state):
        return [f"next: launchpad tail {job.id}"]
    verbs = ("tail -f", "status", "kill")
    return ["next: " + " · ".join(f"launchpad {verb} {job.id}" for verb in verbs)]
