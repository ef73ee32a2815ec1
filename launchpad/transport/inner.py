"""Hosts behind a host: the other nodes of a cluster, reached through the one that is known."""

from dataclasses import replace
from pathlib import Path

from launchpad.sshconfig import DEFAULT_PORT, Jump, SshConfig, StrictHostKeyChecking
from launchpad.transport.base import Endpoint, Inner


def behind(front: SshConfig, endpoint: Endpoint, inner: Inner) -> SshConfig:
    """How to reach ``inner``: as ``front``, the host in front of it, but through that one.

    User, keys and all the rest are those of the host in front. Connection sharing is not: a
    ControlPath without the right tokens would lead back to the host in front.
    """
    config = replace(
        front,
        alias=inner.name,
        hostname=inner.address,
        port=DEFAULT_PORT,
        host_key_alias=inner.name,
        jumps=(Jump(endpoint.host, endpoint.user, endpoint.port),),
        proxy_command=None,
        control_master=False,
        control_path=None,
    )
    if inner.known_hosts is None:
        return config
    return replace(
        config,
        user_known_hosts=(inner.known_hosts,),
        global_known_hosts=(),
        strict_host_key_checking=StrictHostKeyChecking.YES,
    )


def settings(config: SshConfig, inner: Inner) -> list[str]:
    """What makes a call of the ssh program for the host in front one for ``inner`` (``-o``)."""
    (jump,) = config.jumps
    chosen = [
        f"HostName={config.hostname}",
        f"Port={config.port}",
        f"HostKeyAlias={config.host_key_alias}",
        f"ProxyJump={_hop(jump)}",
        "ControlMaster=no",
        "ControlPath=none",
    ]
    if inner.known_hosts is not None:
        chosen += [
            f"UserKnownHostsFile={_quoted(inner.known_hosts)}",
            "GlobalKnownHostsFile=none",
            "StrictHostKeyChecking=yes",
        ]
    return chosen


def _hop(jump: Jump) -> str:
    host = f"[{jump.host}]" if ":" in jump.host else jump.host
    user = f"{jump.user}@" if jump.user else ""
    return f"{user}{host}:{jump.port}" if jump.port else f"{user}{host}"


def _quoted(path: Path) -> str:
    """A path as ssh_config(5) reads it back; it may hold blanks, and ``%`` begins a token."""
    text = str(path).replace("%", "%%")
    return f'"{text}"'


def has_a_way(named: SshConfig, stranger: SshConfig) -> bool:
    """Whether the user's configuration says how to reach ``named``.

    ``stranger``: what it says of a name that nobody has, so that what holds for all hosts does not
    count.
    """
    return (
        named.hostname.lower() != named.alias.lower()
        or named.port != stranger.port
        or named.jumps != stranger.jumps
        or named.option("proxycommand") != stranger.option("proxycommand")
    )
