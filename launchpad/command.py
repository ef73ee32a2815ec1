"""Words, lines and secrets: the only quoting in the project.

User text crosses a shell in exactly one form: as a word that :func:`quote_word` made.
The types keep the three kinds of text apart: an :class:`Argv` is a list of arguments that
no shell may interpret, a :class:`ShellLine` is text that one shell is *meant* to interpret,
a :class:`Secret` is a value that must never be shown.

Text is held as ``str`` in which every byte that is not UTF-8 is a lone surrogate
(PEP 383, ``surrogateescape``), whatever the locale of the caller is.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from launchpad.errors import UsageError

_SAFE_WORD = re.compile(rb"[A-Za-z0-9_@%+=:,./-]+")

# What a word of the host's command line may hold so that bash, dash, zsh, fish and tcsh all read
# it the same inside single quotes: fish unescapes \\ and \' there, tcsh acts on ! and newline.
_FOREIGN_SHELL_HAZARD = re.compile(rb"['\\!\n\r\x00]")


# Bytes of one argument or environment variable: 32 pages of 4 KiB with the NUL behind it
# (execve(2), MAX_ARG_STRLEN).
LONGEST_STRING = 131_071


def check_length(what: str, size: int) -> None:
    """Raise :class:`UsageError` for a string that no program can be given, before it is sent."""
    if size > LONGEST_STRING:
        raise UsageError(
            f"{what} is too long: {size} bytes, and Linux gives a program {LONGEST_STRING} at most",
            advice="put it into a file in the container, and give the program the file's path",
        )


def to_bytes(text: str) -> bytes:
    """The bytes that ``text`` stands for (UTF-8, lone surrogates are raw bytes)."""
    return text.encode("utf-8", "surrogateescape")


def to_text(data: bytes) -> str:
    """The text form of ``data``; :func:`to_bytes` gives back exactly the same bytes."""
    return data.decode("utf-8", "surrogateescape")


def from_command_line(argument: str) -> str:
    """The text form of an entry of ``sys.argv``, whatever locale Python decoded it with."""
    return to_text(os.fsencode(argument))


@dataclass(frozen=True, slots=True)
class Argv:
    """The argument vector of a program, program first; reaches it byte for byte.

    Raises :class:`UsageError` where an argument holds a NUL byte (execve(2) cannot carry one)
    or where there is no program.
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.words:
            raise UsageError("no command given", advice="launchpad run TARGET -- COMMAND [ARG...]")
        if not self.words[0]:
            raise UsageError(
                "the command's first word is empty: no program has that name",
                advice="is a shell variable in front of it unset?",
            )
        if any("\0" in word for word in self.words):
            raise UsageError("an argument holds a NUL byte, which no program can receive")
        for number, word in enumerate(self.words):
            check_length(f"argument {number} of the command", len(to_bytes(word)))


@dataclass(frozen=True, slots=True)
class ShellLine:
    """Text that the container's shell reads, once, as ``bash -c`` would."""

    text: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise UsageError("the shell line is empty", advice="launchpad run TARGET -c 'COMMAND'")
        if "\0" in self.text:
            raise UsageError("the shell line holds a NUL byte, which no shell can read")
        check_length("the shell line", len(to_bytes(self.text)))


Command = Argv | ShellLine


class Secret:
    """A value that is sent, and never shown: not by repr, str, format or a traceback."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself; call it only where the bytes for stdin are built."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))


def quote_word(word: str | bytes) -> bytes:
    """One shell word that any POSIX shell reads back as exactly ``word`` (XCU 2.2.2).

    Correct under ``LC_ALL=C``; the result may hold newlines and bytes that are not UTF-8.
    """
    data = to_bytes(word) if isinstance(word, str) else word
    if _SAFE_WORD.fullmatch(data):
        return data
    return b"'" + data.replace(b"'", b"'\\''") + b"'"


def quote_words(words: Iterable[str | bytes]) -> bytes:
    """Words for ``eval "set -- …"``: the only thing that is ever evaluated."""
    return b" ".join(map(quote_word, words))


def host_line(words: Sequence[str]) -> bytes:
    """A simple command that bash, dash, zsh, fish and tcsh all read as ``words``.

    Only for words of our own making. Raises ``ValueError`` for a word that one of those
    shells would change, so that user text cannot get here by accident.
    """
    parts = []
    for word in words:
        data = to_bytes(word)
        if _FOREIGN_SHELL_HAZARD.search(data) or not data.isascii():
            raise ValueError(f"not safe in every login shell: {word!r}")
        plain = _SAFE_WORD.fullmatch(data) and not data.startswith(b"=")
        parts.append(data if plain else b"'" + data + b"'")
    return b" ".join(parts)


# Bytes that a person's terminal or some login shell would change even inside single quotes.
_PASTE_HAZARD = re.compile(rb"[\x00-\x1f\x7f\\!]")


def pasted_word(word: str) -> str:
    """One word of shell source to look at and to paste; every shell reads ``word`` back.

    Printable text on one line, whatever ``word`` holds: what is not printable comes from
    ``$(printf …)`` (POSIX sh). Such source survives being nested with :func:`nested_word`. A word
    that ends in newlines gets a last ``.`` that the caller has to take off: see :func:`ends_bare`.
    """
    data = to_bytes(word)
    if not _PASTE_HAZARD.search(data) and word.isprintable():
        return nested_word(word)
    text = "".join(
        character
        if character.isprintable() and character not in "\\!%'" and (at or character != "-")
        else "".join(f"\\{byte:03o}" for byte in to_bytes(character))
        for at, character in enumerate(word if ends_bare(word) else f"{word}.")
    )
    return f"\"$(printf '{text}')\""


def ends_bare(word: str) -> bool:
    """Whether ``$(…)`` keeps the end of ``word``: it takes newlines off (POSIX XCU 2.6.3)."""
    return not word.endswith("\n")


def nested_word(text: str) -> str:
    """Printable shell source as one word for another shell around it.

    A quote becomes ``'"'"'``, without a backslash: fish and tcsh read that right at any depth.
    """
    if _SAFE_WORD.fullmatch(to_bytes(text)) and not text.startswith("="):
        return text
    return "'" + text.replace("'", "'\"'\"'") + "'"
