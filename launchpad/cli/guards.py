"""Words that only a shell would understand, caught before anything is started. Pure.

A command is an argument vector: ``FOO=1``, ``cd`` or ``a && b`` as its first word would be the
name of a program that does not exist. The message shows the option that was meant.
"""

import re

from launchpad.command import Argv
from launchpad.errors import UsageError

_ASSIGNMENT = r"([A-Za-z_][A-Za-z0-9_]*)\+?="

# Builtins and keywords for which Debian and busybox have no program of that name.
_SHELL_WORDS = frozenset(
    [
        ".",
        ":",
        "alias",
        "bg",
        "break",
        "builtin",
        "case",
        "cd",
        "command",
        "continue",
        "declare",
        "dirs",
        "do",
        "done",
        "elif",
        "else",
        "esac",
        "eval",
        "exec",
        "exit",
        "export",
        "fg",
        "fi",
        "for",
        "function",
        "hash",
        "if",
        "jobs",
        "let",
        "local",
        "popd",
        "pushd",
        "read",
        "readonly",
        "return",
        "select",
        "set",
        "shift",
        "shopt",
        "source",
        "then",
        "trap",
        "type",
        "typeset",
        "ulimit",
        "umask",
        "unalias",
        "unset",
        "until",
        "wait",
        "while",
        "{",
        "}",
        "(",
        ")",
        "!",
        "[[",
        "((",
        "&&",
        "||",
        ";",
        "|",
        "&",
    ]
)

# What makes one word a line of shell, if it is where a program's name belongs.
_SYNTAX = r"&&|\|\||[;|<>`\n&]|\$[({A-Za-z_]|^~(?:/|$)|^[({]"


def check_command(command: Argv, target: str) -> None:
    """Raise :class:`UsageError` where the first word is shell, not a program."""
    first, rest = command.words[0], command.words[1:]
    if re.match(_ASSIGNMENT, first) and not re.search(r"\s", first):
        raise _assignment(command, target)
    if first == "cd" and rest:
        raise _cd(command, target)
    if first in {"source", "."} and rest:
        raise _source(command, target)
    if first in _SHELL_WORDS:
        raise UsageError(
            f"{first!r} is a word of the shell, not a program",
            advice=f"a line for a shell: {_with_shell(_plain(command.words), target)}",
        )
    if re.search(_SYNTAX, first):
        raise UsageError(
            f"{first!r} is a line for a shell, not the name of a program",
            advice=f"launchpad run {_word(target)} -c {_shell_argument(command)}{_conda(first)}"
            f"\nor, if its name really is that: -- env {_word(first)}",
        )
    if re.search(r"\s", first) and (not rest or re.match(_ASSIGNMENT, first)):
        raise _blanks(command, target)


def check_environment_word(word: str) -> None:
    """Raise :class:`UsageError` for a word of ``-e`` that was split or joined by mistake."""
    if not word or word.startswith("="):
        raise UsageError(f"-e {word!r}: the name is missing", advice="-e KEY=VALUE, or -e KEY")


def _assignment(command: Argv, target: str) -> UsageError:
    options, words = [], list(command.words)
    while words and re.match(_ASSIGNMENT, words[0]):
        options.append(f"-e {_word(words.pop(0))}")
    return UsageError(
        f"{command.words[0].partition('=')[0]}=… is shell: a program of that name does not exist",
        advice=f"launchpad run {' '.join(options)} {_word(target)} -- {_plain(words) or 'COMMAND'}",
    )


def _cd(command: Argv, target: str) -> UsageError:
    directory, rest = command.words[1], command.words[2:]
    if rest[:1] in {("&&",), (";",)}:
        rest = rest[1:]
    return UsageError(
        "cd is a word of the shell, not a program",
        advice=f"launchpad run {_word(target)} -C {_word(directory)}"
        f" -- {_plain(rest) or 'COMMAND'}",
    )


def _source(command: Argv, target: str) -> UsageError:
    script = command.words[1]
    if venv := re.fullmatch(r"(.*)/bin/activate", script):
        advice = f"name the program of that environment: -- {_word(venv[1])}/bin/python SCRIPT"
    else:
        advice = f"launchpad run {_word(target)} -c {_word(f'. {_word(script)} && COMMAND')}"
    return UsageError(f"{command.words[0]} is a word of the shell, not a program", advice=advice)


def _blanks(command: Argv, target: str) -> UsageError:
    first = command.words[0]
    if re.match(_ASSIGNMENT, first):
        return _assignment(Argv((*first.split(), *command.words[1:])), target)
    return UsageError(
        f"{first!r} is one word: a program of that name would be looked for",
        advice=(
            f"its words apart: launchpad run {_word(target)} -- {first}\n"
            f"or a line for the container's shell: launchpad run {_word(target)}"
            f" -c {_shell_argument(command)}{_conda(first)}\n"
            f"or, if its name really is that: -- env {_word(first)}"
        ),
    )


def _conda(text: str) -> str:
    match = re.search(r"\b(?:conda|mamba) activate (\S+)", text)
    if match is None:
        return ""
    return (
        "\nconda's set-up is for interactive shells only; write:"
        f" -- /opt/conda/bin/conda run --no-capture-output -n {match[1].rstrip(';&')} COMMAND"
    )


def _shell_argument(command: Argv) -> str:
    """The argument of -c: the line itself if it came as one word, else the words as they were."""
    if len(command.words) == 1:
        return _quoted(command.words[0])
    return _quoted(" ".join((command.words[0], _plain(command.words[1:]))))


def _with_shell(line: str, target: str) -> str:
    return f"launchpad run {_word(target)} -c {_quoted(line)}"


def _word(text: str) -> str:
    from launchpad.cli.common import join_words

    return join_words([text])


def _quoted(text: str) -> str:
    word = _word(text)
    return word if word.startswith("'") else f"'{word}'"


def _plain(words: tuple[str, ...] | list[str]) -> str:
    from launchpad.cli.common import join_words

    return join_words(words)
