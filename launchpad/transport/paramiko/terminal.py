"""Questions to the user, on the terminal and nowhere else."""

import contextlib
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from launchpad.errors import ClientError


def ask(question: str, *, echo: bool = True) -> str:
    """The line that the user types; nothing of it is stored.

    Raises :class:`ClientError` where there is no terminal or it was closed.
    """
    try:
        with Path("/dev/tty").open("r+b", buffering=0) as terminal, _echo(terminal, on=echo):
            terminal.write(question.encode("utf-8", "replace"))
            line = b""
            while not line.endswith(b"\n"):
                data = terminal.read(1024)
                if not data:
                    raise ClientError("the terminal was closed in the middle of a question")
                line += data
            if not echo:
                terminal.write(b"\n")
    except OSError as error:
        raise ClientError("there is no terminal to ask on", details=str(error)) from error
    return line.decode("utf-8", "surrogateescape").rstrip("\n")


@contextlib.contextmanager
def _echo(terminal: IO[bytes], *, on: bool) -> Iterator[None]:
    before = termios.tcgetattr(terminal)
    quiet = termios.tcgetattr(terminal)
    if not on:
        quiet[3] &= ~termios.ECHO
    try:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, quiet)
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
