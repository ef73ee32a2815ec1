"""The runner of the documentation itself: it must be able to fail."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from support.markdown import blocks
from support.pages import Page, Terminal, is_like, normal, screen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color"}
    with Terminal(environment, tmp_path) as made:
        yield made


def _page(directory: Path, text: str) -> Page:
    path = directory / "page.md"
    path.write_text(text)
    return Page(path)


def test_lines_are_compared_without_what_varies() -> None:
    assert normal("started train-k3f2ab on pve1:101   PID 4711   setsid   0.5 s") == normal(
        "started train-aaaaaa on pve1:101 PID 1 setsid 12 m 3 s"
    )
    assert normal("killed train-k3f2ab") != normal("ended train-k3f2ab")
    assert normal("root@10.1.2.3:22 at 12:30") == normal("root@192.168.11.12:2222 at 01:02")
    assert normal("412% 8.1G") == normal("3% 120M")


@pytest.mark.parametrize(
    ("expected", "printed", "like"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "…"], ["a", "b", "c"], True),
        (["…", "c"], ["a", "b", "c"], True),
        (["…", "c"], ["a", "b"], False),
        (["a … z"], ["a b c z"], True),
        (["a … z"], ["a b c"], False),
        (["a.c"], ["abc"], False),
        ([], ["a"], False),
    ],
)
def test_what_is_alike(expected: list[str], printed: list[str], like: bool) -> None:
    assert is_like(expected, printed) is like


def test_a_screen_is_what_is_left_in_the_end() -> None:
    assert screen("one\ntwo\r\x1b[2Kthree\n") == ["one", "three"]
    assert screen("a\nb\n\x1b[2A\x1b[2Kc\n\x1b[2Kd\n") == ["c", "d"]
    assert screen("\x1b[1;31mred\x1b[0m\n\n") == ["red"]


def test_commands_share_one_shell(tmp_path: Path, terminal: Terminal) -> None:
    page = _page(
        tmp_path,
        "# Page\n\n```console\n$ word=one\n$ cd /tmp\n```\n\nText.\n\n"
        '```console\n$ echo $word \\\n> "$PWD"\none /tmp\n$ false\n$ echo $?\n1\n$ cat\n```\n',
    )
    page.execute(terminal, tmp_path)
    assert page.report() == ""


def test_a_failure_is_one(tmp_path: Path, terminal: Terminal) -> None:
    with pytest.raises(AssertionError, match=r"page.md:2: false\nended with 1"):
        _page(tmp_path, "```console\n$ false\n```\n").execute(terminal, tmp_path)
    page = _page(tmp_path, "<!-- code: 1 -->\n```console\n$ true\n$ false\n```\n")
    page.execute(terminal, tmp_path)
    with pytest.raises(AssertionError, match="ended with 0"):
        _page(tmp_path, "<!-- code: 1 -->\n```console\n$ true\n```\n").execute(terminal, tmp_path)


def test_other_output_is_told_and_can_be_taken_over(tmp_path: Path, terminal: Terminal) -> None:
    page = _page(tmp_path, "```console\n$ echo a; echo b\nold\n$ echo c\nc\n```\n")
    page.execute(terminal, tmp_path)
    assert page.report().splitlines() == [
        f"{page.path}:2: $ echo a; echo b",
        "  page    | old",
        "  printed | a",
        "  printed | b",
    ]
    page.update()
    assert page.path.read_text() == "```console\n$ echo a; echo b\na\nb\n$ echo c\nc\n```\n"


def test_files_and_what_is_not_run(tmp_path: Path, terminal: Terminal) -> None:
    page = _page(
        tmp_path,
        "<!-- file: ~/proj/a.py -->\n```python\nprint(1)\n```\n"
        "<!-- not run: there is none here -->\n```console\n$ false\n```\n"
        "```console\n$ cat ~/proj/a.py\nprint(1)\n```\n",
    )
    page.execute(terminal, tmp_path)
    assert page.report() == ""
    assert [block.is_run for block in blocks(page.path)] == [False, False, True]


def test_a_command_that_hangs(terminal: Terminal) -> None:
    with pytest.raises(AssertionError, match=r"no end after 0.2 s: sleep 60"):
        terminal.run("sleep 60", patience=0.2)
