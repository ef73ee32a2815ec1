"""What ssh is asked before anything else is loaded: once, about the right host, or not at all."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from launchpad.ahead import look_ahead
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

ANSWER = "user ops\nhostname 10.0.0.1\nport 22\n"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which an ssh program of ours notes its words."""
    program, words = tmp_path / "bin/ssh", tmp_path / "words"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$*" >>{words}\n'
        f'case "$*" in *" -G "*) printf "{ANSWER}"; exit;; esac\n'
        "echo ssh: Could not resolve hostname pve1: no such name >&2; exit 255\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return words


@pytest.mark.parametrize(
    ("words", "question"),
    [
        (["run", "--confirm", "0", "pve1:101", "--", "true"], "-T -G -- pve1"),
        (["exec", "ops@pve1:101", "--", "x:100"], "-T -G -l ops -- pve1"),
        (["run", "-n", "a:b", "pve1:101", "-c", "true"], "-T -G -- pve1"),
    ],
)
def test_the_host_of_the_command_line_is_asked_about(
    asked: Path, words: list[str], question: str
) -> None:
    ahead = look_ahead(words, None)
    wait_until(lambda: asked.exists() and asked.read_text() == f"{question}\n")
    ahead.drop()


def test_the_answer_is_taken_once_by_whoever_wanted_it(asked: Path) -> None:
    ahead = look_ahead(["run", "pve1:101"], None)
    taken = ahead.take(("pve1", None, None, None))
    assert taken is not None
    assert taken.answer(10).user == "ops"
    assert ahead.take(("pve1", None, None, None)) is None
    assert asked.read_text().count("\n") == 1


def test_nobody_takes_the_answer_to_another_question(asked: Path, tmp_path: Path) -> None:
    ahead = look_ahead(["run", "pve1:101"], str(tmp_path / "config"))
    assert ahead.take(("pve1", None, None, None)) is None
    assert ahead.take(("pve2", None, None, tmp_path / "config")) is None
    assert ahead.take(("pve1", "ops", None, tmp_path / "config")) is None
    found = ahead.take(("pve1", None, None, tmp_path / "config"))
    assert found is not None
    found.cancel()


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["run", "-c", "true", "gpu"],
        ["run", "--", "pve1:101"],
        ["run", "local:101", "--", "true"],
        ["run", "-F", "own", "pve1:101", "--", "true"],
        ["run", "--ssh-config=own", "pve1:101", "--", "true"],
        ["run", "pve1:0101", "--", "true"],
        ["run", "-oProxyCommand=x:101"],
    ],
)
def test_nothing_is_asked_where_no_host_stands_there(asked: Path, words: list[str]) -> None:
    ahead = look_ahead(words, None)
    assert ahead.take(("pve1", None, None, None)) is None
    ahead.drop()
    assert not asked.exists()


def test_one_call_asks_once(asked: Path, tmp_path: Path) -> None:
    environment = {"PATH": f"{asked.parent}/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    words = ["run", "--transport", "openssh", "pve1:101", "--", "true"]
    subprocess.run(
        [sys.executable, "-m", "launchpad", *words],
        env=environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    questions = [line for line in asked.read_text().splitlines() if " -G " in line]
    assert questions == ["-T -G -- pve1"]


def test_what_nobody_wants_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, started = tmp_path / "ssh", tmp_path / "started"
    program.write_text(f"#!/bin/sh\necho $$ >{started}.new; mv {started}.new {started}; sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    ahead = look_ahead(["run", "pve1:101"], None)
    wait_until(started.exists)
    ahead.drop()
    ahead.drop()
    found = subprocess.run(
        ["ps", "-p", started.read_text().strip()], capture_output=True, check=False
    )
    assert found.returncode == 1
