"""Start-up time is a feature: what is not needed is not loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT = """
import sys
import launchpad.__main__ as program
code = program.run(sys.argv[1:])
print("loaded:", *sorted(name for name in sys.modules), file=sys.stderr)
sys.exit(code)
"""


def loaded_by(home: Path, *words: str) -> set[str]:
    """The modules that a call has loaded by its end."""
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *words],
        env={**os.environ, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    line = done.stderr.splitlines()[-1]
    assert line.startswith("loaded: "), done
    assert "launchpad.cli" in line
    return set(line.split()[1:])


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["rnu"]])
def test_the_frame_loads_no_verb_and_nothing_heavy(tmp_path: Path, words: list[str]) -> None:
    loaded = loaded_by(tmp_path, *words)
    assert not loaded & {"paramiko", "rich", "sqlite3", "dotenv", "tomllib", "subprocess"}
    assert not {
        name for name in loaded if name.startswith(("launchpad.launcher", "launchpad.cli.run"))
    }


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--help"],
        ["run", "local", "true"],
        ["run", "--json", "local", "--", "/nosuch/program"],
        ["run", "--dry-run", "local", "--", "true"],
        ["status", "--json"],
        ["status", "-q"],
        ["config", "show"],
    ],
)
def test_neither_paramiko_nor_rich_where_they_are_not_needed(
    tmp_path: Path, words: list[str]
) -> None:
    assert not loaded_by(tmp_path, *words) & {"paramiko", "rich", "cryptography"}


def test_help_is_quick() -> None:
    """In CPU time, taken in turns: what else this machine does must not decide."""

    def cost(*words: str) -> float:
        process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_utime + usage.ru_stime

    pairs = [(cost("-c", "pass"), cost("-m", "launchpad", "--help")) for _ in range(9)]
    nothing, help_text = (min(each) for each in zip(*pairs, strict=True))
    assert help_text <= 7 * nothing
