"""The wording of what can go wrong on the way to a host, the same for every transport."""

from collections.abc import Sequence

from launchpad.errors import (
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LineLost,
    LoginRefused,
    SshError,
)


def ssh_command(host: str, user: str | None, port: int | None, config_file: str | None) -> str:
    """The ``ssh`` that a user would type for the host, for advice."""
    words = ["ssh"]
    if config_file:
        words += ["-F", config_file]
    if port:
        words += ["-p", str(port)]
    words.append(f"{user}@{host}" if user else host)
    return " ".join(words)


def unreachable(host: str, why: str, *, details: str = "", advice: str = "") -> HostUnreachable:
    """``host``: as ``name port N``; ``why``: a clause such as ``connection refused``."""
    return HostUnreachable(
        f"cannot reach {host}: {why}",
        details=details,
        advice=advice or "is the host up, and name and port right?",
    )


def name_unknown(host: str, name: str, why: str) -> HostUnreachable:
    """The name has no address."""
    return unreachable(
        host,
        f"the name {name} is not known ({why})",
        advice="is the name right? ssh -G shows what your ssh configuration makes of it",
    )


class Dropped(HostUnreachable):
    """The host hung up before it said who it is: nothing has happened there, try again."""


def dropped(host: str, details: str) -> Dropped:
    """The same for the second time."""
    return Dropped(
        f"cannot reach {host}: it closed the connection before it said anything, twice",
        details=details,
        advice="an sshd does that when too many are logging in at once (MaxStartups), or when it"
        " has barred this address; try again in a minute",
    )


def silent_port(host: str, seconds: float) -> HostUnreachable:
    """The port takes connections and says nothing."""
    return unreachable(
        host,
        f"the port is open, but no ssh server answered within {seconds:g} s",
        advice="is that the port of sshd? an overloaded host looks the same",
    )


def not_ssh(host: str, greeting: str) -> HostUnreachable:
    """Something else than ssh answers."""
    return unreachable(
        host,
        "what answers there is not an ssh server",
        details=greeting,
        advice="is that the port of sshd?",
    )


def key_unknown(name: str, key: str, command: str, *, details: str = "") -> HostKeyUnknown:
    """``name``: as known_hosts would have it; ``key``: type and fingerprint, as far as known."""
    shown = f": it shows {key}" if key else ""
    return HostKeyUnknown(
        f"the host key of {name} is not known{shown}",
        details=details,
        advice=f"{command} true   asks you about it once; compare the fingerprint with the host's"
        " own (there: ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub). ssh-keyscan alone proves"
        " nothing",
    )


def key_changed(
    name: str, key: str, *, known_in: str = "", removal: str = "", details: str = ""
) -> HostKeyChanged:
    """``known_in``: ``file:line`` of the other key; ``removal``: the command that forgets it."""
    shown = f": it shows {key}" if key else ""
    other = f", another one is known in {known_in}" if known_in else ""
    removal = removal or f"ssh-keygen -R '{name}'"
    return HostKeyChanged(
        f"the host key of {name} has changed{shown}{other}",
        details=details,
        advice="somebody may be between you and the host. If it was installed anew, ask its admin"
        f" for the new fingerprint, then: {removal}",
    )


def key_revoked(name: str, key: str, known_in: str) -> HostKeyChanged:
    """``@revoked`` in known_hosts."""
    return HostKeyChanged(
        f"the host key of {name} is marked as revoked in {known_in}: {key}",
        advice="that key has been stolen or retired; the host must show another one",
    )


def login_refused(
    address: str,
    *,
    offered: str,
    accepts: str = "",
    not_offered: Sequence[str] = (),
    advice: str = "",
) -> LoginRefused:
    """The server took nothing.

    ``address``: ``user@host:port``; ``offered``: the keys and passwords that were tried;
    ``not_offered``: the others, each with the reason.
    """
    parts = [f"offered: {offered or 'nothing, there is no usable key'}"]
    if not_offered:
        parts.append(f"not offered: {', '.join(not_offered)}")
    if accepts:
        parts.append(f"the host accepts: {accepts}")
    return LoginRefused(
        f"{address} refused the login",
        details="; ".join(parts),
        advice=advice or "put the right public key into authorized_keys of that user on the host",
    )


def login_silent(address: str, seconds: float) -> LoginRefused:
    """The host, or the agent, did not answer."""
    return LoginRefused(
        f"the login to {address} got no answer within {seconds:g} s",
        advice="is the host overloaded, or does a key wait for a touch or a click?",
    )


def jump_refused(host: str, jump: str, why: str) -> HostUnreachable:
    """A jump host cannot connect on, or may not."""
    return unreachable(
        host,
        f"the jump host {jump} gets no connection there ({why})",
        advice="can the jump host reach it, and does it allow forwarding (AllowTcpForwarding)?",
    )


def too_many_tries(address: str, *, offered: str, details: str = "") -> LoginRefused:
    """MaxAuthTries of the server is used up."""
    parts = [f"offered: {offered}" if offered else "", details]
    return LoginRefused(
        f"{address} refused the login after too many attempts (MaxAuthTries of its sshd)",
        details="; ".join(part for part in parts if part),
        advice="name the right key for this host in ~/.ssh/config: IdentityFile PATH and"
        " IdentitiesOnly yes",
    )


def line_lost(address: str, why: str) -> LineLost:
    """The connection ended in mid-call."""
    return LineLost(
        f"the connection to {address} was lost: {why}",
        advice="is the host up, and the network between? what ran there may run on: look before"
        " you repeat it",
    )


def no_channel(address: str, why: str) -> SshError:
    """The connection stands, but the host runs no command on it."""
    return SshError(
        f"{address} opened no session: {why}",
        advice="sshd limits sessions on one connection (MaxSessions), and accounts may be limited"
        " to forwarding or to one command",
    )
