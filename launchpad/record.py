"""The spec record of a job: one line of JSON that says what was asked for, without any value.

The client writes it, the container keeps it as it is, and any client reads it back:
:func:`make_record` and :func:`launchpad.replies` are the two ends.
"""

import getpass
import json
import os
from collections.abc import Mapping
from typing import Any

from launchpad.command import Argv, Command, ShellLine
from launchpad.job import JobSpec
from launchpad.version import __version__

SCHEMA = 1


def started_by() -> str:
    """``user@machine``: who is at this keyboard."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{os.uname().nodename.partition('.')[0]}"


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
