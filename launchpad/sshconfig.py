"""What ssh itself would do for a host.

Where there is an ssh program, it is asked (``ssh -G``): Include, Match, canonical names and
the defaults of the distribution then come out right by construction. Else paramiko's parser
has to do (:mod:`launchpad.sshconfig_parser`), with a warning about what it cannot read.

The names of the options are those of ssh_config(5).
"""

import os
import pwd
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from launchpad.command import to_bytes, to_text
from launchpad.errors import ClientError, UsageError

DEFAULT_PORT = 22

# What ssh itself refuses in the names of hosts and users (valid_hostname and valid_ruser of
# OpenSSH 9.6): nothing that begins like an option or that a ProxyCommand's shell would interpret.
_HOST_NAME = re.compile(r"(?!-)[^\s\x00-\x1f\x7f'`\"$\\;&<>|(){}]+")
_USER_NAME = re.compile(r"(?!-)(?:(?!\s-|\\$)[^\x00-\x1f\x7f'`\";&<>|(){}])+")

# What stands in ``ssh -G`` when the user configured no IdentityFile.
_DEFAULT_IDENTITY_PREFIX = "~/.ssh/id_"


class StrictHostKeyChecking(StrEnum):
    """What to do about a host key that no file knows (a changed key is refused in any case)."""

    YES = "yes"
    ASK = "ask"
    ACCEPT_NEW = "accept-new"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Jump:
    """One hop of ProxyJump, as the user spelt it."""

    host: str
    user: str | None = None
    port: int | None = None


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


def check_names(host: str, user: str | None) -> None:
    """Refuse what no host or user is called, before it gets near a command line.

    Raises :class:`UsageError`.
    """
    if not _HOST_NAME.fullmatch(host):
        raise UsageError(f"not the name of a host: {host!r}")
    if user is not None and not _USER_NAME.fullmatch(user):
        raise UsageError(f"not the name of a user: {user!r}")


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
        self._process.kill()
        self._process.communicate()


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
    key_alias = _unless_none(first("hostkeyalias"))
    tokens = _tokens(alias, hostname, port, user, key_alias)
    proxy_command = _unless_none(first("proxycommand"))
    identities = everything.get("identityfile", ())
    control_path = _unless_none(first("controlpath"))
    return SshConfig(
        alias=alias,
        hostname=hostname,
        user=user,
        port=port,
        identity_files=tuple(_paths(identities, tokens)),
        identities_configured=any(
            not file.startswith(_DEFAULT_IDENTITY_PREFIX) for file in identities
        ),
        identities_only=switched_on("identitiesonly"),
        identity_agent=_agent(first("identityagent"), tokens),
        certificate_files=tuple(_paths(everything.get("certificatefile", ()), tokens)),
        password_authentication=switched_on("passwordauthentication", default=True),
        keyboard_interactive=switched_on("kbdinteractiveauthentication", default=True),
        password_prompts=int(first("numberofpasswordprompts", "3")),
        jumps=parse_jumps(_unless_none(first("proxyjump")) or ""),
        proxy_command=_expand(proxy_command, tokens) if proxy_command else None,
        address_family=first("addressfamily", "any"),
        bind_address=_unless_none(first("bindaddress")),
        connect_timeout=_seconds(first("connecttimeout", "none")),
        server_alive_interval=int(_seconds(first("serveraliveinterval", "0")) or 0),
        server_alive_count_max=int(first("serveralivecountmax", "3")),
        user_known_hosts=tuple(_paths(_split_files(first("userknownhostsfile")), tokens)),
        global_known_hosts=tuple(_paths(_split_files(first("globalknownhostsfile")), tokens)),
        host_key_alias=key_alias,
        hash_known_hosts=switched_on("hashknownhosts"),
        strict_host_key_checking=_strictness(first("stricthostkeychecking", "ask")),
        host_key_algorithms=names("hostkeyalgorithms"),
        compression=switched_on("compression"),
        ciphers=names("ciphers"),
        macs=names("macs"),
        key_exchanges=names("kexalgorithms"),
        control_master=first("controlmaster", "no").lower() not in {"no", "false"},
        control_path=next(iter(_paths([control_path], tokens)), None) if control_path else None,
        everything=dict(everything),
    )


