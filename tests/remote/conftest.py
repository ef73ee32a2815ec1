"""Real jobs under each shell, in a state directory of the test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.remote_jobs import RemoteJobs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.shells import Shell


@pytest.fixture
def jobs(shell: Shell, tmp_path: Path) -> Iterator[RemoteJobs]:
    """Jobs that end with the test."""
    made = RemoteJobs(shell, tmp_path / "state")
    yield made
    made.clean_up()
