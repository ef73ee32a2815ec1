"""What the ssh program's own words mean.

Pure. The words are those of OpenSSH's log; whoever calls must know that ssh itself said them:
a command on the host can print the same and exit with 255 too.
"""

import re
from collections.abc import Callable

from launchpad.errors import ClientError, LaunchpadError, SshError
from launchpad.transport import faults
from launchpad.transport.base import Endpoint

_AUTHENTICATED = r'(?m)^Authenticated to .* using "(?P<method>[^"]+)"'


class _Words:
    """A log, and how to name the host in messages."""

    def __init__(self, log: str, endpoint: Endpoint, config_file: str | None) -> None:
        lines = [line.strip() for line in log.replace("\r", "\n").splitlines()]
        self.log = "\n".join(line.removeprefix("debug1: ") for line in lines)
        self.text = "\n".join(line for line in lines if line and not line.startswith("debug"))
        resolved = re.search(r"^Authenticating to (\S+) as '([^']*)'", self.log, re.MULTILINE)
        self.resolved = f"{resolved[2]}@{resolved[1]}" if resolved else ""
        self.address = self.resolved or str(endpoint)
        dialled = re.search(r"^Connecting to (\S+) \[.*\] port (\d+)", self.log, re.MULTILINE)
        port = f" port {endpoint.port}" if endpoint.port else ""
        self.host = f"{dialled[1]} port {dialled[2]}" if dialled else f"{endpoint.host}{port}"
        alias = re.search(r"^using hostkeyalias: (\S+)", self.log, re.MULTILINE)
        self.name = alias[1] if alias else _known_name(resolved, endpoint)
        self.command = faults.ssh_command(endpoint.host, endpoint.user, endpoint.port, config_file)

    def find(self, pattern: str) -> re.Match[str] | None:
        """In all of the log."""
        return re.search(pattern, self.log, re.MULTILINE)


def _known_name(resolved: re.Match[str] | None, endpoint: Endpoint) -> str:
    """The host as known_hosts has it."""
    host, port = endpoint.host, str(endpoint.port or 22)
    if resolved is not None:
        host, _, port = resolved[1].rpartition(":")
    return host if port == "22" else f"[{host}]:{port}"


_Reading = Callable[[_Words, re.Match[str]], LaunchpadError]


def _key_changed(words: _Words, found: re.Match[str]) -> LaunchpadError:
    del found
    key = words.find(r"The fingerprint for the (\S+) key sent by .* is\s+(\S+?)\.?$")
    known_in = words.find(r"Offending .*key in (\S+:\d+)")
    removal = words.find(r"^(ssh-keygen -f .*)$")
    name = words.find(r"^Host key for (\S+) has changed")
    return faults.key_changed(
        name[1] if name else words.name,
        f"{key[1]} {key[2]}" if key else "",
        known_in=known_in[1] if known_in else "",
        removal=removal[1] if removal else "",
    )


def _key_revoked(words: _Words, found: re.Match[str]) -> LaunchpadError:
    del found
    named = words.find(r"^(\S+) host key for (\S+) was revoked")
    shown = words.find(r"^Server host key: (\S+) (\S+)")
    return faults.key_revoked(
        named[2] if named else words.name,
        f"{shown[1]} {shown[2]}" if shown else "its key",
        "known_hosts",
    )


def _key_unknown(words: _Words, found: re.Match[str]) -> LaunchpadError:
    del found
    shown = words.find(r"^Server host key: (\S+) (\S+)")
    return faults.key_unknown(words.name, f"{shown[1]} {shown[2]}" if shown else "", words.command)


def _too_many(words: _Words, found: re.Match[str]) -> LaunchpadError:
    del found
    return faults.too_many_tries(words.address, offered=_offered(words))


def _denied(words: _Words, found: re.Match[str]) -> LaunchpadError:
    missing = re.findall(r"^no such identity: (\S+): ", words.text, re.MULTILINE)
    broken = re.findall(r'^Load key "([^"]+)": (.*)', words.text, re.MULTILINE)
    return faults.login_refused(
        words.resolved or found["address"] or words.address,
        offered=_offered(words),
        accepts=found["ways"].replace(",", ", "),
        not_offered=[f"{file} does not exist" for file in missing]
        + [f"{file} cannot be used ({why})" for file, why in broken],
        advice=f"{words.command} -v   shows what was tried",
    )


def _offered(words: _Words) -> str:
    keys = re.findall(r"^Offering public key: (.*? SHA256:\S+)", words.log, re.MULTILINE)
    return ", ".join(dict.fromkeys(keys))


def _unresolved(words: _Words, found: re.Match[str]) -> LaunchpadError:
    return faults.name_unknown(words.host, found[1], found[2])


def _no_connection(words: _Words, found: re.Match[str]) -> LaunchpadError:
    return faults.unreachable(f"{found[1]} port {found[2]}", found[3].lower(), details=words.text)


def _dropped(words: _Words, found: re.Match[str]) -> LaunchpadError:
    del found
    return faults.dropped(words.host, words.text)


