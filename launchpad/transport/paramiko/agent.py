"""The ssh agent: which keys it holds, and signatures with them.

The protocol is draft-miller-ssh-agent. paramiko has a client of its own, but it knows only
``SSH_AUTH_SOCK``, reads every key whether it can use it or not, and waits for ever.
"""

import socket
import struct
from pathlib import Path
from typing import NamedTuple

_REQUEST_IDENTITIES, _IDENTITIES_ANSWER = 11, 12
_SIGN_REQUEST, _SIGN_RESPONSE = 13, 14

# Flags of a sign request: with which hash an RSA key signs.
_RSA_FLAGS = {"rsa-sha2-256": 2, "rsa-sha2-512": 4}

# Seconds to list keys. A signature may need a touch or a click, and gets the time of a login.
_PATIENCE = 5.0

_ANSWER_LIMIT = 1024 * 1024


class AgentFault(Exception):
    """The agent is not there, refuses, or speaks nonsense."""


class AgentIdentity(NamedTuple):
    """A key that the agent holds: its public half in wire form, and its comment."""

    blob: bytes
    comment: str


class Agent:
    """A connection to an agent. Raises :class:`AgentFault` from every method but ``close``."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(_PATIENCE)
            self._socket.connect(str(path))
        except (OSError, UnicodeError) as error:
            self._socket.close()
            raise AgentFault(f"{path}: {error}") from error

    def identities(self) -> list[AgentIdentity]:
        """In the agent's own order."""
        answer = self._ask(bytes([_REQUEST_IDENTITIES]), _IDENTITIES_ANSWER, _PATIENCE)
        count, rest = int.from_bytes(answer[:4], "big"), answer[4:]
        found = []
        for _ in range(count):
            blob, rest = _take(rest)
            comment, rest = _take(rest)
            found.append(AgentIdentity(blob, comment.decode("utf-8", "replace")))
        return found

    def sign(self, blob: bytes, data: bytes, algorithm: str, *, timeout: float) -> bytes:
        """A signature in wire form."""
        flags = _RSA_FLAGS.get(algorithm.removesuffix("-cert-v01@openssh.com"), 0)
        request = bytes([_SIGN_REQUEST]) + _put(blob) + _put(data) + struct.pack(">I", flags)
        return _take(self._ask(request, _SIGN_RESPONSE, timeout))[0]

    def close(self) -> None:
        self._socket.close()

    def _ask(self, request: bytes, expected: int, timeout: float) -> bytes:
        try:
            self._socket.settimeout(timeout)
            self._socket.sendall(_put(request))
            length = struct.unpack(">I", self._read(4))[0]
            if not 0 < length <= _ANSWER_LIMIT:
                raise AgentFault("the agent's answer makes no sense")
            answer = self._read(length)
        except (OSError, struct.error) as error:
            raise AgentFault(f"the agent does not answer: {error}") from error
        if answer[0] != expected:
            raise AgentFault("the agent refused")
        return answer[1:]

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise AgentFault("the agent hung up")
            data += more
        return data


def _put(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _take(data: bytes) -> tuple[bytes, bytes]:
    """A string of the ssh wire format (RFC 4251 §5), and what follows it."""
    if len(data) < 4:  # noqa: PLR2004
        raise AgentFault("the agent's answer is cut short")
    end = 4 + int.from_bytes(data[:4], "big")
    if len(data) < end:
        raise AgentFault("the agent's answer is cut short")
    return data[4:end], data[end:]
