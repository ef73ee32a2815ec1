"""What of a directory is left behind when it is pushed: gitignore(5), as git itself reads it.

pathspec does the matching, and is loaded only where there is a pattern to match.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from launchpad.command import to_text
from launchpad.errors import UsageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_GITIGNORE = ".gitignore"


class Rules:
    """Patterns and the directory that they are relative to.

    ``below``: where the root of the transfer lies below that directory, "" or "a/b/"; ``above``:
    where that directory lies below the root. One of the two is always empty.
    """

    def __init__(self, spec: "GitIgnoreSpec", *, below: str = "", above: str = "") -> None:
        self._spec = spec
        self._below = below
        self._above = above

    def verdict(self, path: str) -> bool | None:
        """True: ignored; False: wanted after all (``!``); None: no pattern says anything.

        ``path`` is relative to the root of the transfer; a directory ends with a slash.
        """
        return self._spec.check_file(self._below + path.removeprefix(self._above)).include


class Ignoring:
    """Decides about every path of a tree, asked from the root downwards.

    ``excludes``: patterns of the command line, relative to ``root``; they count more than any file.
    ``gitignore``: also heed .gitignore files, those above ``root`` in its repository included, and
    leave .git behind. Raises :class:`UsageError` for a pattern that is none.
    """

    def __init__(self, root: Path, excludes: Sequence[str], *, gitignore: bool) -> None:
        self._root = root
        self._gitignore = gitignore
        self._excludes = _exclude_rules(excludes)
        self._above = _rules_above(root) if gitignore else []
        # Rules of the directories on the way to where we are, with their depth.
        self._on_the_way: list[tuple[int, Rules]] = []

    def enter(self, parts: Sequence[bytes], names: Iterable[bytes]) -> None:
        """Go into a directory (its path below the root) that has entries of these names."""
        depth = len(parts)
        while self._on_the_way and self._on_the_way[-1][0] >= depth:
            self._on_the_way.pop()
        if self._gitignore and _GITIGNORE.encode() in names:
            place = to_text(b"/".join(parts))
            lines = _read_lines(Path(self._root, place, _GITIGNORE))
            rules = Rules(_spec(lines), above=f"{place}/" if place else "")
            self._on_the_way.append((depth, rules))

    def ignores(self, parts: Sequence[bytes], *, directory: bool) -> bool:
        """Whether to leave this path behind, and all that is in it."""
        if self._gitignore and parts[-1] == b".git":
            verdict = self._excludes.verdict(_path(parts, directory)) if self._excludes else None
            return verdict is not False
        path = ""
        nearest_first = [rules for _depth, rules in reversed(self._on_the_way)]
        for rules in (self._excludes, *nearest_first, *self._above):
            if rules is None:
                continue
            path = path or _path(parts, directory)
            verdict = rules.verdict(path)
            if verdict is not None:
                return verdict
        return False


def _path(parts: Sequence[bytes], directory: bool) -> str:  # noqa: FBT001
    return to_text(b"/".join(parts)) + ("/" if directory else "")


def exclude_spec(patterns: Sequence[str]) -> "GitIgnoreSpec | None":
    """The patterns of ``--exclude``; None where there are none. Raises :class:`UsageError`."""
    if not patterns:
        return None
    from pathspec import GitIgnoreSpec

    for pattern in patterns:
        try:
            compiled = GitIgnoreSpec.from_lines([pattern], backend="simple").patterns
        except ValueError:
            compiled = []
        if not compiled or compiled[0].include is None:
            raise UsageError(
                f"--exclude {pattern!r} is no pattern",
                advice="a name, or a pattern as in .gitignore: '*.pt', 'data/', '/top/only'",
            )
    return GitIgnoreSpec.from_lines(patterns, backend="simple")


def pushed_down(patterns: Sequence[str]) -> list[str]:
    """Those patterns that every tar reads as gitignore(5) does, so that it need not send the files.

    A name without any wildcard, or the end of a name; all the others are heeded here, after the
    transfer. None at all where a pattern takes something back in.
    """
    if any(pattern.startswith("!") for pattern in patterns):
        return []
    return [each for each in patterns if re.fullmatch(r"\*?[A-Za-z0-9_.+-]+", each)]


def _exclude_rules(patterns: Sequence[str]) -> Rules | None:
    spec = exclude_spec(patterns)
    return None if spec is None else Rules(spec)


def _spec(lines: Iterable[str]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    valid = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line], backend="simple")
        except ValueError:
            continue  # as git does
        valid.append(line)
    return GitIgnoreSpec.from_lines(valid, backend="simple")


def _read_lines(path: Path) -> list[str]:
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


def _rules_above(root: Path) -> list[Rules]:
    """The rules of the repository that ``root`` lies in, nearest first."""
    places = [root, *root.parents]
    top = next((place for place in places if (place / ".git").exists()), None)
    if top is None:
        return []
    found = [(place, place / _GITIGNORE) for place in places[1 : places.index(top) + 1]]
    found.append((top, top / ".git" / "info" / "exclude"))
    rules = []
    for place, file in found:
        lines = _read_lines(file)
        if lines:
            below = root.relative_to(place).as_posix()
            rules.append(Rules(_spec(lines), below="" if below == "." else f"{below}/"))
    if any(each.verdict("") for each in rules):
        # The directory itself is ignored by its repository; who names it wants what is in it.
        return []
    return rules
