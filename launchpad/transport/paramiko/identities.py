"""Which keys to offer to a host, and in which order."""

import base64
import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from launchpad.sshconfig import SshConfig
from launchpad.transport.base import ConnectOptions
from launchpad.transport.paramiko import keys, terminal
from launchpad.transport.paramiko.agent import Agent, AgentFault, AgentIdentity
from launchpad.transport.paramiko.keys import Certificate, KeyFault, KeyFile, Signer
from launchpad.transport.paramiko.knownhosts import key_type_of


class Identity(NamedTuple):
    """A key, or a certificate for it, that can be offered. ``blob``: what the server sees."""

    label: str
    blob: bytes
    sign: Signer

    @property
    def name(self) -> str:
        """The type, as in the wire form."""
        return key_type_of(self.blob) or ""

    def __str__(self) -> str:
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        kind = self.name.removeprefix("ssh-").removesuffix("-cert-v01@openssh.com")
        return f"{self.label} ({kind.removesuffix('@openssh.com')} SHA256:{digest})"


class Keyring:
    """Agents and key files of this user, opened once however many hosts lie on the way."""

    def __init__(self, options: ConnectOptions) -> None:
        self.options = options
        self._agents: dict[Path, tuple[Agent, list[AgentIdentity]]] = {}
        self._opened: dict[Path, tuple[bytes, Signer]] = {}

    def close(self) -> None:
        """Close the agents and forget the keys."""
        for agent, _identities in self._agents.values():
            agent.close()
        self._agents.clear()
        self._opened.clear()

    def agent(self, path: Path) -> tuple[Agent, list[AgentIdentity]]:
        """An agent and what it holds. Raises :class:`AgentFault`."""
        if path not in self._agents:
            agent = Agent(path)
            try:
                self._agents[path] = (agent, agent.identities())
            except AgentFault:
                agent.close()
                raise
        return self._agents[path]

    def is_open(self, file: KeyFile) -> bool:
        """Whether the file can be used without a passphrase."""
        return not file.encrypted or file.path in self._opened

    def open(self, file: KeyFile, passphrase: str | None) -> tuple[bytes, Signer]:
        """Public half and signer. Raises what :func:`keys.load` raises."""
        if file.path not in self._opened:
            self._opened[file.path] = keys.load(file, passphrase)
        return self._opened[file.path]


class Offering:
    """The keys for one host, each once.

    First what the configuration names and can be used without a question, then the agent's other
    keys, then encrypted files. ``skipped`` collects what was not offered, and why.
    """

    def __init__(self, keyring: Keyring, config: SshConfig) -> None:
        self._keyring = keyring
        self._config = config
        self._offered: set[bytes] = set()
        self._locked: list[KeyFile] = []
        self.skipped: list[str] = []

    def __iter__(self) -> Iterator[Identity]:
        held = self._held()
        for path in self._config.identity_files:
            yield from self._configured(path, held)
        if not self._config.identities_only:
            # A key that wants to be touched comes last: every signature asks for one.
            for blob, (comment, sign) in sorted(held.items(), key=_wants_touch):
                yield from self._offer(blob, f"{comment} of the agent", sign)
        for file in self._locked:
            if file.blob is None or file.blob not in self._offered:
                yield from self._unlocked(file)

    def _offer(self, blob: bytes, label: str, sign: Signer) -> Iterator[Identity]:
        """The certificates for a key, then the key itself."""
        if blob in self._offered:
            return
        self._offered.add(blob)
        for certificate in self._certificates():
            if certificate.certifies(blob):
                yield Identity(str(certificate.path), certificate.blob, sign)
        yield Identity(label, blob, sign)

    def _configured(self, path: Path, held: dict[bytes, tuple[str, Signer]]) -> Iterator[Identity]:
        file, fault = None, ""
        try:
            file = keys.examine(path)
        except KeyFault as error:
            fault = str(error)
        public = file.blob if file else _public_half(path)
        if public is not None and public in held:
            yield from self._offer(public, f"{path} through the agent", held[public][1])
        elif file is None:
            if fault or self._config.identities_configured:
                self.skipped.append(f"{path} {fault or 'does not exist'}")
        elif self._keyring.is_open(file):
            yield from self._opened(file, None)
        else:
            self._locked.append(file)

    def _opened(self, file: KeyFile, passphrase: str | None) -> Iterator[Identity]:
        try:
            blob, sign = self._keyring.open(file, passphrase)
        except KeyFault as fault:
            self.skipped.append(f"{file.path} {fault}")
        else:
            yield from self._offer(blob, str(file.path), sign)

    def _unlocked(self, file: KeyFile) -> Iterator[Identity]:
        if not self._keyring.options.interactive:
            self.skipped.append(
                f"{file.path} is encrypted, and there is no terminal to ask for its passphrase"
            )
            return
        for _attempt in range(self._config.password_prompts):
            phrase = terminal.ask(f"Enter passphrase for key '{file.path}': ", echo=False)
            if not phrase:
                break
            try:
                self._keyring.open(file, phrase)
            except PermissionError:
                continue
            except KeyFault as fault:
                self.skipped.append(f"{file.path} {fault}")
                return
            yield from self._opened(file, None)
            return
        self.skipped.append(f"{file.path} is encrypted, and its passphrase was not given")

    def _held(self) -> dict[bytes, tuple[str, Signer]]:
        """What the agent holds: public half → comment and signer."""
        path = self._config.identity_agent
        if path is None:
            return {}
        try:
            agent, identities = self._keyring.agent(path)
        except AgentFault as fault:
            self.skipped.append(f"agent: {fault}")
            return {}
        timeout = self._keyring.options.timeout
        return {
            identity.blob: (identity.comment, partial(agent.sign, identity.blob, timeout=timeout))
            for identity in identities
        }

    def _certificates(self) -> list[Certificate]:
        """CertificateFile, and FILE-cert.pub beside each key, as ssh looks for them."""
        config = self._config
        beside = (path.with_name(f"{path.name}-cert.pub") for path in config.identity_files)
        paths = dict.fromkeys((*config.certificate_files, *beside))
        found = (keys.read_certificate(path) for path in paths)
        return [certificate for certificate in found if certificate is not None]


def _wants_touch(held: tuple[bytes, tuple[str, Signer]]) -> bool:
    return (key_type_of(held[0]) or "").startswith("sk-")


def _public_half(path: Path) -> bytes | None:
    """Of a key whose private half is not in a file: the file itself, or ``FILE.pub``."""
    return keys.public_key(path) or keys.public_key(path.with_name(f"{path.name}.pub"))
