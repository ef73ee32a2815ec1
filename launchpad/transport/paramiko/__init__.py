"""Hosts through paramiko, in this process: no other program has to be started.

This module imports neither paramiko nor anything slow: the connection is on its way to the host
while paramiko is being imported. For the same reason small values here are named tuples: a
frozen dataclass costs seven times as much when its module is loaded.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from launchpad.command import host_line
from launchpad.sshconfig import SshConfig
from launchpad.transport.base import Channel, ConnectOptions, Terminal, TransportName
from launchpad.transport.choice import NeedsSshProgram
from launchpad.transport.paramiko import loading, reach, trust
from launchpad.transport.paramiko.route import Resolve, route

if TYPE_CHECKING:
    from launchpad.transport.paramiko.session import Session


class ParamikoTransport:
    """See :class:`launchpad.transport.base.Transport`."""

    def __init__(self, session: "Session", reason: str) -> None:
        self._session = session
        self._reason = reason

    @property
    def name(self) -> TransportName:
        return "paramiko"

    @property
    def reason(self) -> str:
        return self._reason

    @property
    def user(self) -> str:
        return self._session.user

    def behind(
        self, config: SshConfig, options: ConnectOptions, reason: str
    ) -> "ParamikoTransport":
        """A transport to a host behind this one. Close it before this one.

        Raises :class:`~launchpad.errors.SshError`, :class:`~launchpad.errors.LoginRefused`.
        """
        from launchpad.transport.paramiko.session import behind

        known = trust.known_hosts(config, options)
        return ParamikoTransport(behind(self._session, config, known, options), reason)

    def answers(self, patience: float) -> bool:
        """Whether the host is still there: it is asked, and has ``patience`` seconds to answer."""
        return self._session.answers(patience)

    def open(self, words: Sequence[str], *, terminal: Terminal | None = None) -> Channel:
        return self._session.open(host_line(words), terminal)

    def close(self) -> None:
        self._session.close()


def connect(
    config: SshConfig, options: ConnectOptions, resolve: Resolve, reason: str
) -> ParamikoTransport:
    """Reach the host, check its key, and log in; the same for each jump host before it.

    Raises :class:`~launchpad.errors.SshError`, :class:`~launchpad.errors.LoginRefused`, and
    :class:`NeedsSshProgram` where the choice is free.
    """
    hosts = route(config, resolve)
    line = reach.InBackground(lambda: reach.reach_first(hosts[0], options))
    known = [trust.known_hosts(host, options) for host in hosts]
    if options.choice == "auto" and any(one.trusts_certificates_only for one in known):
        reach.InBackground(lambda: line.wait().close())
        raise NeedsSshProgram("its host key is vouched for by a certificate (@cert-authority)")
    loading.load()
    from launchpad.transport.paramiko.session import establish

    return ParamikoTransport(establish(hosts, known, line, options), reason)
