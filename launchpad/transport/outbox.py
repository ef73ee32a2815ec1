"""Bytes on their way to a command's stdin, whatever carries them."""

import threading
from collections import deque
from typing import Protocol

from launchpad.errors import LaunchpadError
from launchpad.transport.base import SEND_LIMIT


class SinkGone(Exception):
    """Nobody will ever take these bytes."""


class Sink(Protocol):
    """Where the bytes go. Only one thread at a time writes."""

    def write_now(self, data: memoryview) -> int:
        """Bytes taken without waiting, 0 if none. Raises :class:`SinkGone`."""

    def write_patiently(self, data: memoryview) -> int:
        """At least one byte taken, however long it takes. Raises :class:`SinkGone`."""

    def interrupt(self) -> None:
        """Make a :meth:`write_patiently` in another thread raise :class:`SinkGone`."""

    def finish(self) -> None:
        """End of file; called exactly once, with no write going on."""


class Outbox:
    """A queue in front of a sink; a thread of its own only once the sink was slow."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._state = threading.Condition()
        self._backlog: deque[memoryview] = deque()
        self._waiting = 0
        self._pump: threading.Thread | None = None
        self._ended = False
        self._gone = False
        self._failure: LaunchpadError | None = None

    def put(self, data: bytes) -> None:
        """Queue ``data``; dropped where nobody reads it. Raises what the sink raised."""
        rest = memoryview(bytes(data))
        with self._state:
            self._check()
            if self._gone or self._ended:
                return
            if not self._backlog:
                rest = self._write_now(rest)
            if not rest or self._gone:
                return
            self._backlog.append(rest)
            self._waiting += len(rest)
            if self._pump is None:
                self._pump = threading.Thread(target=self._run, name="launchpad-stdin", daemon=True)
                self._pump.start()
            self._state.notify_all()
            self._state.wait_for(lambda: self._waiting <= SEND_LIMIT or self._gone)
            self._check()

    def end(self) -> None:
        """End of file after everything queued; may be called twice."""
        with self._state:
            if self._ended or self._gone:
                return
            self._ended = True
            self._state.notify_all()
            if self._pump is not None:
                return
            self._gone = True
        self._sink.finish()

    def abandon(self) -> None:
        """Drop what waits and end; never blocks; may be called twice."""
        with self._state:
            finished = self._gone and self._pump is None
            self._gone = True
            self._drop()
            if finished:
                return
            if self._pump is not None:
                # The thread sees it, wherever it stands, and calls `finish` itself.
                self._sink.interrupt()
                return
        self._sink.finish()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _drop(self) -> None:
        self._backlog.clear()
        self._waiting = 0
        self._state.notify_all()

    def _write_now(self, rest: memoryview) -> memoryview:
        try:
            while rest:
                count = self._sink.write_now(rest)
                if not count:
                    break
                rest = rest[count:]
        except SinkGone:
            return memoryview(b"")
        return rest

    def _run(self) -> None:
        while True:
            with self._state:
                self._state.wait_for(lambda: self._backlog or self._ended or self._gone)
                if self._gone or not self._backlog:
                    self._gone = True
                    break
                data = self._backlog[0]
            try:
                count = self._sink.write_patiently(data)
            except SinkGone:
                count = 0
            except LaunchpadError as error:
                self._failure = error
                count = 0
            with self._state:
                if not count:
                    self._gone = True
                    self._drop()
                elif self._backlog:
                    self._backlog[0] = data[count:]
                    if not self._backlog[0]:
                        self._backlog.popleft()
                    self._waiting -= count
                    self._state.notify_all()
        self._sink.finish()
