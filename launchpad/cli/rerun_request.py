"""From the words of ``launchpad rerun`` to what is asked of the launcher. Nothing is sent yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from launchpad.cli import guards
from launchpad.cli.common import Session, say
from launchpad.cli.run_request import warn_about_values
from launchpad.command import Secret
from launchpad.environment import callers_environment, from_file, from_word
from launchpad.errors import UsageError
from launchpad.launcher.request import RunRequest
from launchpad.launcher.rerun import Changes, rerun_request
from launchpad.launcher.selection import select_jobs
from launchpad.launcher.status import learn
from launchpad.printable import printable


@dataclass(frozen=True, slots=True)
class Rerun:
    """What was said on the command line. ``confirm``: seconds; None: as the first time."""

    job: str
    environment: tuple[str, ...]
    env_files: tuple[Path, ...]
    push: bool
    confirm: float | None
    follow: bool
    wait: bool


def build_request(session: Session, wanted: Rerun) -> RunRequest:
    """The start that is like the one of the job. Raises as :func:`rerun_request` does."""
    if wanted.follow and session.json:
        raise UsageError(
            "-f prints the log on stdout, --json one document: not both",
            advice="--json --wait, and launchpad tail for the log",
        )
    jobs = select_jobs(session.desk(), wanted.job, learn)
    entry = jobs.newest
    if jobs.note:
        say(f"launchpad: {entry.id} is the {jobs.note}")

    def ask(missing: Sequence[str]) -> Mapping[str, Secret] | None:
        return {name: _ask(name) for name in missing} if session.interactive else None

    changes = Changes(
        environment=_said(wanted),
        push=wanted.push,
        confirm=wanted.confirm,
        habit=session.config.verbs.get("rerun", {}).get("confirm"),
        mode="follow" if wanted.follow else "wait" if wanted.wait else "confirm",
        ask=ask,
    )
    request = rerun_request(entry, session.config, changes)
    if (log := request.spec.log) is not None:
        say(f"launchpad: its output is added to {printable(log)}, the log of {entry.id}")
    warn_about_values(wanted.environment)
    return request


def _said(wanted: Rerun) -> dict[str, Secret]:
    """What the command line says: it always counts, and may add to what there was."""
    caller = callers_environment()
    found: dict[str, Secret] = {}
    for path in wanted.env_files:
        found.update(from_file(path, caller))
    for word in wanted.environment:
        guards.check_environment_word(word)
        name, value = from_word(word, caller)
        found[name] = value
    return found


def _ask(name: str) -> Secret:
    from getpass import getpass

    return Secret(getpass(f"value of {name} (not shown): "))
