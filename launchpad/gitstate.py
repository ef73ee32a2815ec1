"""The commit of a directory of this machine, as git tells it."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

# A huge working tree must not delay a start (seconds).
_GIT_DEADLINE = 2.0


@dataclass(slots=True)
class GitState:
    """The commit of the caller's directory, asked for while something else is done."""

    _process: subprocess.Popen[bytes] | None

    @classmethod
    def ask(cls, directory: Path | None = None) -> "GitState":
        """Begin to ask; outside of a work tree nothing is started."""
        here = directory or Path.cwd()
        if not any((place / ".git").exists() for place in (here, *here.parents)):
            return cls(None)
        words = ["git", "-C", str(here), "status", "--porcelain=v2", "--branch"]
        try:
            process = subprocess.Popen(
                [*words, "--untracked-files=no"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            )
        except OSError:
            return cls(None)
        return cls(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """Whoever did not get to ask for the answer does not want it any more."""
        process = self._take()
        if process is not None:
            process.kill()
            process.communicate()

    def _take(self) -> subprocess.Popen[bytes] | None:
        process, self._process = self._process, None
        return process

    def answer(self) -> dict[str, Any] | None:
        """``{"commit": …, "dirty": …}``; None where there is none, or it takes too long."""
        process = self._take()
        if process is None:
            return None
        try:
            output, _ = process.communicate(timeout=_GIT_DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return None
        if process.returncode != 0:
            return None
        lines = output.decode("utf-8", "replace").splitlines()
        commits = [line.split()[-1] for line in lines if line.startswith("# branch.oid ")]
        if not commits or commits[0] == "(initial)":
            return None
        return {"commit": commits[0], "dirty": any(not line.startswith("#") for line in lines)}
