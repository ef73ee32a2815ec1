"""A conversation that finds its container, should that live on another node than was thought.

pct says so before anything has run in the container, so what was sent until then is sent again to
the right node. Whoever uses the channel notices nothing of it.
"""

import time
from typing import Protocol

from launchpad.errors import LaunchpadError
from launchpad.scripts import RemoteCall
from launchpad.transport.base import (
    Channel,
    Completed,
    Event,
    Exited,
    Output,
    Stream,
    Terminal,
    Transport,
)

# What is kept of what was said or sent before the container answered (bytes).
_KEPT = 65536
_KEPT_TO_SEND = 4 * 1024 * 1024


class Way(Protocol):
    """What the channel needs of a contact."""

    @property
    def link(self) -> Transport:
        """The connection to the node where the container should be."""

    def explain(self, done: Completed) -> LaunchpadError:
        """Why a call did not get into the container."""

    def find_again(self, error: LaunchpadError, call: RemoteCall, said: bytes) -> RemoteCall:
        """The call for where the container is now; raises ``error`` if there is no such place.

        ``said``: what complaints were heard until now, and are of no interest any more.
        """


class FollowingChannel:
    """See :class:`launchpad.transport.base.Channel`: ``call`` on its way into a container."""

    def __init__(self, way: Way, call: RemoteCall, terminal: Terminal | None = None) -> None:
        self._way = way
        self._call = call
        self._terminal = terminal
        self._sent: list[bytes] = []
        self._stdin_closed = False
        # The container has answered, or it is too late to begin again.
        self._settled = False
        self._said = {stream: bytearray() for stream in Stream}
        self._channel = self._open()

    def _open(self) -> Channel:
        channel = self._way.link.open(self._call.words, terminal=self._terminal)
        for data in (self._call.data, *self._sent):
            if data:
                channel.send(data)
        if self._stdin_closed:
            channel.close_stdin()
        return channel

    def send(self, data: bytes) -> None:
        # What is typed is meant for what is seen at that moment: a password, say.
        if not self._settled and self._terminal is None:
            self._sent.append(data)
            if sum(map(len, self._sent)) > _KEPT_TO_SEND:
                self._settle()
        self._channel.send(data)

    def close_stdin(self) -> None:
        self._stdin_closed = True
        self._channel.close_stdin()

    def receive(self, timeout: float | None) -> Event | None:
        ends = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if ends is None else max(0.0, ends - time.monotonic())
            try:
                event = self._channel.receive(left)
            except LaunchpadError as failure:
                if self._settled:
                    raise
                self._begin_again(failure)
                continue
            if self._settled or event is None:
                return event
            match event:
                case Output(stream, data):
                    self._hear(stream, data)
                case Exited(code):
                    stdout, stderr = (bytes(self._said[stream]) for stream in Stream)
                    if self._goes_on(self._way.explain(Completed(stdout, stderr, code))):
                        continue
            return event

    def resize(self, columns: int, rows: int) -> None:
        self._channel.resize(columns, rows)

    def close(self) -> None:
        self._channel.close()

    def _hear(self, stream: Stream, data: bytes) -> None:
        said = self._said[stream]
        said += data
        if stream is Stream.STDOUT and self._call.marker in said:
            self._settle()
        else:
            # Half a marker may stand at the end.
            del said[: max(0, len(said) - _KEPT)]

    def _settle(self) -> None:
        self._settled = True
        self._sent.clear()

    def _goes_on(self, error: LaunchpadError) -> bool:
        try:
            self._begin_again(error)
        except LaunchpadError:
            # Whoever uses the channel asks for the explanation once more, and gets the same.
            self._settled = True
            return False
        return True

    def _begin_again(self, error: LaunchpadError) -> None:
        # On a terminal all is said on one stream.
        stream = Stream.STDOUT if self._terminal else Stream.STDERR
        self._call = self._way.find_again(error, self._call, bytes(self._said[stream]))
        self._channel.close()
        for said in self._said.values():
            said.clear()
        self._channel = self._open()
