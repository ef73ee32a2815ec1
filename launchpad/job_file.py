"""A job file: what ``launchpad run`` would be told on the command line, kept in TOML.

Only the file that was named is read. Paths of this machine in it are relative to the file itself.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launchpad.errors import ClientError, UsageError
from launchpad.job import Launcher
from launchpad.nearest import nearest
from launchpad.toml_reader import TomlReader, find_lines, load_toml


@dataclass(frozen=True, slots=True)
class JobFile:
    """What a file says; None, and an empty ``env``: nothing. Times are seconds.

    ``env``: pairs of a name and its value, or None for the caller's own value. ``env_file`` and
    ``push`` are absolute. ``target`` is a word as on the command line, so it may be an alias.
    """

    path: Path
    target: str | None = None
    name: str | None = None
    cwd: str | None = None
    command: tuple[str, ...] | None = None
    shell: str | None = None
    env: tuple[tuple[str, str | None], ...] = field(default=(), repr=False)
    env_file: Path | None = None
    push: Path | None = None
    ready: str | None = None
    ready_timeout: float | None = None
    time_limit: float | None = None
    on_exit: str | None = None
    user: str | None = None
    log: str | None = None
    login: bool | None = None
    launcher: Launcher | None = None


def load(path: Path, settings: Sequence[str] = ()) -> JobFile:
    """What ``path`` says, with ``settings`` (``KEY=VALUE``) on top.

    Raises :class:`ClientError` with file and line for what cannot be read or meant, and
    :class:`UsageError` for a setting of the command line.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise ClientError(f"there is no job file {path}", advice="--file JOB.toml") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"the job file {path} cannot be read", details=str(error)) from error
    return parse(text, path, settings)


def parse(text: str, path: Path, settings: Sequence[str] = ()) -> JobFile:
    """What ``text`` of the file ``path`` says. Raises as :func:`load` does."""
    data = load_toml(text, path)
    reader = _Reader(path, find_lines(text))
    said = reader.read(data)
    if "command" in said and "shell" in said:
        raise reader.wrong("shell", "command and shell exclude each other", "keep one of them")
    on_top = _Settings(path, {}).read_words(settings, said)
    if "command" in on_top or "shell" in on_top:
        said = {**said, "command": None, "shell": None}
    return JobFile(path=path, **{**said, **on_top})


class _Reader(TomlReader):
    def readers(self) -> dict[str, Callable[[str, Any], Any]]:
        return {
            "target": self.text,
            "name": self.text,
            "cwd": self.directory,
            "command": self.words,
            "shell": self.text,
            "env": self.environment,
            "env_file": self.file,
            "push": self.file,
            "ready": self.text,
            "ready_timeout": self.duration,
            "time_limit": self.duration,
            "on_exit": self.text,
            "user": self.text,
            "log": self.directory,
            "login": self.switch,
            "launcher": self.launcher,
        }

    def read(self, data: Mapping[str, Any]) -> dict[str, Any]:
        readers = self.readers()
        self.check_keys("", data, tuple(readers))
        return {key: readers[key](key, value) for key, value in data.items()}

    def words(self, where: str, value: Any) -> tuple[str, ...]:
        words = self.value(where, value, list, 'a list of texts: ["python3", "train.py"]')
        for word in words:
            if not isinstance(word, str):
                raise self.wrong(
                    where, f"{where} must be a list of texts", f"{word!r} needs quotes around it"
                )
        if not words:
            raise self.wrong(where, f"{where} is empty", 'command = ["python3", "train.py"]')
        return tuple(words)


class _Settings(_Reader):
    """``--set KEY=VALUE``: VALUE is the text itself; for ``command`` a list as in TOML."""

    def read_words(self, words: Sequence[str], said: Mapping[str, Any]) -> dict[str, Any]:
        readers = self.readers()
        found: dict[str, Any] = {}
        for word in words:
            key, equals, text = word.partition("=")
            if not equals:
                raise UsageError(
                    f"--set {word}: the value is missing", advice=f"--set {word}=VALUE"
                )
            if key.startswith("env."):
                name = key.removeprefix("env.")
                pairs = found.get("env", said.get("env", ()))
                found["env"] = (*pairs, *self.environment("env", {name: text}))
                continue
            if key not in readers or key == "env":
                near = nearest(key, readers, cutoff=0.5)
                meant = "env.NAME=VALUE" if key == "env" else near[0] if near else ""
                raise UsageError(
                    f"--set {key}=…: {key!r} is no key of a job file",
                    advice=(f"did you mean {meant}? " if meant else "")
                    + f"known: {', '.join(readers)}",
                )
            found[key] = readers[key](key, self.meant(key, text))
        if "command" in found and "shell" in found:
            raise self.wrong("shell", "command and shell exclude each other", "set one of them")
        return found

    def meant(self, key: str, text: str) -> Any:
        if key == "login" and text in {"true", "false"}:
            return text == "true"
        if key == "command":
            try:
                return tomllib.loads(f"command = {text}")["command"]
            except (tomllib.TOMLDecodeError, KeyError):
                return text
        return text

    def file(self, where: str, value: Any) -> Path:
        # Typed here and now, so relative to here.
        return Path(self.text(where, value)).expanduser().absolute()

    def wrong(self, where: str, what: str, advice: str) -> ClientError:
        raise UsageError(f"--set {where}=…: {what}", advice=advice)
