"""Which jobs a word on the command line means.

A word is an id, else a name, else an unambiguous prefix of an id; ``TARGET/WORD``, split at the
last slash, is the same among the jobs of one target.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from launchpad.errors import JobUnknown, UsageError
from launchpad.index import Entry
from launchpad.launcher.desk import Desk
from launchpad.nearest import nearest
from launchpad.target import RemoteContainer, Target, parse_target

# Asks a target for its jobs and adds them to the index; may raise what asking raises.
Learn = Callable[[Desk, Target], object]

_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs of the index, newest first, never none. ``word``: what they were asked for by.

    ``by_name``: the word was a name, so that there may be several.
    """

    word: str
    entries: tuple[Entry, ...]
    by_name: bool

    @property
    def newest(self) -> Entry:
        """The one that was created last."""
        return self.entries[0]

    @property
    def note(self) -> str:
        """What to say when only the newest is taken; empty where nothing was left out."""
        if len(self.entries) == 1:
            return ""
        return f"newest of {len(self.entries)} named {self.newest.name}"


@dataclass(frozen=True, slots=True)
class Everything:
    """All jobs of a target."""

    target: Target


def select(desk: Desk, word: str, learn: Learn | None = None) -> Jobs | Everything:
    """What ``word`` means where a job or a target may stand.

    Raises :class:`UsageError` where it means both, or neither can be told; :class:`JobUnknown`.
    """
    target = _as_target(desk, word)
    if target is None:
        return select_jobs(desk, word, learn)
    if "/" not in word and ":" not in word and (entries := desk.index.find(word)):
        kind = "the target 'local'" if word == "local" else "an alias of the configuration"
        raise UsageError(
            f"{word!r} is both {kind} and the job {entries[0].id}",
            advice=f"write the job's whole id, or {word}/{entries[0].name}; the target is {target}",
        )
    return Everything(target)


def select_jobs(desk: Desk, word: str, learn: Learn | None = None) -> Jobs:
    """The jobs that ``word`` means where only a job may stand.

    ``learn`` is called for ``TARGET/WORD`` when the index knows no such job: another machine may
    have started it. Raises :class:`JobUnknown`, :class:`UsageError` for an ambiguous prefix or a
    word that is an alias as well.
    """
    place, slash, rest = word.rpartition("/")
    if slash:
        target = desk.target(place)
        if not rest:
            raise UsageError(f"{word!r}: the job is missing", advice=f"{place}/NAME")
        entries = _at(desk, target, rest)
        if not entries and learn is not None:
            learn(desk, target)
            entries = _at(desk, target, rest)
        if not entries:
            raise JobUnknown(f"no job {rest} on {place}", advice=f"launchpad status {place}")
        return _jobs(rest, entries, word)
    entries = desk.index.find(word)
    if entries and word in desk.aliases and entries[0].id.text != word:
        raise UsageError(
            f"{word!r} is both a job ({entries[0].id}) and an alias of the configuration"
            f" ({desk.aliases[word]})",
            advice=f"write the job's whole id, or TARGET/{word}",
        )
    if not entries:
        raise _unknown(desk, word)
    return _jobs(word, entries, word)


def select_newest(desk: Desk) -> Entry:
    """The job that was created last; raises :class:`UsageError` where the index is empty."""
    entry = desk.index.newest()
    if entry is None:
        raise UsageError(
            "this machine's index knows no job yet",
            advice="launchpad run TARGET -- COMMAND starts one; launchpad status TARGET finds"
            " those that other machines started",
        )
    return entry


def list_ids(entries: Sequence[Entry]) -> str:
    """The ids for a message, not more than fit."""
    shown = " ".join(entry.id.text for entry in entries[:_SHOWN])
    more = len(entries) - _SHOWN
    return f"{shown} … and {more} more" if more > 0 else shown


def _jobs(word: str, entries: Sequence[Entry], whole: str) -> Jobs:
    first = entries[0]
    if word not in {first.id.text, first.name} and len(entries) > 1:
        raise UsageError(
            f"{whole!r} may be any of {len(entries)} jobs: {list_ids(entries)}",
            advice="write more of the id",
        )
    return Jobs(word, tuple(entries), by_name=word == first.name)


def _at(desk: Desk, target: Target, word: str) -> list[Entry]:
    """The jobs of ``target`` that ``word`` means: names and prefixes count only there."""
    here = [entry for entry in desk.index.entries() if _is_at(entry, target)]
    return (
        [entry for entry in here if entry.id.text == word]
        or [entry for entry in here if entry.name == word]
        or [entry for entry in here if entry.id.text.startswith(word)]
    )


def _is_at(entry: Entry, target: Target) -> bool:
    if entry.target == str(target):
        return True
    if not isinstance(target, RemoteContainer) or entry.ctid is None:
        return False
    # Another spelling of the same place: a name for a number, a user in front.
    try:
        own = parse_target(entry.target)
    except UsageError:
        return False
    return (
        isinstance(own, RemoteContainer)
        and own.host.name == target.host.name
        and entry.ctid == target.container
    )


def _as_target(desk: Desk, word: str) -> Target | None:
    if word == "local" or word in desk.aliases:
        return desk.target(word)
    if word.startswith("ssh://") or ":" in word:
        place = word.rpartition("/")[0]
        return None if place and _is_target(desk, place) else desk.target(word)
    return None


def _is_target(desk: Desk, text: str) -> bool:
    try:
        desk.target(text)
    except UsageError:
        return False
    return True


def _unknown(desk: Desk, word: str) -> JobUnknown:
    advice = "if another machine started it: launchpad status TARGET"
    if near := nearest(word, desk.index.names(), count=3, cutoff=0.7):
        advice = f"did you mean {' or '.join(near)}? {advice[0].upper()}{advice[1:]}"
    if word in desk.aliases:
        advice = f"{word} is an alias of the configuration; its jobs: launchpad status {word}"
    return JobUnknown(f"no job {word} in this machine's index", advice=advice)
