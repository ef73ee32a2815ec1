"""When a start counts as confirmed: the policy of `run`, apart from all I/O and clocks.

The caller feeds what the job writes, with the time, and asks how long to go on watching.
"""

import re
from dataclasses import dataclass, field

from launchpad.errors import UsageError

# Once output has begun, this much silence means that the first lines are complete (seconds).
SILENCE = 0.3

FIRST_LINES = 10
# First lines are for a screen: nobody reads more of one line than this (bytes).
_LINE_LIMIT = 4096
_KEPT = FIRST_LINES * _LINE_LIMIT
# A line without an end is matched against --ready up to here (bytes).
_READY_WINDOW = 65536


def compile_ready(pattern: str) -> re.Pattern[bytes]:
    """The regular expression of ``--ready``; raises :class:`UsageError` where it is none."""
    try:
        return re.compile(pattern.encode("utf-8", "surrogateescape"))
    except re.error as error:
        raise UsageError(
            f"--ready: {pattern!r} is not a regular expression: {error}",
            advice="Python's syntax (re); put a backslash before . * + ? ( ) [ ] to mean itself",
        ) from error


@dataclass(slots=True)
class FirstLines:
    """The first lines of a log, bounded whatever the job writes."""

    _data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> None:
        """Take what the log goes on with."""
        if len(self._data) < _KEPT:
            self._data += data[: _KEPT - len(self._data)]

    @property
    def lines(self) -> tuple[bytes, ...]:
        """Up to ten lines; of a line that was overwritten with CR, what stands there now."""
        whole = bytes(self._data).split(b"\n")
        if whole and not whole[-1]:
            whole.pop()
        return tuple(_last_state(line)[:_LINE_LIMIT] for line in whole[:FIRST_LINES])


def _last_state(line: bytes) -> bytes:
    parts = [part for part in line.split(b"\r") if part]
    return parts[-1] if parts else b""


@dataclass(slots=True)
class Confirmation:
    """Watch until ``seconds`` are over, or output came and then 0.3 s of silence."""

    seconds: float
    began: float
    _last_output: float | None = None

    def feed(self, _data: bytes, now: float) -> None:
        """Output came."""
        self._last_output = now

    def remaining(self, now: float) -> float | None:
        """Seconds to go on watching; 0 once the start is confirmed."""
        ends = self.began + self.seconds
        if self._last_output is not None:
            ends = min(ends, self._last_output + SILENCE)
        return max(0.0, ends - now)

    @property
    def is_met(self) -> bool:
        """Silence is no failure: time alone confirms."""
        return True


@dataclass(slots=True)
class Readiness:
    """Watch until a line of the log matches, or ``timeout`` seconds are over (None: no limit)."""

    pattern: re.Pattern[bytes]
    timeout: float | None
    began: float
    is_met: bool = False
    _line: bytes = b""

    def feed(self, data: bytes, _now: float) -> None:
        """Output came: look at each line, and at the one that is still being written."""
        if self.is_met:
            return
        lines = re.split(rb"[\r\n]", self._line + data)
        self._line = lines[-1][-_READY_WINDOW:]
        self.is_met = any(self.pattern.search(line) for line in lines)

    def remaining(self, now: float) -> float | None:
        """Seconds to go on watching; 0 once a line matched or time is up; None: no limit."""
        if self.is_met:
            return 0.0
        if self.timeout is None:
            return None
        return max(0.0, self.began + self.timeout - now)


Watch = Confirmation | Readiness