def _late(words: _Words, found: re.Match[str]) -> LaunchpadError:
    return faults.unreachable(words.host, found[0].strip(".").lower(), details=words.text)


def _not_ssh(words: _Words, found: re.Match[str]) -> LaunchpadError:
    del found
    return faults.not_ssh(words.host, words.text)


def _incompatible(words: _Words, found: re.Match[str]) -> LaunchpadError:
    return SshError(
        f"{words.host} and this ssh have no algorithm in common: {found[1]}",
        details=words.text,
        advice="update sshd there, or allow the old algorithm for that host in ~/.ssh/config",
    )


def _jump(words: _Words, found: re.Match[str]) -> LaunchpadError:
    return faults.jump_refused(words.host, "in between", found[1] or "no forwarding")


def _lost(words: _Words, found: re.Match[str]) -> LaunchpadError:
    return faults.line_lost(words.address, found[0].strip())


def _no_channel(words: _Words, found: re.Match[str]) -> LaunchpadError:
    return faults.no_channel(words.address, found[0].strip())


def _configuration(words: _Words, found: re.Match[str]) -> LaunchpadError:
    del found
    return ClientError("ssh cannot use your ssh configuration", details=words.text)


# The first that fits is the cause: ssh says the reason before the consequence.
_BEFORE_LOGIN: tuple[tuple[str, _Reading], ...] = (
    (r"REVOKED HOST KEY DETECTED", _key_revoked),
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED|has changed and you have requested", _key_changed),
    (r"^No \S+ host key is known for|^Host key verification failed", _key_unknown),
    (r"Too many authentication failures", _too_many),
    (r"^(?:(?P<address>\S+@\S+): )?Permission denied \((?P<ways>[^)]*)\)", _denied),
    (r"Could not resolve hostname (\S+): (.*)", _unresolved),
    (r"connect to host (\S+) port (\d+): (.*)", _no_connection),
    (r"open failed: (.*)|stdio forwarding failed", _jump),
    (r"^Connection timed out during banner exchange|^Connection to \S+ port \d+ timed out", _late),
    (r"Unable to negotiate with .*?: ([^.]*)", _incompatible),
    (r"banner line contains invalid|Bad remote protocol version|invalid protocol", _not_ssh),
    (r"(?:kex|ssh)_exchange_identification: |^Connection (?:closed|reset) by ", _dropped),
    (r"[Bb]ad configuration option|Bad owner or permissions", _configuration),
)

_AFTER_LOGIN: tuple[tuple[str, _Reading], ...] = (
    (r"^Timeout, server .* not responding.*", _lost),
    (r"^client_loop: .*", _lost),
    (r"^Read from remote host .*", _lost),
    (r"^(?:packet|ssh)_\w+: Connection .*", _lost),
    (r"^Connection (?:to|closed by|reset by) .*", _lost),
    (r"^Received disconnect.*|^Disconnected from .*", _lost),
    (r"^.*session request failed.*", _no_channel),
    (r"^.*(?:exec|shell|PTY allocation) request failed on channel.*", _no_channel),
    (r"^.*open failed: .*", _no_channel),
    (r"^mux_client\w*: .*", _lost),
)


def authenticated_by(words: bytes) -> str | None:
    """The method that the server accepted, where ssh's verbose log names it."""
    found = re.search(_AUTHENTICATED, _text(words))
    return found["method"] if found else None


def describe_login(words: bytes) -> list[str]:
    """For ``-v``: which host key was known, and what was accepted for the login."""
    log = _Words(_text(words), Endpoint("the host"), None)
    said = []
    known = log.find(r"^Host '(\S+)' is known and matches the (\S+) host key")
    shown = log.find(r"^Server host key: \S+ (\S+)")
    place = log.find(r"^Found (?:\S+ )?key in (\S+:\d+)")
    if known and shown:
        where = f" in {place[1]}" if place else ""
        said.append(f"host key of {known[1]} is known{where}: {known[2]} {shown[1]}")
    method = authenticated_by(words)
    key = log.find(r"^Server accepts key: (.*?) (\S+) (SHA256:\S+)")
    if method == "publickey" and key:
        said.append(f"{log.address}: logged in with {key[1]} ({key[2]} {key[3]})")
    elif method:
        said.append(f"{log.address}: logged in with {method}")
    elif b"master session id: " in words:
        said.append("the connection is shared with a master that was there already")
    return said


def classify(
    words: bytes, endpoint: Endpoint, config_file: str | None = None
) -> LaunchpadError | None:
    """The failure that ``words`` of the ssh program describe; None where they describe none."""
    text = _text(words)
    log = _Words(text, endpoint, config_file)
    stages = (_AFTER_LOGIN,) if re.search(_AUTHENTICATED, text) else (_BEFORE_LOGIN, _AFTER_LOGIN)
    for stage in stages:
        for pattern, reading in stage:
            found = re.search(pattern, log.text, re.MULTILINE)
            if found is not None:
                return reading(log, found)
    return None


def _text(words: bytes) -> str:
    return words.decode("utf-8", "replace")
