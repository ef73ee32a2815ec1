"""Start a process inside a Proxmox container, detached, and know what became of it.

    import launchpad

    job = launchpad.run("pve1:101", ["python3", "train.py"], cwd="/workspace")
    code = job.wait()

:mod:`launchpad.api` says what each of these does, :mod:`launchpad.errors` what each may raise.
They are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from launchpad.api import (
        Client,
        Copied,
        Job,
        Status,
        close,
        find,
        pull,
        push,
        rerun,
        run,
        status,
        wait,
    )
    from launchpad.errors import (
        ClientError,
        ContainerElsewhere,
        ContainerError,
        ContainerSilent,
        ContainerStopped,
        ContainerUnknown,
        HostKeyChanged,
        HostKeyUnknown,
        HostUnreachable,
        JobError,
        JobRefused,
        JobSurvived,
        JobUnknown,
        LaunchpadError,
        Layer,
        LineLost,
        LoginRefused,
        NoSuchDirectory,
        NotAContainer,
        PctError,
        PctMissing,
        ShellError,
        SshError,
        SudoRefused,
        UsageError,
    )
    from launchpad.version import __version__

_FROM_API = frozenset(
    {
        "Client",
        "Copied",
        "Job",
        "Status",
        "close",
        "find",
        "pull",
        "push",
        "rerun",
        "run",
        "status",
        "wait",
    }
)

__all__ = [
    "Client",
    "ClientError",
    "ContainerElsewhere",
    "ContainerError",
    "ContainerSilent",
    "ContainerStopped",
    "ContainerUnknown",
    "Copied",
    "HostKeyChanged",
    "HostKeyUnknown",
    "HostUnreachable",
    "Job",
    "JobError",
    "JobRefused",
    "JobSurvived",
    "JobUnknown",
    "LaunchpadError",
    "Layer",
    "LineLost",
    "LoginRefused",
    "NoSuchDirectory",
    "NotAContainer",
    "PctError",
    "PctMissing",
    "ShellError",
    "SshError",
    "Status",
    "SudoRefused",
    "UsageError",
    "__version__",
    "close",
    "find",
    "pull",
    "push",
    "rerun",
    "run",
    "status",
    "wait",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("launchpad.version").__version__
    if name not in __all__:
        raise AttributeError(f"module 'launchpad' has no attribute {name!r}")
    home = "launchpad.api" if name in _FROM_API else "launchpad.errors"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
