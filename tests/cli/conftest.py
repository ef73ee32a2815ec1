"""The command line from outside, with jobs on this machine: no ssh, no lab, no root."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.client import Client
from support.local_client import LocalClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NOT_ROOT = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@pytest.fixture(scope="session")
def not_root() -> tuple[str, ...]:
    """What to put in front of a program so that it is not root: jobs then live in its own home."""
    if os.geteuid() != 0:
        return ()
    probe = subprocess.run([*_NOT_ROOT, "true"], capture_output=True, check=False)
    return _NOT_ROOT if probe.returncode == 0 else ()


@pytest.fixture
def local(tmp_path: Path, not_root: tuple[str, ...]) -> Iterator[LocalClient]:
    client = LocalClient(tmp_path / "home", not_root)
    yield client
    client.end()


@pytest.fixture
def launchpad_words(tmp_path: Path) -> Client:
    """The command line for calls that start nothing."""
    return Client(tmp_path / "home")
