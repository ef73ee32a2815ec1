"""Words, lines and secrets: what they refuse, and what they never show."""

from __future__ import annotations

import os
import subprocess

import pytest

from launchpad.command import (
    LONGEST_STRING,
    Argv,
    Secret,
    ShellLine,
    ends_bare,
    from_command_line,
    host_line,
    nested_word,
    pasted_word,
    quote_word,
    quote_words,
    to_bytes,
)
from launchpad.errors import UsageError
from launchpad.job import JobSpec, new_job_id


@pytest.mark.parametrize(
    "words", [(), ("",), ("a", "b\0c"), ("a", "x" * (LONGEST_STRING + 1)), ("é" * 65_536,)]
)
def test_what_no_program_can_be_given_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as refused:
        Argv(words)
    assert len(refused.value.what) < 200


@pytest.mark.parametrize("text", ["", " \n", "a\0b", "x" * (LONGEST_STRING + 1)])
def test_what_no_shell_can_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        ShellLine(text)


def test_the_longest_argument_that_linux_takes_is_taken() -> None:
    longest = "x" * LONGEST_STRING
    assert Argv(("true", longest)).words[1] == longest
    # The kernel is the judge.
    os.waitpid(os.posix_spawn("/bin/true", ["true", longest], {}), 0)
    with pytest.raises(OSError, match="too long"):
        os.posix_spawn("/bin/true", ["true", longest + "x"], {})


def test_an_environment_variable_has_the_same_limit_name_included() -> None:
    def spec(size: int) -> JobSpec:
        value = Secret("x" * size)
        return JobSpec(new_job_id("x"), Argv(("true",)), environment=(("NAME", value),))

    spec(LONGEST_STRING - len("NAME="))
    with pytest.raises(UsageError, match="NAME is too long"):
        spec(LONGEST_STRING - len("NAME=") + 1)


def test_a_secret_is_not_shown_by_accident() -> None:
    secret = Secret("s3cr3t")
    assert "s3cr3t" not in f"{secret} {secret!r} {secret!s} {secret:>20} {[secret]}"
    assert secret.reveal() == "s3cr3t"
    assert secret == Secret("s3cr3t")
    assert secret != "s3cr3t"
    assert hash(secret) == hash(Secret("s3cr3t"))


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("", b"''"),
        ("plain-1.txt", b"plain-1.txt"),
        ("it's", b"'it'\\''s'"),
        ("a b", b"'a b'"),
        ("\n", b"'\n'"),
        ("é", "'é'".encode()),
        (b"\xff", b"'\xff'"),
        ("~", b"'~'"),
    ],
)
def test_one_form_of_each_word(word: str | bytes, quoted: bytes) -> None:
    assert quote_word(word) == quoted


def test_words_stand_side_by_side() -> None:
    assert quote_words(["a", "", "b c"]) == b"a '' 'b c'"
    assert quote_words([]) == b""


def test_a_host_line_takes_no_word_that_some_login_shell_would_change() -> None:
    assert host_line(["a", "=b", "c d", ""]) == b"a '=b' 'c d' ''"
    for word in ("it's", "a\\b", "a!", "a\nb", "é", "a\0b"):
        with pytest.raises(ValueError, match="not safe"):
            host_line(["echo", word])


def test_bytes_of_the_command_line_survive_any_locale() -> None:
    word = os.fsdecode(b"caf\xc3\xa9 \xff")
    assert to_bytes(from_command_line(word)) == b"caf\xc3\xa9 \xff"


TOO_LONG = "is too long: 131072 bytes, and Linux gives a program 131071 at most"


@pytest.mark.parametrize(
    ("words", "what", "advice"),
    [
        ((), "no command given", "launchpad run TARGET -- COMMAND [ARG...]"),
        (
            ("",),
            "the command's first word is empty: no program has that name",
            "is a shell variable in front of it unset?",
        ),
        (("a", "b\0c"), "an argument holds a NUL byte, which no program can receive", ""),
        (
            ("a", "x" * (LONGEST_STRING + 1)),
            f"argument 1 of the command {TOO_LONG}",
            "put it into a file in the container, and give the program the file's path",
        ),
    ],
)
def test_why_a_command_is_refused(words: tuple[str, ...], what: str, advice: str) -> None:
    with pytest.raises(UsageError) as refused:
        Argv(words)
    assert (refused.value.what, refused.value.advice) == (what, advice)


@pytest.mark.parametrize(
    ("text", "what", "advice"),
    [
        (" \n", "the shell line is empty", "launchpad run TARGET -c 'COMMAND'"),
        ("a\0b", "the shell line holds a NUL byte, which no shell can read", ""),
        (
            "x" * (LONGEST_STRING + 1),
            f"the shell line {TOO_LONG}",
            "put it into a file in the container, and give the program the file's path",
        ),
    ],
)
def test_why_a_line_is_refused(text: str, what: str, advice: str) -> None:
    with pytest.raises(UsageError) as refused:
        ShellLine(text)
    assert (refused.value.what, refused.value.advice) == (what, advice)
    assert ShellLine("x" * LONGEST_STRING).text


def test_how_a_secret_shows() -> None:
    secret = Secret("s3cr3t")
    assert (repr(secret), str(secret), f"{secret:x}") == ("Secret(…)",) * 3
    assert hash(secret) != hash("s3cr3t")
    assert hash(secret) != hash(Secret("other"))
    assert len({secret, Secret("s3cr3t"), Secret("other")}) == 2


@pytest.mark.parametrize(
    ("word", "pasted"),
    [
        ("plain-1.txt", "plain-1.txt"),
        ("", "''"),
        ("=b", "'=b'"),
        ("a b", "'a b'"),
        ("it's", "'it'\"'\"'s'"),
        ("é", "'é'"),
        ("X!", "\"$(printf 'X\\041')\""),
        ("a!", "\"$(printf 'a\\041')\""),
        ("-a!-", "\"$(printf '\\055a\\041-')\""),
        ("50%!'", "\"$(printf '50\\045\\041\\047')\""),
        ("a\\b", "\"$(printf 'a\\134b')\""),
        ("a\n", "\"$(printf 'a\\012.')\""),
        ("a\nb", "\"$(printf 'a\\012b')\""),
        ("\udcff", "\"$(printf '\\377')\""),
        ("é\x07", "\"$(printf 'é\\007')\""),
        ("\u202e", "\"$(printf '\\342\\200\\256')\""),
    ],
)
def test_a_word_to_paste(word: str, pasted: str) -> None:
    assert pasted_word(word) == pasted
    assert ends_bare(word) is not word.endswith("\n")
    # sh is the judge; the caller takes off the last full stop.
    shown = subprocess.run(
        ["sh", "-c", f"printf '%s' {pasted}"], capture_output=True, check=True
    ).stdout
    assert shown == to_bytes(word if ends_bare(word) else f"{word}.")


def test_a_word_inside_a_word() -> None:
    assert nested_word(nested_word("it's")) == "''\"'\"'it'\"'\"'\"'\"'\"'\"'\"'\"'s'\"'\"''"
    assert nested_word("a=b") == "a=b"
