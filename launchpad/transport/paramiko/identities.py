"""Which keys to offer to a host, and in which order."""

import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from launchpad.sshconfig import SshConfig
from launchpad.transport.base import ConnectOptions
from launchpad.transport.paramiko import keys, terminal
from launchpad.transport.paramiko.agent import Agent, AgentFault, AgentIdentity
from launchpad.transport.paramiko.keys import Certificate, KeyFault, KeyFile, Signer
from launchpad.transport.paramiko.knownhosts import key_type_of


@dataclass(frozen=True, slots=True)
class Identity:
    """A key, or a certificate for it, that can be offered. ``blob``: what the server is shown."""

    label: str
    blob: bytes
    sign: Signer

    @property
    def name(self) -> str:
        """The type, as in the wire form."""
        return key_type_of(self.blob) or ""

    @property
    def needs_touch(self) -> bool:
        """Whether a signature with it may have to be confirmed on a token."""
        return self.name.startswith("sk-")

    def __str__(self) -> str:
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        kind = self.name.removeprefix("ssh-").removesuffix("-cert-v01@openssh.com")
        return f"{self.label} ({kind.removesuffix('@openssh.com')} SHA256:{digest})"


@dataclass(slots=True)
class Keyring:
    """Keys of this machine's user, opened once however many hosts lie on the way."""

    options: ConnectOptions
    _agents: dict[Path, tuple[Agent, list[AgentIdentity]]] = field(default_factory=dict)
    _signers: dict[Path, tuple[bytes, Signer]] = field(default_factory=dict)

    def close(self) -> None:
        for agent, _identities in self._agents.values():
            agent.close()
        self._agents.clear()
        self._signers.clear()

    def identities(self, config: SshConfig, skipped: list[str]) -> Iterator[Identity]:
        """Each key once: configured ones that need no question, the agent's others, encrypted ones.

        ``skipped`` receives what was not offered, and why.
        """
        held = self._held(config, skipped)
        certificates = self._certificates(config)
        offered: set[bytes] = set()
        locked: list[KeyFile] = []

        def offer(blob: bytes, label: str, sign: Signer) -> Iterator[Identity]:
            if blob in offered:
                return
            offered.add(blob)
            for certificate in certificates:
                if certificate.certifies(blob):
                    yield Identity(str(certificate.path), certificate.blob, sign)
            yield Identity(label, blob, sign)

        for path in config.identity_files:
            try:
                file = keys.examine(path)
            except KeyFault as fault:
                file = None
                public = keys.public_key(path)
                if public is None or public not in held:
                    skipped.append(f"{path} {fault}")
                    continue
            else:
                public = file.blob if file else keys.public_key(path.with_name(f"{path.name}.pub"))
            if public is not None and public in held:
                yield from offer(public, f"{path} through the agent", held[public][1])
            elif file is not None and file.encrypted and path not in self._signers:
                locked.append(file)
            elif file is not None:
                try:
                    blob, sign = self._open(file, None)
                except KeyFault as fault:
                    skipped.append(f"{path} {fault}")
                else:
                    yield from offer(blob, str(path), sign)
            elif config.identities_configured:
                skipped.append(f"{path} does not exist")
        if not config.identities_only:
            # A key that wants to be touched comes last: every signature asks for one.
            for blob, (comment, sign) in sorted(
                held.items(), key=lambda item: (key_type_of(item[0]) or "").startswith("sk-")
            ):
                yield from offer(blob, f"{comment} of the agent", sign)
        for file in locked:
            if file.blob is None or file.blob not in offered:
                yield from self._unlocked(file, config, skipped, offer)

    def _unlocked(
        self,
        file: KeyFile,
        config: SshConfig,
        skipped: list[str],
        offer: Callable[[bytes, str, Signer], Iterator[Identity]],
    ) -> Iterator[Identity]:
        if not self.options.interactive:
            skipped.append(
                f"{file.path} is encrypted, and there is no terminal to ask for its passphrase"
            )
            return
        for _attempt in range(config.password_prompts):
            phrase = terminal.ask(f"Enter passphrase for key '{file.path}': ", echo=False)
            if not phrase:
                break
            try:
                blob, sign = self._open(file, phrase)
            except PermissionError:
                continue
            except KeyFault as fault:
                skipped.append(f"{file.path} {fault}")
                return
            yield from offer(blob, str(file.path), sign)
            return
        skipped.append(f"{file.path} is encrypted, and the passphrase was not given")

    def _open(self, file: KeyFile, passphrase: str | None) -> tuple[bytes, Signer]:
        if file.path not in self._signers:
            self._signers[file.path] = keys.load(file, passphrase)
        return self._signers[file.path]

    def _held(self, config: SshConfig, skipped: list[str]) -> dict[bytes, tuple[str, Signer]]:
        """What the agent holds: public half → comment and signer."""
        path = config.identity_agent
        if path is None:
            return {}
        try:
            if path not in self._agents:
                agent = Agent(path)
                self._agents[path] = (agent, agent.identities())
            agent, identities = self._agents[path]
        except AgentFault as fault:
            skipped.append(f"agent: {fault}")
            return {}
        return {
            identity.blob: (identity.comment, self._signer(agent, identity))
            for identity in identities
        }

    def _signer(self, agent: Agent, identity: AgentIdentity) -> Signer:
        def sign(data: bytes, algorithm: str) -> bytes:
            return agent.sign(identity.blob, data, algorithm, self.options.timeout)

        return sign

    def _certificates(self, config: SshConfig) -> list[Certificate]:
        """CertificateFile, and FILE-cert.pub beside each key, as ssh looks for them."""
        paths = [
            *config.certificate_files,
            *(path.with_name(f"{path.name}-cert.pub") for path in config.identity_files),
        ]
        found = (keys.read_certificate(path) for path in dict.fromkeys(paths))
        return [certificate for certificate in found if certificate is not None]
