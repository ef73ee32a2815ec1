"""The configuration's TOML, read: a key that is not known is an error that names the nearest."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from launchpad.errors import UsageError
from launchpad.settings import VERB_OPTIONS, Alias, Config, Settings
from launchpad.target import parse_target
from launchpad.toml_reader import TomlReader, find_lines, load_toml


def parse(text: str, path: Path) -> Config:
    """The configuration that ``text`` of the file ``path`` says.

    Raises :class:`~launchpad.errors.ClientError` with file and line for what cannot be meant.
    """
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
