"""Whether to go on with the host key that a host shows: ssh's rules, never looser."""

import base64
import hashlib
import os
from pathlib import Path
from typing import NamedTuple, assert_never

from launchpad.errors import LaunchpadError
from launchpad.sshconfig import SshConfig, StrictHostKeyChecking
from launchpad.transport import faults
from launchpad.transport.base import ConnectOptions
from launchpad.transport.paramiko import terminal
from launchpad.transport.paramiko.knownhosts import (
    Changed,
    KnownHosts,
    Matches,
    Revoked,
    Unknown,
    hashed,
    key_type_of,
)

# How ssh calls the types of keys.
_NAMES = {"ssh-ed25519": "ED25519", "ssh-rsa": "RSA", "ssh-dss": "DSA"}

# The signature algorithms of host keys that paramiko can check, by the type of the key.
_ALGORITHMS = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}


class ShownKey(NamedTuple):
    """A public key in wire form, as the host showed it."""

    blob: bytes

    @property
    def key_type(self) -> str:
        return key_type_of(self.blob) or "unknown"

    @property
    def name(self) -> str:
        """Its type as ssh prints it."""
        return _NAMES.get(self.key_type, self.key_type.split("-")[0].upper())

    @property
    def fingerprint(self) -> str:
        """As ssh prints it."""
        digest = hashlib.sha256(self.blob).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.name} {self.fingerprint}"


def known_hosts(config: SshConfig, options: ConnectOptions) -> KnownHosts:
    """What the user's and the machine's files say about the host."""
    files = (*config.user_known_hosts, *config.global_known_hosts)
    return KnownHosts(files, config.hostname, config.port, config.host_key_alias, options.note)


def key_algorithms(config: SshConfig, known: KnownHosts) -> tuple[str, ...]:
    """The host key algorithms to ask for: recorded types first, as ssh orders them.

    Where the most preferred type is recorded, the order stays (``order_hostkeyalgs`` of OpenSSH).
    """
    supported = [name for names in _ALGORITHMS.values() for name in names]
    wanted = [name for name in config.host_key_algorithms if name in supported] or supported
    recorded = {name for key_type in known.key_types for name in _ALGORITHMS.get(key_type, ())}
    if wanted[0] in recorded:
        return tuple(wanted)
    return tuple(sorted(wanted, key=lambda name: name not in recorded))


def check(key: ShownKey, known: KnownHosts, config: SshConfig, options: ConnectOptions) -> None:
    """Return only where the key may be trusted; a new one is recorded if that is wanted.

    Raises :class:`~launchpad.errors.HostKeyChanged`, :class:`~launchpad.errors.HostKeyUnknown`.
    """
    match known.verdict(key.blob):
        case Matches(place):
            options.note(f"host key of {known.name} is known in {place}: {key}")
        case Revoked(place):
            raise faults.key_revoked(known.name, str(key), place)
        case Changed(place):
            file = place.rpartition(":")[0]
            raise faults.key_changed(
                known.name,
                str(key),
                known_in=place,
                removal=f"ssh-keygen -f '{file}' -R '{known.name}'",
            )
        case Unknown():
            _meet(key, known, config, options)
        case never:
            assert_never(never)


def _meet(key: ShownKey, known: KnownHosts, config: SshConfig, options: ConnectOptions) -> None:
    """A key that no file knows."""
    match config.strict_host_key_checking:
        case StrictHostKeyChecking.ASK if options.interactive:
            if not _user_agrees(key, known, config):
                raise _unknown(key, known, config, options)
        case StrictHostKeyChecking.ASK | StrictHostKeyChecking.YES:
            raise _unknown(key, known, config, options)
        case StrictHostKeyChecking.ACCEPT_NEW | StrictHostKeyChecking.NO:
            pass
        case never:
            assert_never(never)
    _record(key, known, config, options)


def _unknown(
    key: ShownKey, known: KnownHosts, config: SshConfig, options: ConnectOptions
) -> LaunchpadError:
    file = str(options.ssh_config) if options.ssh_config else None
    details = ""
    if known.has_authority:
        details = "known_hosts has a certificate authority for it: use --transport openssh"
    return faults.key_unknown(
        known.name, str(key), faults.ssh_command(config.alias, None, None, file), details=details
    )


def _user_agrees(key: ShownKey, known: KnownHosts, config: SshConfig) -> bool:
    question = (
        f"The authenticity of host '{known.name} ({config.hostname})' can't be established.\n"
        f"{key.name} key fingerprint is {key.fingerprint}.\n"
        "Are you sure you want to continue connecting (yes/no/[fingerprint])? "
    )
    while True:
        answer = terminal.ask(question).strip()
        if answer.lower() == "yes" or answer == key.fingerprint:
            return True
        if answer.lower() == "no":
            return False
        question = "Please type 'yes', 'no' or the fingerprint: "


def _record(key: ShownKey, known: KnownHosts, config: SshConfig, options: ConnectOptions) -> None:
    """Append to the user's first file, as ssh does; a file that cannot be written is a warning."""
    if not config.user_known_hosts:
        return
    file = config.user_known_hosts[0]
    name = hashed(known.name, os.urandom(20)) if config.hash_known_hosts else known.name
    line = f"{name} {key.key_type} {base64.b64encode(key.blob).decode()}\n"
    try:
        _append(file, line.encode())
    except OSError as error:
        options.warn(f"the host key of {known.name} was not added to {file}: {error.strerror}")
    else:
        options.warn(f"permanently added {known.name} ({key}) to {file}")


def _append(file: Path, line: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
