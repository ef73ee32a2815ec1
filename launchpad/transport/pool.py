"""Connections that outlive a call, for programs that make many: one login, several commands.

Only paramiko's connections are kept: over the ssh program every command is a process of its own
(its ``ControlMaster`` shares connections), and this machine has none.
"""

import copy
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from launchpad.errors import LaunchpadError, LineLost, SshError
from launchpad.transport.base import (
    Channel,
    ConnectOptions,
    Endpoint,
    Terminal,
    Transport,
    TransportName,
)
from launchpad.transport.paramiko import ParamikoTransport

# Commands at once on one connection. sshd allows ten (sshd_config(5), MaxSessions), and takes a
# moment to notice that one has ended.
SESSIONS = 8

# A connection that nobody uses is closed after this long (seconds).
IDLE = 60.0

# How long a connection that was not in use may take to show that it is still there (seconds).
_PATIENCE = 5.0

_Key = tuple[object, ...]
Dial = Callable[[], Transport]


@dataclass(slots=True, eq=False)
class _Shared:
    """A connection, and how many use it now."""

    transport: ParamikoTransport
    leases: int = 1
    reaper: threading.Timer | None = None


@dataclass(slots=True, eq=False)
class _Attempt:
    """Somebody is logging in: others wait for that, and share what comes of it."""

    done: threading.Event = field(default_factory=threading.Event)
    error: LaunchpadError | None = None


class Pool:
    """Hands out connections that are there already. For any number of threads.

    Logins to one host are made one after the other: an sshd turns away whoever comes when ten are
    at it (sshd_config(5), MaxStartups).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: dict[_Key, list[_Shared]] = {}
        self._attempts: dict[_Key, _Attempt] = {}
        self._limits: dict[_Key, int] = {}
        self._process = os.getpid()
        self._of_parents: list[object] = []

    def lease(self, endpoint: Endpoint, options: ConnectOptions, dial: Dial) -> Transport:
        """A transport to ``endpoint``: over a connection that is there, else by ``dial``.

        Raises what ``dial`` raises, also where somebody else's attempt, waited for, failed.
        """
        key = (endpoint, options.ssh_config, options.choice, options.share)
        transport = self._acquire(key, dial)
        return _Lease(self, key, dial, transport) if isinstance(transport, _Shared) else transport

    def close(self) -> None:
        """Close what nobody uses now; the rest is closed when it is given back."""
        with self._lock:
            self._leave_to_parent()
            everything = [shared for group in self._shared.values() for shared in group]
            self._shared.clear()
        for shared in everything:
            if shared.reaper is not None:
                shared.reaper.cancel()
            if not shared.leases:
                shared.transport.close()

    def _acquire(self, key: _Key, dial: Dial) -> "_Shared | Transport":
        while True:
            with self._lock:
                self._leave_to_parent()
                shared = self._take(key)
                attempt = self._attempts.get(key)
                is_mine = shared is None and attempt is None
                if is_mine:
                    attempt = self._attempts[key] = _Attempt()
            if shared is not None:
                # Also in use it may be dead without anybody knowing: the machine may have slept.
                if shared.transport.answers(_PATIENCE):
                    return shared
                self._discard(key, shared)
            elif attempt is not None and is_mine:
                return self._dial(key, attempt, dial)
            elif attempt is not None:
                attempt.done.wait()
                if attempt.error is not None:
                    raise copy.copy(attempt.error)

    def _take(self, key: _Key) -> _Shared | None:
        limit = self._limits.get(key, SESSIONS)
        for shared in self._shared.get(key, ()):
            if shared.leases < limit:
                shared.leases += 1
                if shared.reaper is not None:
                    shared.reaper.cancel()
                    shared.reaper = None
                return shared
        return None

    def _dial(self, key: _Key, attempt: _Attempt, dial: Dial) -> "_Shared | Transport":
        try:
            transport = dial()
        except LaunchpadError as error:
            attempt.error = error
            raise
        else:
            if not isinstance(transport, ParamikoTransport):
                return transport
            shared = _Shared(transport)
            with self._lock:
                self._shared.setdefault(key, []).append(shared)
            return shared
        finally:
            with self._lock:
                self._attempts.pop(key, None)
            attempt.done.set()

    def give_back(self, key: _Key, shared: _Shared) -> None:
        """One user less of that connection."""
        with self._lock:
            shared.leases -= 1
            if shared.leases:
                return
            if shared in self._shared.get(key, ()):
                shared.reaper = threading.Timer(IDLE, self._reap, (key, shared))
                shared.reaper.daemon = True
                shared.reaper.start()
                return
        shared.transport.close()

    def another(self, key: _Key, crowded: _Shared, dial: Dial) -> "_Shared | None":
        """A connection of its own for somebody whom ``crowded`` has no room for.

        None where nobody else is on it: then the host refuses for another reason.
        """
        with self._lock:
            if crowded.leases < 2:  # noqa: PLR2004
                return None
            self._limits[key] = min(crowded.leases - 1, self._limits.get(key, SESSIONS))
        self.give_back(key, crowded)
        found = self._acquire(key, dial)
        return found if isinstance(found, _Shared) else None

    def _discard(self, key: _Key, shared: _Shared) -> None:
        with self._lock:
            group = self._shared.get(key, [])
            if shared in group:
                group.remove(shared)
            shared.leases -= 1
        # Whoever else is on it finds out the sooner.
        shared.transport.close()

    def _reap(self, key: _Key, shared: _Shared) -> None:
        with self._lock:
            if shared.leases or shared not in self._shared.get(key, ()):
                return
            self._shared[key].remove(shared)
        shared.transport.close()

    def _leave_to_parent(self) -> None:
        """After a fork the connections are the parent's: closing them here would end them there."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._of_parents.append((self._shared, self._attempts))
            self._shared, self._attempts = {}, {}


class _Lease:
    """See :class:`launchpad.transport.base.Transport`: closing it gives the connection back."""

    def __init__(self, pool: Pool, key: _Key, dial: Dial, shared: _Shared) -> None:
        self._pool, self._key, self._dial = pool, key, dial
        self._shared = shared
        self._channels: list[Channel] = []
        self._closed = False

    @property
    def transport(self) -> ParamikoTransport:
        """The connection itself, for a way through it to another host."""
        return self._shared.transport

    @property
    def name(self) -> TransportName:
        return self.transport.name

    @property
    def reason(self) -> str:
        return self.transport.reason

    @property
    def user(self) -> str:
        return self.transport.user

    def open(self, words: Sequence[str], *, terminal: Terminal | None = None) -> Channel:
        channel = self._open(words, terminal)
        self._channels.append(channel)
        return channel

    def _open(self, words: Sequence[str], terminal: Terminal | None) -> Channel:
        while True:
            try:
                return self.transport.open(words, terminal=terminal)
            except LineLost:
                raise
            except SshError:
                # The host allows fewer commands at once than most. Nothing was run.
                roomy = self._pool.another(self._key, self._shared, self._dial)
                if roomy is None:
                    raise
                self._shared = roomy

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for channel in self._channels:
            channel.close()
        self._pool.give_back(self._key, self._shared)


def unpooled(transport: Transport | None) -> Transport | None:
    """The connection behind a lease; any other transport itself."""
    return transport.transport if isinstance(transport, _Lease) else transport
