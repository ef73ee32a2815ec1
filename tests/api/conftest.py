"""The Python API as a program of a user with a home of its own has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from launchpad import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.client import Client as Program


@pytest.fixture
def api(launchpad: Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client; the command line ``launchpad`` of the same user shares its index."""
    for name, value in launchpad.environment.items():
        if name.startswith(("HOME", "XDG_", "LAUNCHPAD_", "LOGNAME")):
            monkeypatch.setenv(name, value)
    with Client() as made:
        yield made
