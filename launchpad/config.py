"""The configuration: aliases of targets and what holds for them, and defaults for all.

One file, ``$XDG_CONFIG_HOME/launchpad/config.toml`` (``~/.config``), or the one that was named.
Nothing is ever read from the current directory: a cloned repository must not decide where your
keys are sent. A key that is not known is an error that names the nearest one.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from launchpad.errors import ClientError, UsageError
from launchpad.job import Launcher
from launchpad.target import parse_target
from launchpad.toml_reader import TomlReader, find_lines, load_toml

TransportChoice = Literal["auto", "paramiko", "openssh"]


# What sections [defaults.VERB] may say: options that are a matter of habit, and how each is read.
# What a single call acts upon (--all, --name, …), and consent (--yes), belong on the command line.
VERB_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "run": {
        "confirm": "duration",
        "ready": "text",
        "ready_timeout": "duration",
        "time_limit": "duration",
        "on_exit": "text",
        "follow": "switch",
        "wait": "switch",
    },
    "rerun": {"confirm": "duration", "follow": "switch", "wait": "switch"},
    "tail": {
        "lines": "number_of_lines",
        "follow": "switch",
        "raw": "switch",
        "prefix": "switch",
    },
    "kill": {"signal": "text", "grace": "duration"},
    "wait": {"timeout": "duration"},
    "push": {"exclude": "texts"},
    "pull": {"exclude": "texts"},
    "prune": {"older_than": "duration"},
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a section may say. None, and an empty ``env``: nothing was said.

    ``env``: pairs of a name and its value, or None for the caller's own value. ``env_file``:
    absolute. ``share_connection``: keep an OpenSSH master connection.
    """

    cwd: str | None = None
    user: str | None = None
    env: tuple[tuple[str, str | None], ...] = field(default=(), repr=False)
    env_file: Path | None = None
    login: bool | None = None
    launcher: Launcher | None = None
    transport: TransportChoice | None = None
    share_connection: bool | None = None
    ssh_config: Path | None = None

    def over(self, other: "Settings") -> "Settings":
        """These settings, and those of ``other`` where these say nothing."""
        values = {}
        for item in fields(self):
            mine = getattr(self, item.name)
            values[item.name] = getattr(other, item.name) if mine is None else mine
        return Settings(**{**values, "env": (*other.env, *self.env)})


@dataclass(frozen=True, slots=True)
class Alias:
    """A section ``[targets.NAME]``: the target that NAME stands for, and its settings."""

    name: str
    target: str
    settings: Settings


@dataclass(frozen=True, slots=True)
class Config:
    """What is in force. ``path``: the file it was read from, None where there is none.

    ``verbs``: what is said for options of single verbs, on the command line; times in seconds.
    ``no_color``, ``verbose``: as the options. ``lines``: where each setting stands, by its dotted
    name.
    """

    path: Path | None = None
    defaults: Settings = field(default_factory=Settings)
    verbs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    no_color: bool = False
    verbose: bool = False
    targets: Mapping[str, Alias] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def aliases(self) -> dict[str, str]:
        """The names and the targets that they stand for."""
        return {name: alias.target for name, alias in self.targets.items()}

    def by_target(self) -> dict[str, Settings]:
        """Settings by the target's text; of two aliases for one target the first counts."""
        found: dict[str, Settings] = {}
        for alias in self.targets.values():
            found.setdefault(str(parse_target(alias.target)), alias.settings)
        return found

    def settings_for(self, word: str) -> Settings:
        """What holds for a target as it was written on the command line."""
        alias = self.targets.get(word)
        return alias.settings.over(self.defaults) if alias else self.defaults


def default_path() -> Path:
    """Where the file is looked for. A relative ``XDG_CONFIG_HOME`` is invalid, and ignored."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path.home() / ".config"
    return base / "launchpad" / "config.toml"


def load(path: Path | None = None) -> Config:
    """The configuration in ``path``, or in the default file if there is one.

    Raises :class:`~launchpad.errors.ClientError` with file and line for what cannot be read or
    meant; also where ``path`` was named and is not there.
    """
    chosen = path or default_path()
    try:
        text = chosen.read_text("utf-8")
    except FileNotFoundError:
        if path is None:
            return Config()
        raise ClientError(
            f"there is no configuration file {path}", advice="--config, or LAUNCHPAD_CONFIG"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(
            f"the configuration {chosen} cannot be read", details=str(error)
        ) from error
    return parse(text, chosen)


def parse(text: str, path: Path) -> Config:
    """The configuration that ``text`` of the file ``path`` says. Raises as :func:`load` does."""
    return _Reader(path, find_lines(text)).read(load_toml(text, path))


class _Reader(TomlReader):
    def read(self, data: Mapping[str, Any]) -> Config:
        self.check_keys("", data, ("targets", "defaults"))
        said = self.table("defaults", data.get("defaults", {}))
        general = {"no_color", "verbose", *VERB_OPTIONS}
        defaults = self.section(
            "defaults", {k: v for k, v in said.items() if k not in general}, tuple(general)
        )
        verbs = {verb: self.verb(verb, said[verb]) for verb in VERB_OPTIONS if verb in said}
        no_color, verbose = (
            self.switch(f"defaults.{key}", said.get(key, False)) for key in ("no_color", "verbose")
        )
        targets = {}
        for name, section in self.table("targets", data.get("targets", {})).items():
            targets[name] = self.alias(name, section)
        return Config(self.path, defaults, verbs, no_color, verbose, targets, self.lines)

    def verb(self, verb: str, section: Any) -> Mapping[str, Any]:
        where = f"defaults.{verb}"
        table, known = self.table(where, section), VERB_OPTIONS[verb]
        self.check_keys(where, table, tuple(known))
        return {
            key: getattr(self, known[key])(f"{where}.{key}", value) for key, value in table.items()
        }

    def alias(self, name: str, section: Any) -> Alias:
        where = f"targets.{name}"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name) or name == "local":
            raise self.wrong(
                where,
                f"{name!r} cannot be an alias",
                "letters, digits and . _ - ; local has a meaning already",
            )
        table = self.table(where, section)
        if "target" not in table:
            raise self.wrong(where, f"[{where}] names no target", 'target = "HOST:CTID"')
        target = self.value(f"{where}.target", table["target"], str, "a text")
        try:
            parse_target(target)
        except UsageError as error:
            raise self.wrong(f"{where}.target", error.what, error.advice) from error
        rest = {key: value for key, value in table.items() if key != "target"}
        return Alias(name, target, self.section(where, rest, extra=("target",)))

    def section(self, where: str, data: Any, extra: tuple[str, ...] = ()) -> Settings:
        table = self.table(where, data)
        readers: dict[str, Callable[[str, Any], Any]] = {
            "cwd": self.directory,
            "user": self.text,
            "env": self.environment,
            "env_file": self.file,
            "login": self.switch,
            "launcher": self.launcher,
            "transport": self.transport,
            "share_connection": self.switch,
        }
        if where == "defaults":
            readers["ssh_config"] = self.file
        self.check_keys(where, table, (*readers, *extra))
        return Settings(**{key: readers[key](f"{where}.{key}", table[key]) for key in table})

    def transport(self, where: str, value: Any) -> str:
        return self.choice(where, value, ("auto", "paramiko", "openssh"))
