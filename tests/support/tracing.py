"""What programs are executed with: every execve(2), recorded by strace, nothing sampled."""

from __future__ import annotations

import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab import Lab


@dataclass(frozen=True, slots=True)
class Trace:
    """A file that strace writes."""

    file: Path

    @staticmethod
    def command(file: Path, *options: str) -> list[str]:
        """strace's words: whole argument vectors, and no environment."""
        calls = "trace=execve,execveat"
        return ["strace", "-f", "-qq", "-s", "4000000", "-e", calls, "-o", str(file), *options]

    @staticmethod
    def read(file: Path) -> list[str]:
        """The lines of all calls, each with one argument vector in strace's notation."""
        lines = file.read_text(errors="surrogateescape").splitlines()
        return [line for line in lines if "execve" in line]

    def vectors(self) -> list[str]:
        return self.read(self.file)


def listener(lab: Lab, node: str) -> int:
    """The PID of a node's listening sshd, as this machine counts."""
    namespace = Path(f"/proc/{lab.node_pid(node)}/ns/pid").readlink()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_listener = b"[listener]" in (process / "cmdline").read_bytes()
            if is_listener and (process / "ns/pid").readlink() == namespace:
                return int(process.name)
        except OSError:
            continue
    raise AssertionError(f"no sshd listens on {node}")


@contextmanager
def traced_node(lab: Lab, node: str, file: Path) -> Iterator[Trace]:
    """Trace sshd of a node and whatever comes of it, containers included, from now on."""
    pid = listener(lab, node)
    tracer = subprocess.Popen(
        Trace.command(file, "-p", str(pid)), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        status = Path(f"/proc/{pid}/status")
        wait_until(
            lambda: (
                tracer.poll() is not None or f"TracerPid:\t{tracer.pid}\n" in status.read_text()
            ),
            what="strace is attached",
        )
        assert tracer.poll() is None, tracer.stderr and tracer.stderr.read()
        yield Trace(file)
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=20)
