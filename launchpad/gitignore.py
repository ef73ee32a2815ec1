r"""Patterns of gitignore(5), as git matches them. Pure.

A path is matched as it stands, and whether it is a directory is known: whoever walks a tree leaves
out what is below an ignored directory by never going there. (Libraries that answer for files alone
let a pattern for a directory speak for all below it; then ``data/**`` with ``!data/keep``, or
``!*/``, come out otherwise than in git.)
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line. ``negated``: it takes back in. ``whole``: for the path, not only its last name."""

    regex: re.Pattern[str]
    negated: bool
    directories_only: bool
    whole: bool


class Patterns:
    """Lines of which the last one that matches decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        compiled = (compile_line(line) for line in lines)
        self._latest_first = [pattern for pattern in compiled if pattern is not None][::-1]

    def verdict(self, path: str, *, directory: bool) -> bool | None:
        """True: ignored; False: wanted after all; None: no line says anything about it.

        ``path`` is relative to where the lines stand, without a slash at its end.
        """
        name = path.rpartition("/")[2]
        for pattern in self._latest_first:
            if pattern.directories_only and not directory:
                continue
            if pattern.regex.fullmatch(path if pattern.whole else name):
                return not pattern.negated
        return None


def compile_line(line: str) -> Pattern | None:
    """What a line means; None for a comment, and for what can never match."""
    text = _trimmed(line)
    if text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text.removeprefix("!") if negated else text
    directories_only = text.endswith("/")
    text = text.removesuffix("/")
    whole = "/" in text
    text = text.removeprefix("/")
    expression = _translate(text) if text else None
    if expression is None:
        return None
    return Pattern(re.compile(expression, re.DOTALL), negated, directories_only, whole)


def _trimmed(line: str) -> str:
    """Without blanks at its end, unless a backslash keeps them."""
    end = len(line)
    while end and line[end - 1] == " ":
        backslashes = len(line[: end - 1]) - len(line[: end - 1].rstrip("\\"))
        if backslashes % 2:
            break
        end -= 1
    return line[:end]


def _translate(pattern: str) -> str | None:
    """The regular expression for a pattern of wildmatch; None for one that never matches."""
    parts = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "*":
            part, at = _stars(pattern, at)
        elif character == "?":
            part, at = "[^/]", at + 1
        elif character == "[":
            bracket = _bracket(pattern, at + 1)
            if bracket is None:
                return None
            part, at = bracket
        elif character == "\\":
            if at + 1 == len(pattern):
                return None
            part, at = re.escape(pattern[at + 1]), at + 2
        else:
            part, at = re.escape(character), at + 1
        parts.append(part)
    return "".join(parts)


def _stars(pattern: str, at: int) -> tuple[str, int]:
    """One star stays within a name; two between slashes stand for any number of directories."""
    end = at
    while end < len(pattern) and pattern[end] == "*":
        end += 1
    alone = (at == 0 or pattern[at - 1] == "/") and (end == len(pattern) or pattern[end] == "/")
    if end - at == 1 or not alone:
        return "[^/]*", end
    if end == len(pattern):
        return ".*", end
    return "(?:.*/)?", end + 1


def _bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """The class behind a ``[``, and where it ends; None where it does not."""
    negated = pattern[at : at + 1] in {"!", "^"}
    start = at = at + 1 if negated else at
    members: list[str] = []
    while True:
        if at >= len(pattern):
            return None
        character = pattern[at]
        if character == "]" and at > start:
            break
        if character == "[" and pattern[at + 1 : at + 2] == ":":
            name, closed, _rest = pattern[at + 2 :].partition(":]")
            if not closed or name not in _POSIX_CLASSES:
                return None
            members.append(_POSIX_CLASSES[name])
            at += len(name) + 4
            continue
        first, at = _member(pattern, at)
        members.append(re.escape(first))
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in {"", "]"}:
            last, at = _member(pattern, at + 1)
            # The wrong way round it is not a range, and its first end still counts.
            if first <= last:
                members.append(f"{re.escape(first)}-{re.escape(last)}")
    inside = "".join(members)
    if negated:
        return f"[^/{inside}]", at + 1
    return (f"(?!/)[{inside}]" if inside else "(?!)"), at + 1


def _member(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] == "\\" and at + 1 < len(pattern):
        return pattern[at + 1], at + 2
    return pattern[at], at + 1
