"""Commands on this machine: no ssh, no shell."""

import os
import pwd
from collections.abc import Sequence

from launchpad.command import to_bytes
from launchpad.errors import SshError
from launchpad.transport.base import (
    Channel,
    Event,
    Exited,
    Output,
    Stream,
    Terminal,
    TransportName,
)
from launchpad.transport.pipes import PipeChannel
from launchpad.transport.spawn import on_pipes, on_pty

_NOT_FOUND = 127
_CANNOT_EXECUTE = 126


class LocalTransport:
    """See :class:`launchpad.transport.base.Transport`."""

    def __init__(self, reason: str = "the target is this machine") -> None:
        self._reason = reason

    @property
    def name(self) -> TransportName:
        return "local"

    @property
    def reason(self) -> str:
        return self._reason

    @property
    def user(self) -> str:
        return pwd.getpwuid(os.geteuid()).pw_name

    def open(self, words: Sequence[str], *, terminal: Terminal | None = None) -> Channel:
        arguments = [to_bytes(word) for word in words]
        try:
            wiring = on_pty(arguments, terminal) if terminal else on_pipes(arguments)
        except (FileNotFoundError, NotADirectoryError):
            return _Failed(f"{words[0]}: command not found\n".encode(), _NOT_FOUND)
        except PermissionError as error:
            return _Failed(f"{words[0]}: {error.strerror}\n".encode(), _CANNOT_EXECUTE)
        except OSError as error:
            raise SshError(
                f"cannot start {words[0]} on this machine", details=str(error)
            ) from error
        return PipeChannel(wiring, lingers=True)

    def close(self) -> None:
        """Nothing is held."""


class _Failed:
    """The channel of a command that never ran: what a shell would have said."""

    def __init__(self, message: bytes, code: int) -> None:
        self._events: list[Event] = [Output(Stream.STDERR, message), Exited(code)]

    def send(self, data: bytes) -> None:
        """Nobody reads it."""

    def close_stdin(self) -> None:
        """Nobody reads it."""

    def receive(self, timeout: float | None) -> Event | None:  # noqa: ARG002
        return self._events.pop(0) if len(self._events) > 1 else self._events[0]

    def resize(self, columns: int, rows: int) -> None:
        """There is no terminal."""

    def close(self) -> None:
        """There is nothing to close."""
