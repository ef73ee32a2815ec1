"""The completion scripts under the real zsh and fish (those of a lab node)."""

from __future__ import annotations

import os
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

import pytest

from launchpad.cli.completion import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab import Lab

# In place of the program: says what it was asked, in the form of an answer.
_STAND_IN = """#!/bin/sh
case "$*" in
"completion fish -- kill tr" | "completion zsh -- kill tr") printf 'train-aaaaaa\\ntrain\\n' ;;
"completion fish -- kill " | "completion zsh -- kill ") printf 'sweep\\ntrain\\n' ;;
"completion fish -- push /etc/host" | "completion zsh -- push /etc/host") echo :files ;;
*) echo "asked for: $*" ;;
esac
"""

_numbers = count()


@contextmanager
def stand_in(lab: Lab) -> Iterator[str]:
    """A directory of this test's own on the node, with the stand-in in it."""
    directory = f"/usr/local/lib/completion-{os.getpid()}-{next(_numbers)}"
    with lab.file_on("pve1", f"{directory}/launchpad", _STAND_IN, 0o755):
        yield directory


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("launchpad kill tr", ["train-aaaaaa", "train"]),
        ("launchpad kill ", ["sweep", "train"]),
        ("launchpad push /etc/host", ["/etc/host.conf", "/etc/hostname", "/etc/hosts"]),
    ],
)
def test_fish_completes_with_it(lab: Lab, line: str, expected: list[str]) -> None:
    with stand_in(lab) as directory:
        script = f"set PATH {directory} $PATH\n{SCRIPTS['fish']}\ncomplete -C '{line}'\n"
        done = lab.on_node("pve1", "fish", "--no-config", stdin=script.encode())
    offered = [each.split("\t")[0] for each in done.stdout.decode().splitlines()]
    assert [each for each in offered if each in expected] == expected, done
    assert not [each for each in offered if "asked for" in each]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("launchpad kill tr", "compadd -V launchpad -- train-aaaaaa train"),
        ("launchpad kill ''", "compadd -V launchpad -- sweep train"),
        ("launchpad push /etc/host", "_files"),
    ],
)
def test_zsh_completes_with_it(lab: Lab, words: str, expected: str) -> None:
    with stand_in(lab) as directory:
        script = (
            f"path=({directory} $path)\n"
            "compdef() { : }; compadd() { echo compadd $@ }; _files() { echo _files }\n"
            f"{SCRIPTS['zsh']}\nwords=({words}); CURRENT=$#words; _launchpad\n"
        )
        done = lab.on_node("pve1", "zsh", "-f", "/dev/stdin", stdin=script.encode())
    assert done.stdout.decode().splitlines() == [expected], done
    assert done.stderr == b""
