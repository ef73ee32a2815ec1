"""Where a job's variables come from, and that their values stay hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from launchpad.command import Secret
from launchpad.environment import callers_environment, from_file, from_pairs, from_word, merge
from launchpad.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

CALLER = {"TOKEN": "s3cr3t", "EMPTY": ""}


def test_a_value_or_the_callers_own() -> None:
    assert from_word("A=b=c", CALLER) == ("A", Secret("b=c"))
    assert from_word("A=", CALLER) == ("A", Secret(""))
    assert from_word("TOKEN", CALLER) == ("TOKEN", Secret("s3cr3t"))
    assert from_word("EMPTY", CALLER) == ("EMPTY", Secret(""))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("MISSING", "MISSING is not in your environment"),
        ("A-B=1", "no POSIX shell can export it"),
        ("1A=1", "no POSIX shell can export it"),
        ("=1", "no POSIX shell can export it"),
        ("A=x\0y", "NUL"),
    ],
)
def test_what_cannot_be_set_is_refused(word: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        from_word(word, CALLER)


def test_the_last_value_counts() -> None:
    pairs = from_pairs([("A", "1"), ("B", "2"), ("A", "3"), ("TOKEN", None)], CALLER, "x")
    assert merge(pairs) == (("A", Secret("3")), ("B", Secret("2")), ("TOKEN", Secret("s3cr3t")))


def test_a_file_in_dotenv_syntax(tmp_path: Path) -> None:
    file = tmp_path / "job.env"
    file.write_bytes(
        b"\xef\xbb\xbf# comment\n"
        b"PLAIN=value # comment\n"
        b"export EXPORTED=yes\r\n"
        b"SINGLE='a $HOME ${HOME} \"b\" # c'\n"
        b'DOUBLE="line 1\\nline 2"\n'
        b"MANY='line 1\nline 2'\n"
        b"DOLLAR=pa$$word${X}\n"
        b"BYTES='\xff\xe9'\n"
        b"BLANK=\n"
        b"\n"
        b"QUOTE=it's\n"
        b'BACKSLASH="a\\$b \\q"\n'
        b"HASH=a#b\n"
        b"TOKEN\n"
    )
    values = {name: value.reveal() for name, value in from_file(file, CALLER)}
    assert values == {
        "PLAIN": "value",
        "EXPORTED": "yes",
        "SINGLE": 'a $HOME ${HOME} "b" # c',
        "DOUBLE": "line 1\nline 2",
        "MANY": "line 1\nline 2",
        "DOLLAR": "pa$$word${X}",
        "BYTES": "\udcff\udce9",
        "BLANK": "",
        "QUOTE": "it's",
        "BACKSLASH": r"a\$b \q",
        "HASH": "a#b",
        "TOKEN": "s3cr3t",
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A=1\nB='unfinished\n", 2),
        ('\r\n# a comment\r\n\r\nB="x" y\r\n', 4),
        ("# one\n\n  \nA B=1\n", 4),
        ("A=1\n\nA-B=2\n", 3),
        ("MISSING\n", 1),
        ("=x\n", 1),
    ],
)
def test_a_file_that_cannot_be_read_whole_is_refused_with_the_line(
    tmp_path: Path, text: str, line: int
) -> None:
    file = tmp_path / "job.env"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        list(from_file(file, CALLER))
    assert f"--env-file {file}, line {line}: " in caught.value.what
    assert "s3cr3t" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        list(from_file(tmp_path / "job.env", CALLER))


def test_the_callers_environment_keeps_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LP_BYTES", "caf\udce9")
    assert callers_environment()["LP_BYTES"] == "caf\udce9"


def test_values_show_nowhere() -> None:
    pair = from_word("TOKEN", CALLER)
    assert "s3cr3t" not in f"{pair!r} {pair[1]!s} {pair[1]:>9}"
