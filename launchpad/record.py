"""The spec record of a job: one line of JSON that says what was asked for, without any value.

The client writes it, the container keeps it as it is, and any client reads it back:
:func:`make_record` and :func:`launchpad.replies` are the two ends.
"""

import getpass
import json
import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from launchpad.command import Argv, Command, ShellLine
from launchpad.job import JobSpec
from launchpad.version import __version__

SCHEMA = 1

# A huge working tree must not delay a start (seconds).
_GIT_DEADLINE = 2.0


def started_by() -> str:
    """``user@machine``: who is at this keyboard."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname().partition('.')[0]}"


@dataclass(slots=True)
class GitState:
    """The commit of the caller's directory, asked for while the connection is being made."""

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


def command_fields(command: Command) -> tuple[list[str] | None, str | None]:
    """The pair (``command``, ``shell``) of the JSON: exactly one of them is None."""
    match command:
        case Argv(words):
            return list(words), None
        case ShellLine(text):
            return None, text


def make_record(
    spec: JobSpec,
    target: str,
    *,
    ready: str | None,
    git: dict[str, Any] | None,
    again: Mapping[str, Any],
) -> str:
    r"""The record of ``spec`` as one line of ASCII; bytes that are not UTF-8 as ``\udcXX``.

    ``again``: what else it takes to start the same once more: times, and files of this machine.
    """
    command, shell = command_fields(spec.command)
    return json.dumps(
        {
            "schema": SCHEMA,
            "id": spec.id.text,
            "name": spec.id.name,
            "target": target,
            "command": command,
            "shell": shell,
            "cwd": spec.cwd,
            "user": spec.user,
            "env_names": [name for name, _value in spec.environment],
            "log": spec.log,
            "append": spec.append,
            "login": spec.login,
            "launcher": spec.launcher.value,
            "time_limit_s": spec.time_limit,
            "on_exit": spec.on_exit,
            "ready": ready,
            "idempotency_key": spec.idempotency_key,
            "started_by": started_by(),
            "git": git,
            "again": dict(again),
            "version": __version__,
        },
        separators=(",", ":"),
    )


# What makes two requests the same one, for an idempotency key.
_SAME = ("command", "shell", "cwd", "user", "env_names", "log")


def same_request(record: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two records ask for the same work."""
    return all(record.get(key) == other.get(key) for key in _SAME)
