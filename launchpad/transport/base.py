"""What every transport offers: one command on the host, with its three streams.

This is the only door towards hosts. It carries bytes; it knows nothing of jobs, pct or
frames. Whatever ssh libraries raise is turned into :mod:`launchpad.errors` behind it.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from launchpad.errors import LineLost

if TYPE_CHECKING:
    from launchpad.sshconfig import Ahead
    from launchpad.transport.pool import Pool

# A line that has been silent this long although keep-alives were sent is lost (seconds).
SILENCE_LIMIT = 45.0

# Whoever sends is held up only while more than this waits to be taken (bytes).
SEND_LIMIT = 1024 * 1024

# What `exchange` takes from the far side before it calls the reply unreasonable (bytes).
REPLY_LIMIT = 16 * 1024 * 1024

TransportName = Literal["paramiko", "openssh", "local"]
TransportChoice = Literal["auto", "paramiko", "openssh"]


class Stream(Enum):
    """Where output came from."""

    STDOUT = 1
    STDERR = 2


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes that the far side wrote; never empty."""

    stream: Stream
    data: bytes


@dataclass(frozen=True, slots=True)
class Exited:
    """The command ended and both its streams are drained; nothing follows.

    ``code``: its exit status; None where no status arrived (RFC 4254 §6.10 makes it optional:
    the remote shell was killed, or the line broke). None is never success and never a job's code.
    """

    code: int | None


Event = Output | Exited


@dataclass(frozen=True, slots=True)
class Terminal:
    """A pty to be had on the far side: its type and its size in characters."""

    name: str
    columns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Inner:
    """A host that is reached through another one, with the login that counts there.

    ``name``: its host key is known under it. ``address``: name or address as the host in front
    of it sees it. ``known_hosts``: the file that alone vouches for its key; None: the user's own.
    """

    name: str
    address: str
    known_hosts: Path | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host as the user spelt it: an alias of ssh_config, a name or an address.

    With ``inner`` that host is only the way: the one behind it is meant.
    """

    host: str
    user: str | None = None
    port: int | None = None
    inner: Inner | None = None

    def __str__(self) -> str:
        if self.inner is not None:
            return f"{self.inner.name} (through {replace(self, inner=None)})"
        host = f"[{self.host}]" if ":" in self.host else self.host
        user = f"{self.user}@" if self.user else ""
        return f"{user}{host}:{self.port}" if self.port else f"{user}{host}"


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """How to reach hosts.

    ``ssh_config``: read instead of ``~/.ssh/config`` (as ``ssh -F``). ``interactive``: there is a
    terminal, and the user may be asked (host key, passphrase, password). ``share``: keep an OpenSSH
    master connection of our own. ``timeout``: seconds for each step of connecting (name, TCP,
    banner, key exchange, login), unless ssh_config's ConnectTimeout is shorter. ``note`` receives
    lines for ``-v``; ``warn`` lines that the user must see. ``pool``: keeps connections for further
    calls; None: each call has its own. ``ahead``: what was asked of ``ssh -G`` on suspicion.
    """

    ssh_config: Path | None = None
    choice: TransportChoice = "auto"
    interactive: bool = False
    share: bool = False
    timeout: float = 15.0
    note: Callable[[str], None] = field(default=lambda _line: None)
    warn: Callable[[str], None] = field(default=lambda _line: None)
    pool: "Pool | None" = field(default=None, compare=False)
    ahead: "Ahead | None" = field(default=None, compare=False)


class Channel(Protocol):
    """One running command on the host.

    Not for use by several threads, with one exception: ``send`` and ``close_stdin`` may be called
    from a second thread while the first one receives.
    """

    def send(self, data: bytes) -> None:
        """Queue bytes for stdin.

        Blocks only while more than :data:`SEND_LIMIT` waits to be taken. Bytes that the far
        side no longer reads are dropped silently (the exit status tells the story). Raises
        :class:`~launchpad.errors.LineLost` where the connection is known to be gone.
        """

    def close_stdin(self) -> None:
        """End of file on stdin, after everything queued; may be called twice."""

    def receive(self, timeout: float | None) -> Event | None:
        """The next event; None once ``timeout`` seconds (None: no limit) passed without one.

        Both streams are drained in turn and with bounded memory. After :class:`Exited` it returns
        the same :class:`Exited` again. Raises :class:`~launchpad.errors.LineLost` when the line
        broke or was silent for :data:`SILENCE_LIMIT` in spite of keep-alives.
        """

    def resize(self, columns: int, rows: int) -> None:
        """Tell the far side's pty its new size; nothing where there is no pty."""

    def close(self) -> None:
        """Give up the command's streams at once; may be called twice; never blocks or raises."""


