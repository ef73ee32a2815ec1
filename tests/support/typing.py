"""A user at a terminal: launchpad on a pty of its own, which is its controlling terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.client import Client, Word


@dataclass(slots=True)
class Screen:
    """What a user at a terminal sees and does. ``seen``: everything that was ever shown."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    seen: bytes = b""
    _read_until: int = 0
    modes: list[object] = field(default_factory=list)

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def expect(self, pattern: bytes, timeout: float = 30.0) -> re.Match[bytes]:
        """Wait until something new on the screen matches; it is not looked at again."""
        ends = time.monotonic() + timeout
        while True:
            match = re.compile(pattern, re.DOTALL).search(self.seen, self._read_until)
            if match:
                self._read_until = match.end()
                return match
            left = ends - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"never shown: {pattern!r}; instead: {self.seen[-2000:]!r}")

    def end(self, timeout: float = 30.0) -> int:
        """Wait for the end; the exit code. The rest of what was shown is in ``seen``."""
        ends = time.monotonic() + timeout
        while self.process.poll() is None:
            if time.monotonic() > ends:
                raise AssertionError(f"no end after {timeout:g} s; shown: {self.seen[-2000:]!r}")
            self._read(0.05)
        while self._read(0.05):
            pass
        return self.process.returncode

    def settings(self) -> list[object]:
        """The terminal's modes (termios(3))."""
        return list(termios.tcgetattr(self.slave))

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        os.close(self.master)
        os.close(self.slave)

    def _read(self, timeout: float) -> bool:
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data
        return bool(data)


def at_terminal(
    client: Client,
    *words: Word,
    env: Mapping[str, str] | None = None,
    size: tuple[int, int] = (100, 30),
    prefix: tuple[str, ...] = (),
) -> Screen:
    """Start launchpad as the leader of a session whose terminal is a pty.

    ``prefix``: a program that becomes it, such as one that takes root away.
    """
    master, slave = pty.openpty()
    columns, rows = size
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    modes: list[object] = list(termios.tcgetattr(slave))
    take = (
        "import fcntl,os,sys,termios;fcntl.ioctl(0,termios.TIOCSCTTY,0);"
        "os.execv(sys.executable,[sys.executable,'-m','launchpad',*sys.argv[1:]])"
    )
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", take, *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**client.environment, "TERM": "xterm-256color", **(env or {})},
        cwd=client.home,
        start_new_session=True,
    )
    return Screen(process, master, slave, modes=modes)
