r"""Jobs as JSON documents, and back. Pure.

The documents are a promise to programs: fields are added, never renamed. Bytes that are not UTF-8
are lone surrogates in the text, which JSON writes as ``\udcXX``. The index keeps known ends in the
same form.
"""

import re
import signal
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, assert_never

from launchpad.errors import LAUNCHPAD_FAILED, LaunchpadError, Layer
from launchpad.job import JobId, Launcher, is_job_id
from launchpad.replies import spec_of
from launchpad.state import (
    Exited,
    Job,
    JobState,
    Killed,
    KillRequest,
    Lost,
    Reason,
    Running,
    Spec,
    Starting,
    Unreachable,
)

SCHEMA = 1


def state_word(state: JobState) -> str:
    """The state's one word, as the documents have it."""
    match state:
        case Starting():
            return "starting"
        case Running():
            return "running"
        case Exited():
            return "exited"
        case Killed():
            return "killed"
        case Lost():
            return "lost"
        case Unreachable():
            return "unreachable"
        case _:
            assert_never(state)


def reason_of(state: JobState) -> Reason | None:
    """Why it is in that state, where that is known."""
    return None if isinstance(state, Starting) else state.reason


def timestamp(seconds: float | None) -> str | None:
    """Seconds since the epoch as ``2026-01-31T12:00:00Z``; None where no date stands for them."""
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _epoch(text: object) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def signal_word(number: int) -> str:
    """``SIGKILL`` for 9; ``SIG34`` where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _signal_number(word: object) -> int | None:
    if not isinstance(word, str):
        return None
    if word in signal.Signals.__members__:
        return signal.Signals[word].value
    match = re.fullmatch(r"SIG([0-9]{1,3})", word)
    return int(match[1]) if match else None


def job_document(job: Job) -> dict[str, Any]:
    """``job`` as `status --json` and `run --json` show it."""
    state, spec = job.state, job.spec
    unreachable = state if isinstance(state, Unreachable) else None
    launcher = job.launcher or (spec.launcher if spec else None)
    reason = reason_of(state)
    known = job.last_known
    return {
        "schema": SCHEMA,
        "id": job.id.text,
        "name": job.id.name,
        "target": job.target,
        "host": job.host,
        "node": job.node,
        "ctid": job.ctid,
        "state": state_word(state),
        "reason": str(reason) if reason else None,
        "exit_code": state.code if isinstance(state, Exited) else None,
        "signal": signal_word(state.signal) if isinstance(state, Killed) else None,
        "created": job.created,
        "started": job.started,
        "started_by": spec.started_by or None if spec else None,
        "pid": job.identity.pid if job.identity else None,
        "processes": job.processes,
        "launcher": str(launcher) if launcher else None,
        "launcher_reason": job.launcher_reason,
        "command": list(spec.command) if spec and spec.command is not None else None,
        "shell": spec.shell if spec else None,
        "cwd": spec.cwd if spec else None,
        "user": spec.user if spec else None,
        "env_names": list(spec.env_names) if spec else [],
        "log": job.log,
        "log_bytes": job.log_bytes,
        "last_line": job.last_line,
        "last_output_at": timestamp(job.last_output_at),
        "ready": job.ready,
        "time_limit_s": spec.time_limit_s if spec else None,
        "started_at": timestamp(job.started_at),
        "ended_at": timestamp(job.ended_at),
        "elapsed_s": job.elapsed_s,
        "cpu_percent": job.cpu_percent,
        "rss_bytes": job.rss_bytes,
        "oom_kills": job.oom_kills,
        "gpus": job.gpus,
        "git": spec.git if spec else None,
        "last_known": {**known, "at": timestamp(known.get("at"))} if known else None,
        "layer": str(unreachable.layer) if unreachable else None,
        "what": unreachable.what if unreachable else None,
        "advice": unreachable.advice or None if unreachable else None,
        "notes": list(job.notes),
        "kill_request": _kill_document(job.kill_request),
        "login": spec.login if spec else None,
        "on_exit": spec.on_exit if spec else None,
        "rerun": _typed(spec.record, "again", dict) if spec else None,
        "version": _typed(spec.record, "version", str) if spec else None,
    }


def _kill_document(request: KillRequest | None) -> dict[str, Any] | None:
    if request is None:
        return None
    word = signal_word(request.signal)
    return {"by": request.by, "signal": word, "at": timestamp(request.at)}


def _kill_request(document: Mapping[str, Any]) -> KillRequest | None:
    request = _typed(document, "kill_request", dict) or {}
    number, at = _signal_number(request.get("signal")), _epoch(request.get("at"))
    if number is None or at is None:
        return None
    return KillRequest(_typed(request, "by", str), number, at)


def error_document(error: LaunchpadError) -> dict[str, Any]:
    """A failure as it stands in a document."""
    return {
        "layer": str(error.layer),
        "what": error.what,
        "details": error.details,
        "advice": error.advice,
        "exit_code": error.exit_code or LAUNCHPAD_FAILED,
    }


def status_document(
    jobs: Iterable[Job],
    errors: Iterable[tuple[str, LaunchpadError]],
    warnings: Iterable[str] = (),
) -> dict[str, Any]:
    """The document of `status --json`; ``errors``: the targets that could not be asked.

    ``warnings``: what may soon go wrong there.
    """
    return {
        "schema": SCHEMA,
        "jobs": [job_document(job) for job in jobs],
        "errors": [{"target": target, **error_document(error)} for target, error in errors],
        "warnings": list(warnings),
    }


def _typed(document: Mapping[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    value = document.get(key)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def _reason(document: Mapping[str, Any]) -> Reason | None:
    word = document.get("reason")
    return Reason(word) if word in list(Reason) else None


def _exited(document: Mapping[str, Any]) -> JobState | None:
    code = _typed(document, "exit_code", int)
    return None if code is None else Exited(code, _reason(document))


def _killed(document: Mapping[str, Any]) -> JobState | None:
    number = _signal_number(document.get("signal"))
    return None if number is None else Killed(number, _reason(document) or Reason.OTHER)


def _unreachable(document: Mapping[str, Any]) -> JobState:
    layer = document.get("layer")
    return Unreachable(
        Layer(layer) if layer in list(Layer) else Layer.CONTAINER,
        _typed(document, "what", str) or "",
        _typed(document, "advice", str) or "",
        _reason(document),
    )


_STATES: dict[str, Callable[[Mapping[str, Any]], JobState | None]] = {
    "starting": lambda _document: Starting(),
    "running": lambda document: Running(_reason(document)),
    "exited": _exited,
    "killed": _killed,
    "lost": lambda document: Lost(_reason(document) or Reason.SUPERVISOR_LOST),
    "unreachable": _unreachable,
}


def job_from_document(document: Mapping[str, Any], spec: Spec | None = None) -> Job | None:
    """The job that a document tells of; None where it does not tell how the job stands.

    ``spec``: where it is known better than from the document. The identity is not in documents.
    """
    read_state = _STATES.get(str(document.get("state")))
    state, name = read_state(document) if read_state else None, document.get("id")
    if state is None or not isinstance(name, str) or not is_job_id(name):
        return None
    started = document.get("started")
    launcher = document.get("launcher")
    notes = document.get("notes")
    number = (int, float)
    return Job(
        id=JobId(name),
        target=_typed(document, "target", str) or "",
        host=_typed(document, "host", str),
        node=_typed(document, "node", str),
        ctid=_typed(document, "ctid", int),
        state=state,
        spec=spec or spec_of(dict(document)),
        log=_typed(document, "log", str) or "",
        created=document.get("created") is not False,
        started=started if started in ("yes", "no", "unknown") else "yes",
        launcher=Launcher(launcher) if launcher in list(Launcher) else None,
        launcher_reason=_typed(document, "launcher_reason", str),
        processes=_typed(document, "processes", int),
        log_bytes=_typed(document, "log_bytes", int),
        last_line=_typed(document, "last_line", str),
        last_output_at=_epoch(document.get("last_output_at")),
        ready=document.get("ready") if isinstance(document.get("ready"), bool) else None,
        started_at=_epoch(document.get("started_at")),
        ended_at=_epoch(document.get("ended_at")),
        elapsed_s=_typed(document, "elapsed_s", number),
        cpu_percent=_typed(document, "cpu_percent", number),
        rss_bytes=_typed(document, "rss_bytes", int),
        oom_kills=_typed(document, "oom_kills", int),
        gpus=_typed(document, "gpus", list),
        kill_request=_kill_request(document),
        notes=tuple(n for n in notes if isinstance(n, str)) if isinstance(notes, list) else (),
    )
