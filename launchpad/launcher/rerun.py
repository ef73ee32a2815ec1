"""`rerun`: from a job of the past to a start like it, with values from wherever they are now."""

import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from launchpad.command import Argv, Command, Secret, ShellLine, to_bytes, to_text
from launchpad.environment import Pairs, callers_environment, from_file, from_pairs
from launchpad.errors import JobUnknown, LaunchpadError, UsageError
from launchpad.index import Entry
from launchpad.job import JobSpec, Launcher, new_job_id
from launchpad.job_file import load as load_job_file
from launchpad.launcher.request import RunRequest
from launchpad.launcher.transfer import Push
from launchpad.printable import printable
from launchpad.record import started_by
from launchpad.settings import Config
from launchpad.target import Target, parse_target

DEFAULT_CONFIRM = 2.0


def _nobody(_missing: Sequence[str]) -> Mapping[str, Secret] | None:
    return None


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be otherwise than the first time; None: nothing was said.

    ``environment``: values that count before all others, for old variables and new ones. ``push``:
    whether to send the directory again that was sent then. ``confirm``: seconds; ``habit``: where
    neither this nor the record says. ``ask`` gives values that are nowhere, or None where nobody
    can be asked.
    """

    environment: Mapping[str, Secret] = field(default_factory=dict)
    push: bool = True
    confirm: float | None = None
    habit: float | None = None
    mode: Literal["confirm", "follow", "wait"] = "confirm"
    ask: Callable[[Sequence[str]], Mapping[str, Secret] | None] = _nobody


def rerun_request(entry: Entry, config: Config, changes: Changes) -> RunRequest:
    """The start that is like the one of the job. Nothing has been sent yet.

    Raises :class:`UsageError`, naming the variables for which there is no value, and
    :class:`JobUnknown` where nobody knows what the job was.
    """
    record = Record(entry)
    target = parse_target(entry.target)
    user, log = record.text("user"), record.text("log")
    tree = None
    if changes.push and (directory := record.again.get("push")):
        tree = tree_to_push(target, _pushed_before(record, str(directory)), user)
    spec = JobSpec(
        id=new_job_id(entry.name),
        command=record.command(),
        cwd=record.text("cwd"),
        environment=_Values(config, record, changes).pairs(),
        user=user,
        log=log,
        append=log is not None,
        login=record.data.get("login") is not False,
        launcher=Launcher.TMUX if record.data.get("launcher") == "tmux" else Launcher.SETSID,
        time_limit=record.number("time_limit_s"),
        on_exit=record.text("on_exit"),
    )
    confirms = (changes.confirm, record.seconds("confirm_s"), changes.habit, DEFAULT_CONFIRM)
    return RunRequest(
        target=target,
        spec=spec,
        confirm=next(seconds for seconds in confirms if seconds is not None),
        ready=record.text("ready"),
        ready_timeout=record.seconds("ready_timeout_s"),
        mode=changes.mode,
        push=tree,
        again={**record.again, "rerun_of": entry.id.text},
    )


def tree_to_push(target: Target, directory: Path, user: str | None) -> Push:
    """The push of ``run --push``: to a directory of the same name in the home of the job's user.

    Raises :class:`UsageError` for what is no directory.
    """
    place = directory.resolve()
    if not place.is_dir():
        raise UsageError(
            f"--push {directory} is not a directory of this machine",
            advice="--push . sends the directory you are in",
        )
    if not place.name:
        raise UsageError(f"--push {directory} has no name to be called by", advice="launchpad push")
    name = to_text(os.fsencode(place.name))
    return Push(source=place, target=target, path=f"~/{name}", user=user)


class Record:
    """What is known of how a job was started. Anybody may have written it: no type is believed."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.data = entry.spec
        again = self.data.get("again")
        self.again: dict[str, Any] = again if isinstance(again, dict) else {}
        self.is_ours = self.text("started_by") == started_by()

    def command(self) -> Command:
        """What it ran. Raises :class:`JobUnknown` where nobody knows."""
        words, shell = self.data.get("command"), self.data.get("shell")
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return Argv(tuple(words))
        if isinstance(shell, str):
            return ShellLine(shell)
        raise JobUnknown(
            f"what {self.entry.id} was asked to do is not known here",
            advice=f"launchpad status {self.entry.target} learns it, if its directory is there",
        )

    def text(self, key: str) -> str | None:
        value = self.data.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> float | None:
        value = self.data.get(key)
        return float(value) if isinstance(value, int | float) else None

    def seconds(self, key: str) -> float | None:
        value = self.again.get(key)
        return float(value) if isinstance(value, int | float) else None

    def names(self) -> list[str]:
        names = self.data.get("env_names")
        return [str(name) for name in names] if isinstance(names, list) else []

    def files(self, key: str) -> list[Path]:
        """Files of the machine that started it, if that is this one."""
        names = self.again.get(key)
        names = [names] if isinstance(names, str) else names
        if not self.is_ours or not isinstance(names, list):
            return []
        return [_path(name) for name in names if isinstance(name, str)]


