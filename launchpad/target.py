"""Where a job runs: the grammar of targets, checked before anything is connected."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from launchpad.errors import UsageError
from launchpad.nearest import nearest

_CTID = r"[1-9][0-9]{2,8}"
# RFC 1123 labels, as Proxmox demands of a container's hostname. A word that begins like a CTID is
# taken for a mistyped one.
_CONTAINER_NAME = r"(?![0-9]{3})[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?"
_HOST = r"[A-Za-z0-9_](?:[A-Za-z0-9._+-]{0,253})"
_IPV6 = r"[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?"
_USER = r"[A-Za-z0-9._][A-Za-z0-9._@\\+-]{0,254}"
_ALIAS = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_GRAMMAR = (
    "write HOST:CTID, HOST:NAME, USER@HOST:CTID, ssh://USER@HOST:PORT/CTID, local or an alias"
)


@dataclass(frozen=True, slots=True)
class Host:
    """A Proxmox node as the ssh client would be told of it."""

    name: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        name = f"[{self.name}]" if ":" in self.name else self.name
        return f"{self.user}@{name}" if self.user else name


@dataclass(frozen=True, slots=True)
class ThisMachine:
    """``local``: no ssh, no pct."""

    def __str__(self) -> str:
        return "local"


@dataclass(frozen=True, slots=True)
class LocalContainer:
    """``local:101``: launchpad runs on the node itself.

    ``number``: the CTID behind a name, where it is known already.
    """

    container: int | str
    number: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"local:{self.container}"


@dataclass(frozen=True, slots=True)
class RemoteContainer:
    """A container behind ssh. ``container``: its CTID, or its name; ``number`` as above."""

    host: Host
    container: int | str
    number: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.host.port is None:
            return f"{self.host}:{self.container}"
        return f"ssh://{self.host}:{self.host.port}/{self.container}"


Target = ThisMachine | LocalContainer | RemoteContainer


def _refuse(text: str, why: str, advice: str = _GRAMMAR) -> UsageError:
    return UsageError(f"{text!r} is not a target: {why}", advice=advice)


def _container(text: str, whole: str) -> int | str:
    if re.fullmatch(_CTID, text):
        return int(text)
    if text.isdigit():
        raise _refuse(whole, f"{text} is not a CTID (100 to 999999999, no leading zero)")
    if not re.fullmatch(_CONTAINER_NAME, text):
        raise _refuse(whole, f"{text!r} is neither a CTID nor a container's name")
    return text


def _host(text: str, whole: str, port: int | None = None) -> Host:
    user, at, name = text.rpartition("@")
    if at and not re.fullmatch(_USER, user):
        raise _refuse(whole, f"{user!r} is not a user name")
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
        if ":" not in name or not re.fullmatch(_IPV6, name):
            raise _refuse(whole, f"[{name}] is not an IPv6 address")
    elif ":" in name:
        raise _refuse(
            whole,
            "a host with colons needs brackets",
            f"an IPv6 address: [{name}]:CTID; a port: ssh://HOST:PORT/CTID",
        )
    elif not re.fullmatch(_HOST, name):
        raise _refuse(whole, f"{name!r} is not a host name" if name else "the host is missing")
    return Host(name, user if at else None, port)


def _url(text: str) -> RemoteContainer:
    authority, slash, container = text.removeprefix("ssh://").partition("/")
    if not slash:
        raise _refuse(text, "the container is missing", "write ssh://USER@HOST:PORT/CTID")
    match = re.fullmatch(r"(?P<host>.*?)(?::(?P<port>[0-9]{1,5}))?", authority)
    port_text = match["port"] if match else None
    if match is None or (port_text and not 0 < int(port_text) < 65536):  # noqa: PLR2004
        raise _refuse(text, f"{authority!r} is not USER@HOST:PORT")
    port = int(port_text) if port_text else None
    return RemoteContainer(_host(match["host"], text, port), _container(container, text))


def parse_target(text: str, aliases: Mapping[str, str] | None = None) -> Target:
    """The target that ``text`` names; ``aliases`` maps names of the config file to targets.

    Raises :class:`~launchpad.errors.UsageError` with the form that was meant.
    """
    if aliases and text in aliases:
        return parse_target(aliases[text])
    if text.startswith("ssh://"):
        return _url(text)
    if text == "local":
        return ThisMachine()
    host, colon, container = text.rpartition(":")
    if not colon:
        if not re.fullmatch(_ALIAS, text):
            raise _refuse(text, "no container is named")
        near = nearest(text, aliases or ())
        meant = near[0] if near else f"{text}:CTID"
        raise _refuse(
            text,
            "no container is named, and no alias has that name",
            f"did you mean {meant}? Known aliases: {', '.join(sorted(aliases or ())) or 'none'}",
        )
    if not container:
        raise _refuse(text, "the container is missing")
    if host == "local":
        return LocalContainer(_container(container, text))
    return RemoteContainer(_host(host, text), _container(container, text))


def split_path(text: str) -> tuple[str, str] | None:
    """``TARGET:PATH`` divided: at the first ``:/`` or ``:~/`` behind any ``ssh://``; None if none.

    ``:~`` at the very end is the home itself.
    """
    start = len("ssh://") if text.startswith("ssh://") else 0
    match = re.compile(r":(?=/|~/|~\Z)").search(text, start)
    return (text[: match.start()], text[match.end() :]) if match else None
