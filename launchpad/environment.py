"""The environment that a job is given: ``-e``, ``--env-file``, the configuration.

Values become :class:`~launchpad.command.Secret` where they are read, whatever they are: nobody
can tell a token from a learning rate.
"""

import io
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from launchpad.command import Secret, to_text
from launchpad.errors import UsageError
from launchpad.job import check_environment_name

Pairs = tuple[tuple[str, Secret], ...]

_NEWLINE = re.compile(r"\r\n|\n|\r")


def callers_environment() -> dict[str, str]:
    """The environment of this process, whatever locale Python decoded it with."""
    return {to_text(name): to_text(value) for name, value in os.environb.items()}


def from_word(word: str, caller: Mapping[str, str]) -> tuple[str, Secret]:
    """What ``-e KEY=VALUE`` or ``-e KEY`` (the caller's own value) sets.

    Raises :class:`UsageError` for a name that cannot be exported, or that the caller has not.
    """
    name, equals, value = word.partition("=")
    return name, _value(name, value if equals else None, caller, f"-e {name}")


def from_pairs(
    pairs: Iterable[tuple[str, str | None]], caller: Mapping[str, str], origin: str
) -> Iterator[tuple[str, Secret]]:
    """The variables that pairs of a name and a value set; None: the caller's own value."""
    for name, value in pairs:
        yield name, _value(name, value, caller, f"{name} in {origin}")


def from_file(path: Path, caller: Mapping[str, str]) -> Iterator[tuple[str, Secret]]:
    """What a file sets, as python-dotenv reads it: ``KEY=VALUE`` lines, quotes, ``export``, ….

    ``KEY`` alone is the caller's own value. ``$`` in a value is a dollar: nothing is expanded.
    Raises :class:`UsageError` with the line that cannot be read; a file that is half understood
    would start a job with half its settings.
    """
    try:
        text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise UsageError(
            f"--env-file {path}: {error.strerror}", advice="KEY=VALUE lines, dotenv syntax"
        ) from error
    # Late: few calls read such a file.
    from dotenv.parser import parse_stream

    for binding in parse_stream(io.StringIO(text, newline="")):
        written = binding.original
        # Blanks in front of it are counted as part of it.
        above = written.string[: len(written.string) - len(written.string.lstrip())]
        place = f"--env-file {path}, line {written.line + len(_NEWLINE.findall(above))}"
        if binding.error:
            raise UsageError(
                f"{place}: cannot be read", advice="write KEY=VALUE, KEY='VALUE', or KEY alone"
            )
        if binding.key is None:  # a comment, or the end
            continue
        try:
            yield binding.key, _value(binding.key, binding.value, caller, place)
        except UsageError as error:
            raise UsageError(f"{place}: {error.what}", advice=error.advice) from error


def merge(pairs: Iterable[tuple[str, Secret]]) -> Pairs:
    """The last value of each name counts."""
    return tuple(dict(pairs).items())


def _value(name: str, value: str | None, caller: Mapping[str, str], origin: str) -> Secret:
    check_environment_name(name)
    if value is None:
        if name not in caller:
            raise UsageError(
                f"{origin}: {name} is not in your environment",
                advice=f"export {name}=…, or give a value: -e {name}=VALUE",
            )
        value = caller[name]
    if "\0" in value:
        raise UsageError(f"{origin}: a value cannot hold a NUL byte")
    return Secret(value)
