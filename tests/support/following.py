"""The far side of a follow, driven by hand: the scripts in a userland of this machine."""

from __future__ import annotations

import os
import secrets
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

from launchpad.frames import Frame, FrameReader
from launchpad.logstream import LogBytes, LogStream, Piece, StreamEnd
from launchpad.scripts import remote_call
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from support.shells import Shell


def is_alive(pid: int) -> bool:
    """Whether a process of this machine lives: a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(") ")[2][:1] not in ("Z", "X", "")


SCRIPTS = ("common", "members", "facts", "follow", "tail")


@dataclass(slots=True)
class FarSide:
    """One call of tail.sh; a thread takes what it says.

    ``patience`` (seconds) takes the place of the 15 s without a heartbeat. ``limit``: take no more
    once so many bytes have come, as a client whose line has silently died.
    """

    shell: Shell
    job: Path
    words: Sequence[str]
    patience: int | None = None
    limit: int | None = None
    header: Frame | None = None
    pieces: list[Piece] = field(default_factory=list)
    stderr: bytes = b""
    _mark: str = field(default_factory=lambda: secrets.token_hex(8))
    _process: subprocess.Popen[bytes] = field(init=False)
    _threads: list[threading.Thread] = field(default_factory=list)
    _leaving: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        state = str(self.job.parent.parent)
        call = remote_call((), SCRIPTS, [self.job.name, state, *self.words])
        data = call.data
        if self.patience is not None:
            assert b"patience=15" in data
            # Of the same length: the sizes in front of the script stay true.
            data = data.replace(b"patience=15", b"patience=%02d" % self.patience)
        words = self.shell.words(call.words)
        words[2:2] = [f"TEST_MARK={self._mark}"]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for target in (self._read_stdout, self._read_stderr):
            thread = threading.Thread(target=target, args=(call.marker,), daemon=True)
            thread.start()
            self._threads.append(thread)
        self.stdin.write(data)
        self.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._leaving.set()
        with suppress(OSError):
            self.stdin.close()
        self._process.wait(30)
        for thread in self._threads:
            thread.join(10)
        self.stdout.close()
        assert self._process.stderr is not None
        self._process.stderr.close()

    @property
    def stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read_stdout(self, marker: bytes) -> None:
        reader, stream = FrameReader(marker, frozenset({"log"})), None
        taken = 0
        while True:
            if self.limit is not None and taken >= self.limit:
                self._leaving.wait()
                return
            try:
                data = os.read(self.stdout.fileno(), 65536)
            except OSError:
                return
            if not data:
                return
            if stream is None:
                for frame in reader.feed(data):
                    if frame.name in {"log", "unknown"}:
                        self.header = frame
                    if frame.name == "log":
                        stream = LogStream(marker, int(frame.words[0]))
                data = reader.take_rest() if stream else b""
            if stream is not None:
                taken += len(data)
                self.pieces += stream.feed(data)

    def _read_stderr(self, _marker: bytes) -> None:
        assert self._process.stderr is not None
        while data := os.read(self._process.stderr.fileno(), 65536):
            self.stderr += data

    def beat(self) -> None:
        self.stdin.write(b"\n")
        self.stdin.flush()

    @property
    def data(self) -> bytes:
        """All raw bytes so far, whatever events stand among them."""
        return b"".join(piece.data for piece in self.pieces if isinstance(piece, LogBytes))

    @property
    def events(self) -> list[Piece]:
        """What is not raw bytes, in order."""
        return [piece for piece in self.pieces if not isinstance(piece, LogBytes)]

    def after(self, event: type[Piece]) -> bytes:
        """The raw bytes behind the first event of that type."""
        at = next(n for n, piece in enumerate(self.pieces) if isinstance(piece, event))
        return b"".join(piece.data for piece in self.pieces[at:] if isinstance(piece, LogBytes))

    def wait_for(self, data: bytes, timeout: float = 20) -> None:
        wait_until(lambda: data in self.data, timeout, f"{data!r} in {self.data[-200:]!r}")

    def wait_for_event(self, event: type[Piece], timeout: float = 20) -> Piece:
        def find() -> list[Piece]:
            return [piece for piece in self.pieces if isinstance(piece, event)]

        return wait_until(find, timeout, f"{event.__name__} in {self.events}")[0]

    def finish(self, timeout: float = 20) -> StreamEnd:
        """The end of the stream, after which the client goes and nothing of the call lives."""
        end = self.wait_for_event(StreamEnd, timeout)
        with suppress(OSError):
            self.stdin.close()
        wait_until(lambda: not self.processes(), 5, f"nothing left of {self.processes()}")
        assert isinstance(end, StreamEnd)
        return end

    def processes(self) -> list[int]:
        """Every process of this call that lives, wherever in the tree it hangs now."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                environment = (place / "environ").read_bytes().split(b"\0")
                state = (place / "stat").read_text(errors="replace").rpartition(") ")[2][:1]
                if f"TEST_MARK={self._mark}".encode() in environment and state not in "ZX":
                    found.append(int(place.name))
        return found

    def cpu_seconds(self) -> float:
        """What the shell and the children that it has waited for have used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
