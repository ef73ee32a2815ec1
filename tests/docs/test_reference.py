"""The reference of the command line is what the command line says."""

import subprocess
import sys

from support.client import REPOSITORY


def _reference(*words: str) -> int:
    script = REPOSITORY / "docs/make_reference.py"
    return subprocess.run(
        [sys.executable, script, *words],
        cwd=REPOSITORY,
        env={"PYTHONPATH": str(REPOSITORY), "PATH": ""},
        check=False,
    ).returncode


def test_the_reference_is_current() -> None:
    assert _reference("--check") == 0, "python3 docs/make_reference.py"
