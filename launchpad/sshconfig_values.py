"""Values of ssh's options, read: names, times, files, jump hosts, tokens (ssh_config(5))."""

import os
import pwd
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from launchpad.errors import ClientError, UsageError

# What ssh itself refuses in the names of hosts and users (valid_hostname and valid_ruser of
# OpenSSH 9.6): nothing that begins like an option or that a ProxyCommand's shell would interpret.
_HOST_NAME = r"(?!-)[^\s\x00-\x1f\x7f'`\"$\\;&<>|(){}]+"
_USER_NAME = r"(?!-)(?:(?!\s-|\\$)[^\x00-\x1f\x7f'`\";&<>|(){}])+"


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


def check_names(host: str, user: str | None) -> None:
    """Refuse what no host or user is called, before it gets near a command line.

    Raises :class:`UsageError`.
    """
    if not re.fullmatch(_HOST_NAME, host):
        raise UsageError(f"not the name of a host: {host!r}")
    if user is not None and not re.fullmatch(_USER_NAME, user):
        raise UsageError(f"not the name of a user: {user!r}")


def parse_jumps(text: str) -> tuple[Jump, ...]:
    """``ProxyJump``: ``[user@]host[:port]`` or ``ssh://…``, separated by commas.

    Raises :class:`ClientError` for a hop that cannot be read.
    """
    return tuple(_parse_jump(part.strip()) for part in text.split(",") if part.strip())


_JUMP = (
    r"(?:ssh://)?(?:(?P<user>.+)@)?"
    r"(?:\[(?P<bracketed>[^\]]+)\]"
    r"|(?P<name>[^:@\[\]]+)"
    r"|(?P<v6>[0-9a-fA-F]*:[0-9a-fA-F]*:[0-9a-fA-F:.]*(?:%\w+)?))"
    r"(?::(?P<port>[0-9]+))?/?"
)


def _parse_jump(text: str) -> Jump:
    found = re.fullmatch(_JUMP, text)
    if found is None:
        raise ClientError(f"ProxyJump in your ssh configuration cannot be read: {text!r}")
    host = found["bracketed"] or found["name"] or found["v6"]
    check_names(host, found["user"])
    return Jump(host, found["user"], int(found["port"]) if found["port"] else None)


def unless_none(value: str) -> str | None:
    """The value; None where it is empty or ``none``."""
    return value if value and value.lower() != "none" else None


def strictness(value: str) -> StrictHostKeyChecking:
    """StrictHostKeyChecking, in all its spellings."""
    match value.lower():
        case "yes" | "true":
            return StrictHostKeyChecking.YES
        case "no" | "false" | "off":
            return StrictHostKeyChecking.NO
        case "accept-new":
            return StrictHostKeyChecking.ACCEPT_NEW
        case _:
            return StrictHostKeyChecking.ASK


_TIME = r"([0-9]+)([smhdwSMHDW]?)"
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds(value: str) -> float | None:
    """TIME FORMATS of sshd_config(5): ``90``, ``1m30s``; None for ``none``."""
    parts = re.findall(_TIME, value)
    if not parts or "".join(number + unit for number, unit in parts) != value:
        return None
    return float(sum(int(number) * _UNITS[unit.lower()] for number, unit in parts))


def token_values(
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


def expand(text: str, tokens: Mapping[str, str]) -> str:
    """The text with its tokens replaced."""
    return re.sub("%(.)", lambda found: tokens.get(found[1], found[0]), text)


def _expand_path(text: str, tokens: Mapping[str, str]) -> str:
    text = re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], found[0]), text)
    # ssh takes the home directory from the passwd database, not from HOME.
    if text == "~" or text.startswith("~/"):
        text = tokens["d"] + text[1:]
    elif text.startswith("~"):
        text = os.path.expanduser(text)  # noqa: PTH111 (the PathLib form raises for unknown users)
    return expand(text, tokens)


def paths(values: Iterable[str], tokens: Mapping[str, str]) -> list[Path]:
    """File names, with tokens, variables and tildes replaced; without ``none``."""
    return [Path(_expand_path(value, tokens)) for value in values if unless_none(value)]


def split_files(value: str) -> Sequence[str]:
    """``ssh -G`` prints several files side by side and quotes nothing; names may hold blanks."""
    if '"' in value:
        import shlex

        return shlex.split(value)
    files: list[str] = []
    for part in re.split(r" (?=[/~])", value):
        files += [part] if part.startswith(("/", "~")) else part.split()
    return files


def agent(value: str, tokens: Mapping[str, str]) -> Path | None:
    """IdentityAgent: a path, ``none``, ``SSH_AUTH_SOCK``, or ``$VARIABLE``."""
    if value.lower() == "none":
        return None
    if value in {"", "SSH_AUTH_SOCK"}:
        value = os.environ.get("SSH_AUTH_SOCK", "")
    elif value.startswith("$") and not value.startswith("${"):
        value = os.environ.get(value[1:], "")
    return Path(_expand_path(value, tokens)) if value else None