def parse_jumps(text: str) -> tuple[Jump, ...]:
    """``ProxyJump``: ``[user@]host[:port]`` or ``ssh://…``, separated by commas.

    Raises :class:`ClientError` for a hop that cannot be read.
    """
    return tuple(_parse_jump(part.strip()) for part in text.split(",") if part.strip())


_JUMP = re.compile(
    r"(?:ssh://)?(?:(?P<user>.+)@)?(?:\[(?P<bracketed>[^\]]+)\]|(?P<host>[^:@\[\]]+|[0-9a-fA-F:]*:[0-9a-fA-F:.%]*))"
    r"(?::(?P<port>[0-9]+))?/?"
)


def _parse_jump(text: str) -> Jump:
    found = _JUMP.fullmatch(text)
    if found is None:
        raise ClientError(f"ProxyJump in your ssh configuration cannot be read: {text!r}")
    host = found["bracketed"] or found["host"]
    check_names(host, found["user"])
    return Jump(host, found["user"], int(found["port"]) if found["port"] else None)


def _unless_none(value: str) -> str | None:
    return value if value and value.lower() != "none" else None


def _strictness(value: str) -> StrictHostKeyChecking:
    match value.lower():
        case "yes" | "true":
            return StrictHostKeyChecking.YES
        case "no" | "false" | "off":
            return StrictHostKeyChecking.NO
        case "accept-new":
            return StrictHostKeyChecking.ACCEPT_NEW
        case _:
            return StrictHostKeyChecking.ASK


_TIME = re.compile(r"([0-9]+)([smhdw]?)", re.IGNORECASE)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def _seconds(value: str) -> float | None:
    """TIME FORMATS of sshd_config(5): ``90``, ``1m30s``; None for ``none``."""
    parts = _TIME.findall(value)
    if not parts or "".join(number + unit for number, unit in parts) != value:
        return None
    return float(sum(int(number) * _UNITS[unit.lower()] for number, unit in parts))


def _tokens(
    alias: str, hostname: str, port: int, user: str, key_alias: str | None
) -> dict[str, str]:
    """TOKENS of ssh_config(5), those that files and ProxyCommand may hold."""
    account = pwd.getpwuid(os.getuid())
    node = os.uname().nodename
    return {
        "%": "%",
        "d": account.pw_dir,
        "h": hostname,
        "i": str(os.getuid()),
        "k": key_alias or alias,
        "L": node.split(".")[0],
        "l": node,
        "n": alias,
        "p": str(port),
        "r": user,
        "u": account.pw_name,
    }


def _expand(text: str, tokens: Mapping[str, str]) -> str:
    return re.sub("%(.)", lambda found: tokens.get(found[1], found[0]), text)


def _expand_path(text: str, tokens: Mapping[str, str]) -> str:
    text = re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], found[0]), text)
    # ssh takes the home directory from the passwd database, not from HOME.
    if text == "~" or text.startswith("~/"):
        text = tokens["d"] + text[1:]
    elif text.startswith("~"):
        text = os.path.expanduser(text)  # noqa: PTH111 (the PathLib form raises for unknown users)
    return _expand(text, tokens)


def _paths(values: Iterable[str], tokens: Mapping[str, str]) -> list[Path]:
    return [Path(_expand_path(value, tokens)) for value in values if _unless_none(value)]


def _split_files(value: str) -> Sequence[str]:
    """``ssh -G`` prints several files side by side and quotes nothing; names may hold blanks."""
    files: list[str] = []
    for part in re.split(r" (?=[/~])", value):
        files += [part] if part.startswith(("/", "~")) else part.split()
    return files


def _agent(value: str, tokens: Mapping[str, str]) -> Path | None:
    """IdentityAgent: a path, ``none``, ``SSH_AUTH_SOCK``, or ``$VARIABLE``."""
    if value.lower() == "none":
        return None
    if value in {"", "SSH_AUTH_SOCK"}:
        value = os.environ.get("SSH_AUTH_SOCK", "")
    elif value.startswith("$") and not value.startswith("${"):
        value = os.environ.get(value[1:], "")
    return Path(_expand_path(value, tokens)) if value else None
