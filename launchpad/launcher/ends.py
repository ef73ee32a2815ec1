"""What the index keeps of an answer, and what it gives back without asking."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from launchpad.document import job_document, job_from_document, state_word
from launchpad.index import Entry, Index
from launchpad.job import STARTING_LIMIT, JobId
from launchpad.launcher.desk import Desk
from launchpad.replies import parse_spec
from launchpad.state import Job, Lost, Reason, Starting, Unreachable, is_ended

# After this, no start that was sent can still be on its way (seconds).
_START_IS_OVER = 600.0


def remember(desk: Desk, jobs: Iterable[Job]) -> None:
    """Put what containers answered into the index.

    An end is kept, and never asked for again, once it is the whole end: nothing of the job lives.
    """
    stood: dict[str, list[Job]] = {}
    ends: dict[JobId, dict[str, Any]] = {}
    for job in jobs:
        if isinstance(job.state, Unreachable):
            continue
        if _is_whole_end(desk, job):
            ends[job.id] = job_document(job)
        stood.setdefault(state_word(job.state), []).append(job)
    if ends:
        desk.index.note_ends(ends)
    for state, same in stood.items():
        desk.index.note_seen([job.id for job in same], state, desk.now())


def _is_whole_end(desk: Desk, job: Job) -> bool:
    if not is_ended(job.state) or job.processes:
        return False
    if job.state == Lost(Reason.NEVER_STARTED):
        entry = desk.index.get(job.id)
        return entry is not None and desk.now() - entry.created_at > _START_IS_OVER
    return True


def known_end(entry: Entry) -> Job | None:
    """How the job ended, if the index knows; its place is told as the index has it now."""
    if entry.end is None:
        return None
    job = job_from_document(entry.end, parse_spec(entry.record))
    if job is None:
        return None
    return replace(
        job, id=entry.id, target=entry.target, identity=entry.identity, log=job.log or entry.log
    )


def is_new(desk: Desk, entry: Entry) -> bool:
    """Whether its start may be on its way still, so that finding nothing means nothing."""
    return entry.identity is None and desk.now() - entry.created_at < STARTING_LIMIT


def starting_if_new(desk: Desk, entry: Entry, job: Job) -> Job:
    """``job``; as starting where nothing was found because its start is on its way."""
    if job.state == Lost(Reason.NEVER_STARTED) and is_new(desk, entry):
        return replace(job, state=Starting(), started="unknown")
    return job


def mark_shown(index: Index, jobs: Iterable[Job]) -> None:
    """The user has seen these: ends among them are no news any more."""
    index.mark_shown([job.id for job in jobs if is_ended(job.state)])
