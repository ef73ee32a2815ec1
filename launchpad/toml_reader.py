"""TOML files of the user, read key by key: each fault with its file, its line and what was meant.

What is not known is an error: a setting that is silently ignored is worse than none.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from launchpad.duration import parse_duration
from launchpad.errors import ClientError, UsageError
from launchpad.job import Launcher, check_container_path, check_environment_name
from launchpad.nearest import nearest


def load_toml(text: str, path: Path) -> dict[str, Any]:
    """The data in ``text`` of the file ``path``; raises :class:`ClientError` if it is no TOML."""
    # Late: without a file nothing is read.
    import tomllib

    try:
        return tomllib.loads(text)
    # The first of these covers TOMLDecodeError, and numbers of thousands of digits.
    except (ValueError, RecursionError) as error:
        raise ClientError(f"{path} is not TOML", details=str(error)) from error


def find_lines(text: str) -> dict[str, int]:
    """Where sections and their keys stand: enough for messages; tomllib tells no positions."""
    return dict(_find_lines(text))


def _find_lines(text: str) -> Iterator[tuple[str, int]]:
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[+\s*([^\]]+?)\s*\]", line):
            section = _dotted(header[1])
            yield section, number
        elif key := re.match(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=", line):
            yield _dotted(f"{section}.{key[1]}" if section else key[1]), number


def _dotted(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


# No clock that waits for longer is of use to anybody, and none of the system's can (seconds).
_LONGEST = 1e9

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TomlReader:
    """Reads values of one file. ``lines``: where each key stands, by its dotted name.

    Every method takes the dotted name and the value as it was read, and raises
    :class:`ClientError` with file and line for what cannot be meant.
    """

    path: Path
    lines: Mapping[str, int]

    def check_keys(self, where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                dotted = f"{where}.{key}" if where else key
                near = nearest(key, known, cutoff=0.5)
                meant = f"did you mean {near[0]}? " if near else ""
                raise self.wrong(
                    dotted, f"{key!r} is not a setting", f"{meant}known here: {', '.join(known)}"
                )

    def table(self, where: str, value: Any) -> Mapping[str, Any]:
        table: Mapping[str, Any] = self.value(where, value, dict, "a table")
        return table

    def value(self, where: str, value: Any, kind: type[T], name: str) -> T:
        if not isinstance(value, kind):
            raise self.wrong(where, f"{where} must be {name}", f"it is {value!r}")
        return value

    def text(self, where: str, value: Any) -> str:
        text = self.value(where, value, str, "a text")
        if not text or "\0" in text:
            raise self.wrong(where, f"{where} is empty or holds a NUL byte", "leave it away")
        return text

    def switch(self, where: str, value: Any) -> bool:
        return self.value(where, value, bool, "true or false")

    def choice(self, where: str, value: Any, known: tuple[str, ...]) -> str:
        text = self.text(where, value)
        if text not in known:
            raise self.wrong(where, f"{where} cannot be {text!r}", f"one of {', '.join(known)}")
        return text

    def launcher(self, where: str, value: Any) -> Launcher:
        return Launcher(self.choice(where, value, (Launcher.SETSID, Launcher.TMUX)))

    def duration(self, where: str, value: Any) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LONGEST:
            return float(value)
        seconds = parse_duration(value) if isinstance(value, str) else None
        if seconds is None:
            raise self.wrong(where, f"{where} is no time: {value!r}", 'write 90, "90s", "5m", "2h"')
        return seconds

    def directory(self, where: str, value: Any) -> str:
        try:
            return check_container_path(where, self.text(where, value))
        except UsageError as error:
            raise self.wrong(where, error.what, error.advice) from error

    def file(self, where: str, value: Any) -> Path:
        # Relative to this file, never to the current directory.
        try:
            return self.path.absolute().parent / Path(self.text(where, value)).expanduser()
        except RuntimeError as error:  # ~NAME, and nobody has that name
            raise self.wrong(where, f"{where}: {error}", "write the whole path") from error

    def texts(self, where: str, value: Any) -> tuple[str, ...]:
        return tuple(self.text(where, word) for word in self.value(where, value, list, "a list"))

    def number_of_lines(self, where: str, value: Any) -> str:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return str(value)
        text = self.text(where, value)
        if text != "all" and not re.fullmatch(r"[+]?[0-9]{1,12}", text):
            raise self.wrong(where, f"{where} cannot be {text!r}", 'write 10, "+10" or "all"')
        return text

    def environment(self, where: str, value: Any) -> tuple[tuple[str, str | None], ...]:
        pairs: list[tuple[str, str | None]]
        if isinstance(value, list):
            pairs = [self.pair(where, word) for word in value]
        else:
            table = self.value(where, value, dict, 'a table, or a list of "KEY" or "KEY=VALUE"')
            pairs = [(name, self.unseen(f"{where}.{name}", text)) for name, text in table.items()]
        for name, _text in pairs:
            try:
                check_environment_name(name)
            except UsageError as error:
                raise self.wrong(f"{where}.{name}", error.what, error.advice) from error
        return tuple(pairs)

    def unseen(self, where: str, value: Any) -> str:
        """A text that may be a secret."""
        if not isinstance(value, str):
            raise self.wrong(where, f"{where} must be a text", "in quotes, numbers too")
        return value

    def pair(self, where: str, word: Any) -> tuple[str, str | None]:
        name, equals, text = self.unseen(where, word).partition("=")
        return name, text if equals else None

    def wrong(self, where: str, what: str, advice: str) -> ClientError:
        near = (where, where.rpartition(".")[0])
        line = next((self.lines[name] for name in near if name in self.lines), None) or next(
            (number for name, number in self.lines.items() if name.startswith(f"{where}.")), None
        )
        place = f"{self.path}, line {line}" if line else str(self.path)
        return ClientError(f"{place}: {what}", advice=advice)
