"""A command of the ssh program whose connection was dropped at once, started a second time.

An sshd that is being logged in to by many drops connections before it says anything
(sshd_config(5), MaxStartups). Nothing has run on the host then, so that starting again is safe.
"""

import os
import threading
import time
from collections.abc import Callable

from launchpad.transport.base import SEND_LIMIT, Channel, Event, Output, Stream
from launchpad.transport.faults import Dropped

# How long a dropped connection is let rest (seconds, plus up to as much).
BACK_OFF = 0.4


def rest() -> None:
    """Wait before the second try, not in step with others that were dropped with us."""
    time.sleep(BACK_OFF * (1 + os.urandom(1)[0] / 255))


class SecondTry:
    """See :class:`launchpad.transport.base.Channel`.

    ``start`` starts the command; its channel raises :class:`Dropped` where nothing has run. What
    was sent is kept until the command is known to run, and sent again to a second one.
    """

    def __init__(self, start: Callable[[], Channel]) -> None:
        self._start = start
        self._channel = start()
        self._lock = threading.Lock()
        self._kept: list[bytes] | None = []
        self._kept_size = 0
        self._stdin_closed = False
        self._closed = False

    def send(self, data: bytes) -> None:
        with self._lock:
            channel = self._channel
            if self._kept is not None:
                self._kept.append(data)
                self._kept_size += len(data)
                if self._kept_size > SEND_LIMIT:
                    self._kept = None
        channel.send(data)

    def close_stdin(self) -> None:
        with self._lock:
            self._stdin_closed = True
            channel = self._channel
        channel.close_stdin()

    def receive(self, timeout: float | None) -> Event | None:
        try:
            event = self._channel.receive(timeout)
        except Dropped:
            if self._closed or not self._again():
                raise
            return self.receive(timeout)
        if event is not None and not (isinstance(event, Output) and event.stream is Stream.STDERR):
            self._kept = None
        return event

    def resize(self, columns: int, rows: int) -> None:
        self._channel.resize(columns, rows)

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._channel.close()

    def _again(self) -> bool:
        """Start the command again, once, if all that it was sent is still there."""
        rest()
        with self._lock:
            kept, self._kept = self._kept, None
            if kept is None or self._closed:
                return False
            self._channel = self._start()
            # No more than SEND_LIMIT: this does not block.
            self._channel.send(b"".join(kept))
            if self._stdin_closed:
                self._channel.close_stdin()
        return True
