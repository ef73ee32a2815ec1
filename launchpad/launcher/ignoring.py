"""What of a directory stays behind when it is copied: .gitignore files, and ``--exclude``."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from launchpad.command import to_text
from launchpad.errors import UsageError
from launchpad.gitignore import Patterns, compile_line

_GITIGNORE = ".gitignore"


class Rules:
    """Patterns and the directory that they are relative to.

    ``below``: where the root of the transfer lies below that directory, "" or "a/b/"; ``above``:
    where that directory lies below the root. One of the two is always empty.
    """

    def __init__(self, patterns: Patterns, *, below: str = "", above: str = "") -> None:
        self._patterns = patterns
        self._below = below
        self._above = above

    def verdict(self, path: str, *, directory: bool) -> bool | None:
        """As :meth:`Patterns.verdict`, for a path relative to the root of the transfer."""
        relative = self._below + path.removeprefix(self._above)
        return self._patterns.verdict(relative, directory=directory)


class Excludes:
    """The patterns of ``--exclude``, relative to the root of the transfer.

    Raises :class:`UsageError` for one that is none.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            if compile_line(pattern) is None:
                raise UsageError(
                    f"--exclude {pattern!r} is no pattern",
                    advice="a name, or a pattern as in .gitignore: '*.pt', 'data/', '/top/only'",
                )
        self._patterns = Patterns(patterns) if patterns else None
        self._words = patterns

    def verdict(self, parts: Sequence[bytes], *, directory: bool) -> bool | None:
        """As :meth:`Patterns.verdict`."""
        if self._patterns is None:
            return None
        return self._patterns.verdict(to_text(b"/".join(parts)), directory=directory)

    def ignores(self, parts: Sequence[bytes], *, directory: bool) -> bool:
        """Whether this path, or a directory on the way to it, is left out."""
        return self._patterns is not None and any(
            self.verdict(parts[:depth], directory=directory or depth < len(parts))
            for depth in range(1, len(parts) + 1)
        )

    def for_tar(self) -> list[str]:
        """Those patterns that every tar reads as git does, so that it need not send the files.

        A name without any wildcard, or the end of a name; all others are heeded here, after the
        transfer. None at all where a pattern takes something back in.
        """
        if any(pattern.startswith("!") for pattern in self._words):
            return []
        return [each for each in self._words if re.fullmatch(r"\*?[A-Za-z0-9_.+-]+", each)]


class Ignoring:
    """Decides about every path of a tree, asked from the root downwards.

    ``excludes`` count more than any file. ``gitignore``: also heed .gitignore files, those above
    ``root`` in its repository included, and leave .git behind.
    """

    def __init__(self, root: Path, excludes: Excludes, *, gitignore: bool) -> None:
        self._root = root
        self._gitignore = gitignore
        self._excludes = excludes
        self._above = _rules_above(root) if gitignore else []
        # Rules of the directories on the way to where we are, with their depth.
        self._on_the_way: list[tuple[int, Rules]] = []

    def enter(self, parts: Sequence[bytes], names: Iterable[bytes]) -> None:
        """Go into a directory (its path below the root) that has entries of these names."""
        depth = len(parts)
        self._back_to(depth)
        if self._gitignore and _GITIGNORE.encode() in names:
            place = to_text(b"/".join(parts))
            lines = _read_lines(Path(self._root, place, _GITIGNORE))
            rules = Rules(Patterns(lines), above=f"{place}/" if place else "")
            self._on_the_way.append((depth, rules))

    def ignores(self, parts: Sequence[bytes], *, directory: bool) -> bool:
        """Whether to leave this path behind, and all that is in it."""
        verdict = self._excludes.verdict(parts, directory=directory)
        if verdict is not None:
            return verdict
        if not self._gitignore:
            return False
        if parts[-1] == b".git":
            return True
        self._back_to(len(parts))
        path = to_text(b"/".join(parts))
        nearest_first = (rules for _depth, rules in reversed(self._on_the_way))
        for rules in (*nearest_first, *self._above):
            verdict = rules.verdict(path, directory=directory)
            if verdict is not None:
                return verdict
        return False

    def _back_to(self, depth: int) -> None:
        """Forget the rules of directories that are behind us."""
        while self._on_the_way and self._on_the_way[-1][0] >= depth:
            self._on_the_way.pop()


def _read_lines(path: Path) -> list[str]:
    try:
        text = to_text(path.read_bytes())
    except OSError:
        return []
    return [line.removesuffix("\r") for line in text.split("\n")]


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
        patterns, parts = Patterns(_read_lines(file)), root.relative_to(place).parts
        rules.append(Rules(patterns, below="".join(f"{part}/" for part in parts)))
        on_the_way = ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
        if any(patterns.verdict(path, directory=True) for path in on_the_way):
            # The directory itself is ignored by its repository; who names it wants what is in it.
            return []
    return rules
