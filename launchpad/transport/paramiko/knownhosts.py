"""What the known_hosts files say about a host (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).

Pure but for reading the files. The verdict is ssh's own: any key recorded for the name makes
another key a changed one, whatever its type; a name with a port falls back to the bare name,
but only to find the very same key there.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from launchpad.command import to_text

SSH_PORT = 22

_KEY_TYPES = frozenset(
    {
        "ssh-ed25519",
        "ssh-rsa",
        "ssh-dss",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    }
)


class Marker(Enum):
    """What a line is about."""

    KEY = ""
    AUTHORITY = "@cert-authority"
    REVOKED = "@revoked"


class KnownKey(NamedTuple):
    """A line that names the host. ``place``: ``file:line``."""

    marker: Marker
    key_type: str
    blob: bytes
    place: str


class Matches(NamedTuple):
    """The very key is known for the host."""

    known_in: str


class Unknown(NamedTuple):
    """No key is known for the host."""


class Changed(NamedTuple):
    """Only other keys are known for the host."""

    known_in: str


class Revoked(NamedTuple):
    """The key must not be used by anybody."""

    known_in: str


Verdict = Matches | Unknown | Changed | Revoked


def known_name(hostname: str, port: int, alias: str | None) -> str:
    """The name under which ssh looks a host up."""
    if alias:
        return alias.lower()
    return hostname.lower() if port == SSH_PORT else f"[{hostname.lower()}]:{port}"


class KnownHosts:
    """The keys of one host, from several files.

    ``note`` receives a line for each line that cannot be read; those are skipped.
    """

    def __init__(
        self,
        files: Iterable[Path],
        hostname: str,
        port: int,
        alias: str | None,
        note: Callable[[str], None],
    ) -> None:
        self.name = known_name(hostname, port, alias)
        bare = hostname.lower() if not alias and port != SSH_PORT else None
        self._keys: list[KnownKey] = []
        self._keys_without_port: list[KnownKey] = []
        for file in files:
            try:
                lines = file.read_bytes().split(b"\n")
            except FileNotFoundError:
                continue
            except OSError as error:
                note(f"{file} cannot be read: {error.strerror}")
                continue
            for number, line in enumerate(lines, 1):
                place = f"{file}:{number}"
                try:
                    fields = _fields(line)
                    if fields is None:
                        continue
                    pattern, marker, rest = fields
                    if matches(pattern, self.name):
                        self._keys.append(_key(marker, rest, place))
                    if bare is not None and matches(pattern, bare):
                        self._keys_without_port.append(_key(marker, rest, place))
                except ValueError as error:
                    note(f"{place} is skipped: {error}")

    @property
    def key_types(self) -> tuple[str, ...]:
        """The types of the keys that are recorded for the host."""
        types = (key.key_type for key in self._keys if key.marker is Marker.KEY)
        return tuple(dict.fromkeys(types))

    @property
    def has_authority(self) -> bool:
        """Whether certificates of the host would be trusted."""
        return any(key.marker is Marker.AUTHORITY for key in self._keys)

    @property
    def trusts_certificates_only(self) -> bool:
        """Whether nothing but a certificate can make the host known."""
        return self.has_authority and not self.key_types

    def verdict(self, blob: bytes) -> Verdict:
        """About the public key that the host shows, in its wire form."""
        found = _verdict(self._keys, blob)
        if isinstance(found, Unknown):
            fallback = _verdict(self._keys_without_port, blob)
            if not isinstance(fallback, Changed):
                return fallback
        return found


def _verdict(keys: list[KnownKey], blob: bytes) -> Verdict:
    revoked = [key for key in keys if key.marker is Marker.REVOKED and key.blob == blob]
    if revoked:
        return Revoked(revoked[0].place)
    known = [key for key in keys if key.marker is Marker.KEY]
    for key in known:
        if key.blob == blob:
            return Matches(key.place)
    return Changed(known[-1].place) if known else Unknown()


def _fields(line: bytes) -> tuple[bytes, Marker, list[bytes]] | None:
    """Host patterns, marker, and the rest; None for blank lines and comments."""
    fields = line.split()
    if not fields or fields[0].startswith(b"#"):
        return None
    marker = Marker.KEY
    if fields[0].startswith(b"@"):
        try:
            marker = Marker(to_text(fields[0]))
        except ValueError:
            raise ValueError("unknown marker") from None
        del fields[0]
    if len(fields) < 3:  # noqa: PLR2004 (names, type, key)
        raise ValueError("names, key type and key expected")
    return fields[0], marker, fields[1:]


def _key(marker: Marker, fields: list[bytes], place: str) -> KnownKey:
    key_type = to_text(fields[0])
    if key_type not in _KEY_TYPES:
        raise ValueError("unknown key type")
    try:
        blob = base64.b64decode(fields[1], validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the key is not base64") from None
    if key_type_of(blob) != key_type:
        raise ValueError("the key is not of the type that the line says")
    return KnownKey(marker, key_type, blob, place)


def key_type_of(blob: bytes) -> str | None:
    """The type that a public key in wire form names (RFC 4253 §6.6)."""
    length = int.from_bytes(blob[:4], "big")
    if len(blob) <= 4 + length:
        return None
    return to_text(blob[4 : 4 + length])


def matches(patterns: bytes, name: str) -> bool:
    """Whether the first field of a line is about ``name`` (lower case)."""
    if patterns.startswith(b"|"):
        return _matches_hash(patterns, name)
    if b"*" not in patterns and b"?" not in patterns and b"!" not in patterns:
        return name.encode() in patterns.lower().split(b",")
    found = False
    for pattern in to_text(patterns).lower().split(","):
        negated = pattern.startswith("!")
        if _glob(pattern.removeprefix("!")).fullmatch(name):
            if negated:
                return False
            found = True
    return found


def _glob(pattern: str) -> re.Pattern[str]:
    """``*`` and ``?`` (ssh_config(5), PATTERNS); brackets are ordinary characters there."""
    return re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))


def _matches_hash(field: bytes, name: str) -> bool:
    """``|1|salt|hash``: HMAC-SHA1 of the name."""
    parts = field.split(b"|")
    if len(parts) != 4 or parts[1] != b"1":  # noqa: PLR2004
        raise ValueError("unknown way of hashing")
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in parts[2:])
    except (binascii.Error, ValueError):
        raise ValueError("the hashed name is not base64") from None
    return hmac.compare_digest(hmac.digest(salt, name.encode(), "sha1"), digest)


def hashed(name: str, salt: bytes) -> str:
    """The form in which HashKnownHosts writes a name."""
    digest = hmac.digest(salt, name.encode(), "sha1")
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, digest))
