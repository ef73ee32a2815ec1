"""Completion: what is offered, and that asking never goes over the network or fails."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from launchpad.index import Entry, Index
from launchpad.job import JobId

if TYPE_CHECKING:
    from pathlib import Path

    from support.client import Client


@pytest.fixture
def client(launchpad_words: Client) -> Client:
    """A user with two jobs and an alias."""
    index = Index(launchpad_words.index)
    for number, job in enumerate(("train-aaaaaa", "sweep-bbbbbb")):
        index.add(Entry(JobId(job), "pve1:101", "pve1", None, 101, "/s", "/l", "{}", float(number)))
    config = launchpad_words.home / "config/launchpad/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[targets.gpu]\ntarget = "pve1:102"\n')
    return launchpad_words


def offered(client: Client, *words: str) -> list[str]:
    outcome = client.succeed("completion", "bash", "--", *words)
    assert outcome.err == ""
    return outcome.out.splitlines()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["st"], ["status"]),
        (["kill", ""], ["sweep-bbbbbb", "sweep", "train-aaaaaa", "train"]),
        (["kill", "train-"], ["train-aaaaaa"]),
        (["-v", "tail", "-f", "sw"], ["sweep-bbbbbb", "sweep"]),
        (["run", ""], ["gpu", "pve1:101", "local"]),
        (["run", "-C", "/w", "pve1:"], ["pve1:101"]),
        (["run", "gpu", "--transp"], ["--transport"]),
        (["run", "--transport", ""], ["auto", "paramiko", "openssh"]),
        (["status", "gp"], ["gpu"]),
        (["pull", "gp"], ["gpu:"]),
        (["run", "gpu", "--", "pyth"], [":files"]),
        (["--config", ""], [":files"]),
        (["config", ""], ["show"]),
        (["completion", "f"], ["fish"]),
        (["nosuch", ""], []),
    ],
)
def test_what_is_offered(client: Client, words: list[str], expected: list[str]) -> None:
    assert offered(client, *words) == expected


def test_all_verbs_are_offered(client: Client) -> None:
    from launchpad.cli import VERBS

    assert offered(client, "") == list(VERBS)


def test_a_broken_index_or_configuration_offers_less_and_says_nothing(client: Client) -> None:
    client.index.write_bytes(b"no database, and quite long enough to be taken for one" * 50)
    assert offered(client, "run", "") == ["gpu", "local"]
    (client.home / "config/launchpad/config.toml").write_text("[[[")
    assert offered(client, "run", "") == ["local"]
    assert offered(client, "kill", "") == []


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("launchpad kill train-", ["train-aaaaaa"]),
        ("launchpad status  sw", ["sweep-bbbbbb", "sweep"]),
        ("launchpad run pve1:1", ["101"]),  # readline completes only what follows the colon
        ("launchpad sta", ["status"]),
        ("launchpad kill ", ["sweep-bbbbbb", "sweep", "train-aaaaaa", "train"]),
    ],
)
def test_bash_completes_with_it(
    client: Client, tmp_path: Path, line: str, expected: list[str]
) -> None:
    # What pip installs, without an installation.
    program = tmp_path / "bin/launchpad"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m launchpad "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(launchpad completion bash)"; COMP_LINE=$1 COMP_POINT=${#1}; _launchpad;'
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", line],
        env={**client.environment, "PATH": f"{program.parent}:{client.environment['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout.split() == expected
