"""Where launchpad keeps things: job directories, and the files of this machine."""

import os
from pathlib import Path

from launchpad.job import STATE_DIRECTORY
from launchpad.target import Target, ThisMachine


def own_state_directory() -> Path:
    """Where this user's state is kept: ``$XDG_STATE_HOME/launchpad`` (XDG base directories).

    A relative ``XDG_STATE_HOME`` is invalid by that specification, and ignored.
    """
    configured = os.environ.get("XDG_STATE_HOME", "")
    base = Path(configured) if configured.startswith("/") else Path.home() / ".local" / "state"
    return base / "launchpad"


def state_directory_for(target: Target) -> str:
    """The state directory in which the jobs of ``target`` live."""
    if isinstance(target, ThisMachine) and os.geteuid() != 0:
        return str(own_state_directory())
    return STATE_DIRECTORY
