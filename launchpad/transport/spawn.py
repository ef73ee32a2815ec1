"""Child processes with their streams in our hands, on pipes or on a pty."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launchpad.transport.base import Terminal

# The first terminal that a session leader opens becomes its controlling terminal.
_TAKE_TERMINAL = b'tty=$1; shift; exec "$@" <"$tty" >"$tty"'
_ALL_ON_TERMINAL = _TAKE_TERMINAL + b" 2>&1"

# Stay in the session of our terminal, where a passphrase can be asked for, but leave Ctrl-C to us.
_IGNORE_CTRL_C = b'trap "" INT QUIT; exec "$@"'

Environment = Mapping[bytes, bytes]


@dataclass(slots=True)
class Wiring:
    """A started process and our ends of its streams.

    ``stderr`` is None where it goes to the pty; ``terminal`` is the master side of that pty.
    """

    process: subprocess.Popen[bytes]
    stdin: int
    stdout: int
    stderr: int | None
    terminal: int | None = None


def on_pipes(
    arguments: Sequence[bytes],
    *,
    environment: Environment | None = None,
    same_session: bool = False,
) -> Wiring:
    """Start a process on three pipes, so that Ctrl-C on our terminal is not for it.

    ``same_session``: it may ask its user on our terminal. Raises ``OSError``.
    """
    if same_session:
        arguments = [b"/bin/sh", b"-c", _IGNORE_CTRL_C, b"sh", *arguments]
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=not same_session,
        env=environment,
    )
    return Wiring(process, *map(_own, (process.stdin, process.stdout, process.stderr)))


def on_pty(
    arguments: Sequence[bytes],
    terminal: Terminal,
    *,
    environment: Environment | None = None,
    separate_stderr: bool = False,
) -> Wiring:
    """Start a process as the leader of a session on a pty of its own. Raises ``OSError``."""
    variables = dict(os.environb if environment is None else environment)
    variables[b"TERM"] = terminal.name.encode()
    script = _TAKE_TERMINAL if separate_stderr else _ALL_ON_TERMINAL
    master, slave = os.openpty()
    try:
        set_size(master, terminal.columns, terminal.rows)
        name = os.ttyname(slave).encode()
        process = subprocess.Popen(
            [b"/bin/sh", b"-c", script, b"sh", name, *arguments],
            stdin=slave,  # keeps the pty alive until the shell has opened it by name
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE if separate_stderr else subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            env=variables,
        )
        stderr = _own(process.stderr) if separate_stderr else None
        return Wiring(process, os.dup(master), os.dup(master), stderr, terminal=master)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)


def set_size(terminal: int, columns: int, rows: int) -> None:
    """Give a pty its size; its foreground process group gets SIGWINCH."""
    # Late: few calls have a terminal.
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _own(stream: object) -> int:
    """Take a descriptor out of the hands of ``subprocess``, which would close it itself."""
    descriptor = os.dup(stream.fileno())  # type: ignore[attr-defined]
    stream.close()  # type: ignore[attr-defined]
    return descriptor
