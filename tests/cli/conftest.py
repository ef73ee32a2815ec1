"""The command line from outside, with jobs on this machine: no ssh, no lab, no root."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.client import Outcome

_NOT_ROOT = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@pytest.fixture(scope="session")
def not_root() -> tuple[str, ...]:
    """What to put in front of a program so that it is not root: jobs then live in its own home."""
    if os.geteuid() != 0:
        return ()
    probe = subprocess.run([*_NOT_ROOT, "true"], capture_output=True, check=False)
    return _NOT_ROOT if probe.returncode == 0 else ()


class LocalClient:
    """A user without root, whose target is ``local``."""

    def __init__(self, home: Path, prefix: tuple[str, ...]) -> None:
        self.client = Client(home)
        self.prefix = prefix

    @property
    def home(self) -> Path:
        return self.client.home

    def __call__(
        self,
        *words: str | bytes,
        env: dict[str, str | None] | None = None,
        stdin: bytes | None = None,
        cwd: Path | None = None,
        timeout: float = 60.0,
    ) -> Outcome:
        return self.client.run(
            *words, env=env, stdin=stdin, prefix=self.prefix, cwd=cwd, timeout=timeout
        )

    def end(self) -> None:
        for job, _target in self.client.known_jobs():
            self("kill", "-s", "KILL", job)
        self.client.end_processes()


@pytest.fixture
def local(tmp_path: Path, not_root: tuple[str, ...]) -> Iterator[LocalClient]:
    client = LocalClient(tmp_path / "home", not_root)
    yield client
    client.end()


@pytest.fixture
def launchpad_words(tmp_path: Path) -> Client:
    """The command line for calls that start nothing."""
    return Client(tmp_path / "home")