def _pushed_before(record: Record, directory: str) -> Path:
    """The directory that was pushed, if this is the machine on which it lies."""
    path = _path(directory)
    if record.is_ours and path.is_dir():
        return path
    whose = record.text("started_by") or "somebody"
    raise UsageError(
        f"{record.entry.id} began by copying {printable(directory)} of {printable(whose)},"
        " which is not here",
        advice=f"--no-push starts it with what is in {record.entry.target} now",
    )


def _path(text: str) -> Path:
    return Path(os.fsdecode(to_bytes(text)))


class _Values:
    """The values of a job's variables, from wherever they are today."""

    def __init__(self, config: Config, record: Record, changes: Changes) -> None:
        self._config = config
        self._record = record
        self._changes = changes
        self._caller = callers_environment()
        self._unread: list[str] = []

    def pairs(self) -> Pairs:
        """All of them. Raises :class:`UsageError` for those that are nowhere."""
        said = self._changes.environment
        wanted = [name for name in self._record.names() if name not in said]
        recorded = dict(self._recorded()) if wanted else {}
        values: dict[str, Secret] = {}
        for name in wanted:
            if name in recorded:
                values[name] = recorded[name]
            elif name in self._caller:
                values[name] = Secret(self._caller[name])
        values |= self._asked([name for name in wanted if name not in values])
        return tuple({**values, **said}.items())

    def _recorded(self) -> Iterator[tuple[str, Secret]]:
        """What the configuration and the files of the first start say today; later ones count."""
        caller = _Everything(self._caller)
        settings = self._config.by_target().get(self._record.entry.target)
        settings = settings.over(self._config.defaults) if settings else self._config.defaults
        if settings.env_file is not None:
            yield from self._readable(from_file(settings.env_file, caller))
        yield from self._readable(from_pairs(settings.env, caller, "the configuration"))
        for path in self._record.files("job_file"):
            yield from self._readable(_from_job_file(path, caller))
        for path in self._record.files("env_files"):
            yield from self._readable(from_file(path, caller))

    def _readable(self, pairs: Iterable[tuple[str, Secret]]) -> Iterator[tuple[str, Secret]]:
        """``pairs`` as far as they can be had: what is gone is told only where it is missed."""
        try:
            for name, value in pairs:
                if value.reveal() != _NOWHERE:
                    yield name, value
        except LaunchpadError as error:
            self._unread.append(error.what)

    def _asked(self, missing: Sequence[str]) -> Mapping[str, Secret]:
        """Values from the keyboard, if there is somebody. Raises :class:`UsageError`."""
        if not missing:
            return {}
        answers = self._changes.ask(missing)
        if answers is not None:
            return answers
        words = " ".join(f"-e {name}=…" for name in missing)
        raise UsageError(
            f"rerun needs {', '.join(missing)} (values are never stored)",
            details="\n".join(self._unread),
            advice=f"export {'it' if len(missing) == 1 else 'them'}, or {words}",
        )


def _from_job_file(path: Path, caller: Mapping[str, str]) -> Iterator[tuple[str, Secret]]:
    yield from from_pairs(load_job_file(path).env, caller, str(path))


# What no variable has as its value by chance.
_NOWHERE = secrets.token_hex(16)


class _Everything(dict[str, str]):
    """The caller's environment, with every name in it.

    A file that says ``KEY`` alone must not fail where nobody wants KEY from it.
    """

    def __contains__(self, _name: object) -> bool:
        return True

    def __missing__(self, _name: str) -> str:
        return _NOWHERE
