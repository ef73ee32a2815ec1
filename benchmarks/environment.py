"""Environments of Python for the benchmarks, made where there are none. Standard library only.

They live below benchmarks/.cache, which git does not see; delete it and they were never there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[1]
_SELF_IGNORING = "# made by benchmarks/run\n*\n"


def cache() -> Path:
    """Where everything is kept that the benchmarks install."""
    place = ROOT / "benchmarks/.cache"
    place.mkdir(exist_ok=True)
    (place / ".gitignore").write_text(_SELF_IGNORING)
    return place


def own_python() -> Path:
    """The Python of an environment that has the project: the project's own, or a new one."""
    python = ROOT / ".venv/bin/python"
    if _works(python, "import launchpad, click, paramiko"):
        return python
    return environment("launchpad", ["-e", str(ROOT)])


def environment(name: str, requirements: Sequence[str]) -> Path:
    """The Python of an environment with exactly these requirements."""
    place = cache() / name
    python, note = place / "bin/python", place / "installed"
    wanted = "\n".join(requirements)
    if note.exists() and note.read_text() == wanted and _works(python, ""):
        return python
    say(f"installing {' '.join(requirements)} (once)")
    _ensure_venv()
    shutil.rmtree(place, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(place)])
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, *requirements])
    note.write_text(wanted)
    return python


def say(text: str) -> None:
    """A line on how far it is; stdout belongs to the table."""
    sys.stderr.write(f"benchmarks: {text}\n")
    sys.stderr.flush()


def run(words: Sequence[str], cwd: Path | None = None) -> str:
    """Run a program of the set-up; what it printed. SystemExit with its words where it fails."""
    done = subprocess.run(
        words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"benchmarks: {' '.join(words)} failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def _works(python: Path, statement: str) -> bool:
    if not python.exists():
        return False
    words = [str(python), "-c", statement]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _ensure_venv() -> None:
    """Debian has what venv needs in a package of its own."""
    if find_spec("ensurepip") is not None:
        return
    package = f"python3.{sys.version_info.minor}-venv"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SystemExit(f"benchmarks: Python's venv is missing: apt-get install {package}")
    run(["apt-get", "update", "-qq"])
    run(["apt-get", "install", "-qq", "-y", "--no-install-recommends", package])
