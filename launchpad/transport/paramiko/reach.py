"""From a name and a port to an ssh server that has said who it is.

Our own version line goes out at once, before the server's has come, as ssh does it: that saves
a round trip, and makes other servers (HTTP, say) give themselves away.
"""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

from launchpad.command import to_text
from launchpad.sshconfig import SshConfig
from launchpad.transport import faults, second_try
from launchpad.transport.base import ConnectOptions
from launchpad.transport.paramiko.line import Line, Stream
from launchpad.transport.pipes import reap
from launchpad.version import __version__

VERSION_LINE = f"SSH-2.0-launchpad_{__version__}"
_OUR_LINE = VERSION_LINE.encode() + b"\r\n"

# RFC 4253 §4.2 lets a server send other lines first; one that sends this much is no ssh server.
_GREETING_LIMIT = 16 * 1024

_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}

T = TypeVar("T")


class Dropped(Exception):
    """The server hung up before its version line."""


class Connection(NamedTuple):
    """Bytes to and from a port. ``end``: ends what carries them; ``words``: what that has said."""

    stream: Stream
    end: Callable[[], None] = lambda: None
    words: Callable[[], str] = lambda: ""

    def discard(self) -> None:
        """Close it; never raises."""
        with contextlib.suppress(OSError, EOFError):
            self.stream.close()
        self.end()


# Connects, until the moment given (``time.monotonic``). Raises HostUnreachable.
Dial = Callable[[float], Connection]


def place(config: SshConfig) -> str:
    """The host for messages, with its port where that is not ssh's."""
    alias = f" ({config.alias})" if config.alias != config.hostname else ""
    return f"{config.hostname} port {config.port}{alias}"


def reach(config: SshConfig, dial: Dial, timeout: float) -> Line:
    """A line to the ssh server that ``dial`` connects to, within ``timeout`` seconds per try.

    A server that drops the connection at once is tried a second time. Raises
    :class:`~launchpad.errors.HostUnreachable`.
    """
    for last in (False, True):
        deadline = time.monotonic() + timeout
        connection = dial(deadline)
        try:
            greeting = _greet(config, connection.stream, deadline, timeout)
        except Dropped as drop:
            words = connection.words() or str(drop)
            connection.discard()
            if last:
                raise faults.dropped(place(config), words) from drop
            second_try.rest()
        except BaseException:
            connection.discard()
            raise
        else:
            return Line(connection.stream, greeting, _OUR_LINE, connection.end)
    raise AssertionError


def _greet(config: SshConfig, stream: Stream, deadline: float, timeout: float) -> bytes:
    """Exchange version lines (RFC 4253 §4.2); returns the server's and what followed it."""
    said = b""
    try:
        stream.settimeout(_left(deadline))
        stream.send(_OUR_LINE)
        while True:
            start = 0 if said.startswith(b"SSH-") else said.find(b"\nSSH-") + 1
            if said[start:].startswith(b"SSH-") and b"\n" in said[start:]:
                return said[start:]
            if len(said) > _GREETING_LIMIT or said.startswith(b"HTTP/"):
                raise faults.not_ssh(place(config), _first_line(said))
            stream.settimeout(_left(deadline))
            data = stream.recv(4096)
            if not data:
                break
            said += data
    except TimeoutError as error:
        if said:
            raise faults.not_ssh(place(config), _first_line(said)) from error
        raise faults.silent_port(place(config), timeout) from error
    except OSError as error:
        raise Dropped(_first_line(said) or (error.strerror or str(error))) from error
    if said and b"MaxStartups" not in said and b"Not allowed at this time" not in said:
        raise faults.not_ssh(place(config), _first_line(said))
    raise Dropped(_first_line(said))


def _first_line(said: bytes) -> str:
    return to_text(said.split(b"\n")[0][:200]).strip()


def step_timeout(config: SshConfig, options: ConnectOptions) -> float:
    """Seconds for each step of connecting."""
    return min(options.timeout, config.connect_timeout or options.timeout)


def reach_first(config: SshConfig, options: ConnectOptions) -> Line:
    """A line to the first host on the way: over TCP, or through its ProxyCommand."""
    timeout = step_timeout(config, options)

    def dial(deadline: float) -> Connection:
        if config.proxy_command is not None:
            return dial_command(config, config.proxy_command)
        return dial_directly(config, timeout, deadline)

    return reach(config, dial, timeout)


def dial_directly(config: SshConfig, timeout: float, deadline: float) -> Connection:
    """TCP to one address of the name after the other."""
    failures: list[str] = []
    addresses = _look_up(config, deadline)
    for index, (family, _type, protocol, _name, address) in enumerate(addresses):
        sock = socket.socket(family, socket.SOCK_STREAM, protocol)
        try:
            if config.bind_address:
                sock.bind((config.bind_address, 0))
            # One address that swallows packets must leave time for the others.
            sock.settimeout(_left(deadline) / (len(addresses) - index))
            sock.connect(address)
        except TimeoutError:
            sock.close()
            failures.append(f"no answer within {timeout:g} s")
        except OSError as error:
            sock.close()
            failures.append((error.strerror or str(error)).lower())
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Connection(sock)
    raise faults.unreachable(place(config), ", ".join(dict.fromkeys(failures)))


_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


def _look_up(config: SshConfig, deadline: float) -> Sequence[_Address]:
    family = _FAMILIES.get(config.address_family, socket.AF_UNSPEC)

    def resolve() -> Sequence[_Address]:
        return socket.getaddrinfo(config.hostname, config.port, family, socket.SOCK_STREAM)

    try:
        # getaddrinfo(3) takes no deadline.
        addresses = InBackground(resolve).result(_left(deadline))
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise faults.name_unknown(place(config), config.hostname, str(why)) from error
    if addresses is None:
        raise faults.unreachable(place(config), "the name servers of this machine do not answer")
    return addresses


def _left(deadline: float) -> float:
    return max(0.01, deadline - time.monotonic())


def dial_command(config: SshConfig, command: str) -> Connection:
    """A ProxyCommand, run as ssh runs it: by the user's shell, with ``exec``."""
    import tempfile

    ours, theirs = socket.socketpair()
    words = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the connection)
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        process = subprocess.Popen(
            [shell, "-c", f"exec {command}"],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=words,
            start_new_session=True,
        )
    except OSError as error:
        ours.close()
        raise faults.unreachable(
            place(config), f"its ProxyCommand cannot be run ({error.strerror})"
        ) from error
    finally:
        theirs.close()

    def end() -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        words.close()
        reap(process)

    def said() -> str:
        text = to_text(os.pread(words.fileno(), 1000, 0)).strip()
        return f"ProxyCommand: {text or 'it said nothing'}"

    return Connection(ours, end, said)


class InBackground(threading.Thread, Generic[T]):
    """A function on a thread of its own, which never keeps the process alive."""

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__(name="launchpad-connect", daemon=True)
        self._function = function
        self._result: T | None = None
        self._failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:  # noqa: BLE001 (raised again where the result is wanted)
            self._failure = error

    def wait(self) -> T:
        """What the function returned or raised; for functions that end by themselves."""
        self.join()
        if self._failure is not None:
            raise self._failure
        return cast("T", self._result)

    def result(self, timeout: float) -> T | None:
        """What the function returned or raised; None where it is not ready after ``timeout``."""
        self.join(timeout)
        if self._failure is not None:
            raise self._failure
        return self._result
