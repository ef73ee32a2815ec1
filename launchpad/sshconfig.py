"""What ssh itself would do for a host.

Where there is an ssh program, it is asked (``ssh -G``): Include, Match, canonical names and
the defaults of the distribution then come out right by construction. Else paramiko's parser
has to do (:mod:`launchpad.sshconfig_parser`), with a warning about what it cannot read.

The names of the options are those of ssh_config(5).
"""

import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from launchpad.command import to_bytes, to_text
from launchpad.errors import ClientError
from launchpad.sshconfig_values import (
    Jump,
    StrictHostKeyChecking,
    agent,
    check_names,
    expand,
    parse_jumps,
    paths,
    seconds,
    split_files,
    strictness,
    token_values,
    unless_none,
)

__all__ = [
    "DEFAULT_PORT",
    "Ahead",
    "Jump",
    "Question",
    "SshConfig",
    "StrictHostKeyChecking",
    "check_names",
    "file_arguments",
    "host_arguments",
    "parse",
    "ssh_program",
]

DEFAULT_PORT = 22

# What stands in ``ssh -G`` when the user configured no IdentityFile.
_DEFAULT_IDENTITY_PREFIX = "~/.ssh/id_"


@dataclass(frozen=True, slots=True, kw_only=True)
class SshConfig:
    """The options that decide how one host is reached; paths and tokens are expanded.

    ``alias``: the name the user typed; ``hostname``: the name or address to connect to.
    ``identity_agent``: path of the agent's socket, None: no agent. ``jumps``: in the order of
    travel; empty: connect directly. ``connect_timeout`` and ``server_alive_interval``: seconds,
    None or 0 where unset. ``ciphers``, ``macs``, ``key_exchanges``, ``host_key_algorithms``: what
    ssh would offer, empty where unknown. ``everything``: each option as ``ssh -G`` printed it.
    """

    alias: str
    hostname: str
    user: str
    port: int = DEFAULT_PORT
    identity_files: tuple[Path, ...] = ()
    identities_configured: bool = False
    identities_only: bool = False
    identity_agent: Path | None = None
    certificate_files: tuple[Path, ...] = ()
    password_authentication: bool = True
    keyboard_interactive: bool = True
    password_prompts: int = 3
    jumps: tuple[Jump, ...] = ()
    proxy_command: str | None = None
    address_family: str = "any"
    bind_address: str | None = None
    connect_timeout: float | None = None
    server_alive_interval: int = 0
    server_alive_count_max: int = 3
    user_known_hosts: tuple[Path, ...] = ()
    global_known_hosts: tuple[Path, ...] = ()
    host_key_alias: str | None = None
    hash_known_hosts: bool = False
    strict_host_key_checking: StrictHostKeyChecking = StrictHostKeyChecking.ASK
    host_key_algorithms: tuple[str, ...] = ()
    compression: bool = False
    ciphers: tuple[str, ...] = ()
    macs: tuple[str, ...] = ()
    key_exchanges: tuple[str, ...] = ()
    control_master: bool = False
    control_path: Path | None = None
    everything: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """For messages: ``user@host:port`` as it was resolved."""
        host = f"[{self.hostname}]" if ":" in self.hostname else self.hostname
        return f"{self.user}@{host}:{self.port}"

    def option(self, name: str) -> str | None:
        """An option that has no field of its own; None where unset or ``none``."""
        values = self.everything.get(name.lower(), ())
        return values[0] if values and values[0].lower() != "none" else None

    def enabled(self, name: str) -> bool:
        """Whether a yes/no option that has no field of its own is on."""
        return (self.option(name) or "no").lower() in {"yes", "true"}


def ssh_program() -> str | None:
    """Where the ssh program is, if there is one."""
    for directory in os.get_exec_path():
        program = os.path.join(directory, "ssh")  # noqa: PTH118 (shutil.which costs 4 ms to import)
        if os.access(program, os.X_OK):
            return program
    return None


def host_arguments(host: str, user: str | None, port: int | None) -> list[str]:
    """How to name a host to the ssh program; ``--`` keeps it from ever being an option."""
    arguments = []
    if user is not None:
        arguments += ["-l", user]
    if port is not None:
        arguments += ["-p", str(port)]
    return [*arguments, "--", host]


def file_arguments(config_file: Path | None) -> list[str]:
    """``-F FILE`` where the user named a file."""
    return ["-F", str(config_file)] if config_file is not None else []


