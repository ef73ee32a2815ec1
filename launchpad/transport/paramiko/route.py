"""The hosts on the way to a host (ProxyJump)."""

from collections.abc import Callable
from dataclasses import replace

from launchpad.errors import SshError
from launchpad.sshconfig import Jump, SshConfig

# More hosts than this one behind the other are a loop in the configuration.
_LONGEST = 16

# What the ssh configuration says about a jump host.
Resolve = Callable[[Jump], SshConfig]


def route(config: SshConfig, resolve: Resolve) -> list[SshConfig]:
    """The hosts to log in to, in order of travel; the last is ``config`` itself.

    As in ssh, the hops of one ProxyJump replace what the hops' own entries say about jumping,
    except for the first one, whose own entry counts. Raises :class:`SshError` for a loop.
    """
    hosts = [config]
    while hosts[0].jumps:
        if len(hosts) > _LONGEST:
            raise SshError(
                f"the jump hosts of {config.alias} lead in a circle",
                details=" <- ".join(host.alias for host in hosts[:4]) + " <- …",
                advice="see ProxyJump in your ssh configuration",
            )
        *earlier, last = hosts[0].jumps
        hop = resolve(last)
        if earlier:
            hop = replace(hop, jumps=tuple(earlier), proxy_command=None)
        hosts.insert(0, hop)
    return hosts