class Transport(Protocol):
    """A way to run commands on one host. Close it when done; it may be reused before that.

    Over the ssh program nothing is connected before :meth:`open`: what :func:`connect` raises for
    paramiko (an unknown host key, a refused login, …) is raised by ``receive`` there. ssh's own
    words are never mixed with what the command prints, and an exit code is the command's own.
    """

    @property
    def name(self) -> TransportName:
        """Which transport this is."""

    @property
    def reason(self) -> str:
        """Why this one was chosen, for ``-v`` and doctor."""

    @property
    def user(self) -> str:
        """The account on the host that the commands run as."""

    def open(self, words: Sequence[str], *, terminal: Terminal | None = None) -> Channel:
        """Start a command: over ssh as the line that :func:`launchpad.command.host_line` builds.

        Raises :class:`~launchpad.errors.SshError` where no channel can be had.
        """

    def close(self) -> None:
        """Close the connection and everything on it; never raises; may be called twice."""


@dataclass(frozen=True, slots=True)
class Completed:
    """All that a command said. ``exit_code``: see :class:`Exited`.

    ``silent``: the deadline passed first. ``oversized``: it said more than the limit. In both cases
    the channel was closed and the outputs hold what came until then.
    """

    stdout: bytes
    stderr: bytes
    exit_code: int | None
    silent: bool = False
    oversized: bool = False


def _send_all(channel: Channel, data: bytes) -> None:
    # A lost line is reported by whoever receives.
    with contextlib.suppress(LineLost):
        channel.send(data)
        channel.close_stdin()


def exchange(
    channel: Channel,
    data: bytes,
    *,
    deadline: float,
    first: float = math.inf,
    pause: float = math.inf,
    limit: int = REPLY_LIMIT,
) -> Completed:
    """Send ``data``, then end of file, and collect everything until the command ends.

    ``deadline``: seconds for the whole exchange, ``first``: for the first byte that is said,
    ``pause``: for each further one; ``limit``: bytes of both streams together.
    The channel is closed afterwards. Raises :class:`~launchpad.errors.LineLost`.
    """
    began = time.monotonic()
    ends, next_ends = began + deadline, began + first
    outputs: dict[Stream, list[bytes]] = {Stream.STDOUT: [], Stream.STDERR: []}
    size = 0

    def completed(code: int | None, *, silent: bool = False, oversized: bool = False) -> Completed:
        stdout, stderr = (b"".join(outputs[stream]) for stream in Stream)
        return Completed(stdout, stderr, code, silent=silent, oversized=oversized)

    try:
        if len(data) <= SEND_LIMIT:
            _send_all(channel, data)
        else:
            # The far side may fill its output before it has read all of this.
            threading.Thread(target=_send_all, args=(channel, data), daemon=True).start()
        while True:
            event = channel.receive(max(0.0, min(ends, next_ends) - time.monotonic()))
            match event:
                case Output(stream, chunk):
                    outputs[stream].append(chunk)
                    size += len(chunk)
                    next_ends = time.monotonic() + pause
                    if size > limit:
                        return completed(None, oversized=True)
                case Exited(code):
                    return completed(code)
                case None:
                    return completed(None, silent=True)
    finally:
        channel.close()
