"""A container without a container: the real client against the real scripts in a userland here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from launchpad.launcher.contact import Contact
from launchpad.launcher.nodes import Nodes
from launchpad.target import ThisMachine
from launchpad.transport.base import ConnectOptions
from launchpad.transport.local import LocalTransport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from launchpad.transport.base import Channel, Terminal
    from support.shells import Shell


class UserlandTransport(LocalTransport):
    """Runs every call with nothing but the programs of one userland on its PATH."""

    def __init__(self, shell: Shell) -> None:
        super().__init__()
        self._shell = shell

    def open(self, words: Sequence[str], *, terminal: Terminal | None = None) -> Channel:
        return super().open(self._shell.words(words), terminal=terminal)


def userland_contact(shell: Shell, state: str = "/nowhere") -> Contact:
    """The way into the userland of ``shell``. Close it."""
    nodes = Nodes(ThisMachine(), ConnectOptions())
    nodes._links[None] = UserlandTransport(shell)
    return Contact(ThisMachine(), None, state, nodes)