class Question:
    """``ssh -G``, running while the caller does something else.

    Raises :class:`ClientError` at :meth:`answer`: no such file, an option that ssh refuses,
    or no answer within ``timeout`` seconds (``Match exec`` may run anything).
    """

    def __init__(
        self, program: str, host: str, user: str | None, port: int | None, config_file: Path | None
    ) -> None:
        check_names(host, user)
        self.about = (host, user, port, config_file)
        self._host, self._file = host, config_file
        words = [program, *file_arguments(config_file), "-T", "-G"]
        words += host_arguments(host, user, port)
        try:
            self._process = subprocess.Popen(
                list(map(to_bytes, words)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise ClientError(f"{program} cannot be run", details=str(error)) from error

    def answer(self, timeout: float) -> SshConfig:
        """What ssh said, parsed."""
        try:
            output, complaint = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            self.cancel()
            raise ClientError(
                f"ssh -G {self._host} gave no answer within {timeout:g} s",
                advice="a Match exec or CanonicalizeHostname of your ssh configuration may hang",
            ) from error
        if self._process.returncode != 0:
            source = self._file or "your ssh configuration"
            raise ClientError(
                f"ssh cannot use {source} for {self._host}",
                details=to_text(complaint).strip(),
                advice=f"ssh -G {self._host}   shows the same fault",
            )
        return parse(self._host, to_text(output))

    def cancel(self) -> None:
        """Forget the question."""
        # What it has started (Match exec) is in its session, and holds its pipes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


class Ahead:
    """A :class:`Question` that was asked on suspicion, before anybody knew that it will be."""

    def __init__(self, question: Question | None = None) -> None:
        self._question = question

    def take(self, wanted: tuple[str, str | None, int | None, Path | None]) -> Question | None:
        """The question, if it is about that host, user, port and configuration file."""
        if self._question is None or self._question.about != wanted:
            return None
        question, self._question = self._question, None
        return question

    def drop(self) -> None:
        """Nobody wants the answer any more; may be called twice."""
        question, self._question = self._question, None
        if question is not None:
            question.cancel()


def parse(alias: str, text: str) -> SshConfig:
    """The output of ``ssh -G`` for ``alias``."""
    everything: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.strip():
            name = name.lower()
            everything[name] = (*everything.get(name, ()), value.strip())
    return from_options(alias, everything)


def from_options(alias: str, everything: Mapping[str, tuple[str, ...]]) -> SshConfig:
    """Options by their lower-case names, each with all its values, as one :class:`SshConfig`."""

    def first(name: str, default: str = "") -> str:
        return everything.get(name, (default,))[0]

    def switched_on(name: str, *, default: bool = False) -> bool:
        return first(name, "yes" if default else "no").lower() in {"yes", "true", "force-commands"}

    def names(name: str) -> tuple[str, ...]:
        return tuple(part for part in first(name).split(",") if part)

    hostname = first("hostname", alias)
    port = int(first("port", str(DEFAULT_PORT)))
    user = first("user") or pwd.getpwuid(os.getuid()).pw_name
    key_alias = unless_none(first("hostkeyalias"))
    tokens = token_values(alias, hostname, port, user, key_alias)
    proxy_command = unless_none(first("proxycommand"))
    identities = everything.get("identityfile", ())
    control_path = unless_none(first("controlpath"))
    return SshConfig(
        alias=alias,
        hostname=hostname,
        user=user,
        port=port,
        identity_files=tuple(paths(identities, tokens)),
        identities_configured=any(
            not file.startswith(_DEFAULT_IDENTITY_PREFIX) for file in identities
        ),
        identities_only=switched_on("identitiesonly"),
        identity_agent=agent(first("identityagent"), tokens),
        certificate_files=tuple(paths(everything.get("certificatefile", ()), tokens)),
        password_authentication=switched_on("passwordauthentication", default=True),
        keyboard_interactive=switched_on("kbdinteractiveauthentication", default=True),
        password_prompts=int(first("numberofpasswordprompts", "3")),
        jumps=parse_jumps(unless_none(first("proxyjump")) or ""),
        proxy_command=expand(proxy_command, tokens) if proxy_command else None,
        address_family=first("addressfamily", "any"),
        bind_address=unless_none(first("bindaddress")),
        connect_timeout=seconds(first("connecttimeout", "none")),
        server_alive_interval=int(seconds(first("serveraliveinterval", "0")) or 0),
        server_alive_count_max=int(first("serveralivecountmax", "3")),
        user_known_hosts=tuple(paths(split_files(first("userknownhostsfile")), tokens)),
        global_known_hosts=tuple(paths(split_files(first("globalknownhostsfile")), tokens)),
        host_key_alias=key_alias,
        hash_known_hosts=switched_on("hashknownhosts"),
        strict_host_key_checking=strictness(first("stricthostkeychecking", "ask")),
        host_key_algorithms=names("hostkeyalgorithms"),
        compression=switched_on("compression"),
        ciphers=names("ciphers"),
        macs=names("macs"),
        key_exchanges=names("kexalgorithms"),
        control_master=first("controlmaster", "no").lower() not in {"no", "false"},
        control_path=next(iter(paths([control_path], tokens)), None) if control_path else None,
        everything=dict(everything),
    )
