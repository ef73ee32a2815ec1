"""What a configuration says, as values: settings of targets, aliases, defaults of verbs. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from launchpad.job import Launcher
from launchpad.target import parse_target

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
