"""An HTTP server at 127.0.0.1 of a container, its only network: it keeps what it is sent."""

from __future__ import annotations

import ctypes
import os
import queue
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.lab import Lab

_CLONE_NEWNET = 0x40000000


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody posted."""

    path: str
    type: str
    body: bytes


@dataclass(slots=True)
class Receiver:
    """What came in."""

    _messages: queue.Queue[Message] = field(default_factory=queue.Queue)

    def put(self, message: Message) -> None:
        self._messages.put(message)

    def next(self, timeout: float = 30.0) -> Message:
        """The next message; queue.Empty where none comes."""
        return self._messages.get(timeout=timeout)


@contextmanager
def receiver(lab: Lab, ctid: int, name: str) -> Iterator[Receiver]:
    """A server at port 80 of that container, under ``name`` there."""
    received = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.put(Message(self.path, self.headers["Content-Type"], body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = _listen_in(int(lab.command("pid", str(ctid))))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    # A busybox init leaves even the loopback down.
    lab.sh(ctid, 'ip link set lo up; echo "127.0.0.1 $1" >>/etc/hosts', name)
    try:
        yield received
    finally:
        lab.sh(ctid, 'grep -v " $1\\$" /etc/hosts >/tmp/hosts; cat /tmp/hosts >/etc/hosts', name)
        server.shutdown()
        server.server_close()
        thread.join()


def _listen_in(pid: int) -> socket.socket:
    """A listening socket in the network of that process; it stays there whoever uses it."""
    made: list[socket.socket | OSError] = []

    def enter() -> None:
        # Only this thread goes there, and it ends at once (setns(2)).
        try:
            namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            finally:
                os.close(namespace)
            made.append(socket.create_server(("127.0.0.1", 80)))
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    (result,) = made
    if isinstance(result, OSError):
        raise result
    return result
