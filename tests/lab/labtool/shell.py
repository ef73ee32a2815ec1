"""Running programs, and the few words the lab says while it works."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


class LabError(Exception):
    """Something the user can act on; the message says what."""


def say(text: str) -> None:
    """A progress line; stdout belongs to what was asked for."""
    print(f"lab: {text}", file=sys.stderr, flush=True)


def run(argv: Sequence[str], *, stdin: str = "", timeout: float = 60) -> str:
    """Run to the end and return stdout; LabError with what it said if it failed."""
    result = attempt(argv, stdin=stdin, timeout=timeout)
    if result.returncode != 0:
        said = (result.stderr.strip() or result.stdout.strip())[-2000:]
        raise LabError(f"{' '.join(argv)}: exit code {result.returncode}: {said}")
    return result.stdout


def attempt(
    argv: Sequence[str], *, stdin: str = "", timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run to the end whatever the exit code."""
    try:
        return subprocess.run(
            argv,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise LabError(f"{argv[0]} is not installed here") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{' '.join(argv)}: no end after {timeout:.0f} s") from error


def run_logged(argv: Sequence[str], log: Path, *, timeout: float = 900) -> None:
    """Run something long with its output in a file; LabError shows the end of that file."""
    with log.open("ab") as output:
        result = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=timeout,
            check=False,
        )
    if result.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise LabError(f"{argv[0]}: exit code {result.returncode}; the end of {log}:\n{tail}")


def wait_until(condition: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Poll until the condition holds; LabError naming `what` when the time is up."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"{what}: not so after {seconds:.0f} s")
        time.sleep(0.01)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock, waiting for whoever has it; the kernel drops it if we die."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another lab command is at work; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
