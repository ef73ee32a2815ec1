"""Private key files: what is in them, and signatures with them.

A file is looked at before it is loaded: the kind of the key, its public half, and whether it is
encrypted stand at its beginning in clear. So nothing has to be guessed from error texts.
"""

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from launchpad.transport.paramiko.knownhosts import key_type_of

_MAGIC = b"openssh-key-v1\0"
_CERTIFICATE = "-cert-v01@openssh.com"

# Signs: (data, algorithm) → signature in wire form.
Signer = Callable[[bytes, str], bytes]


class KeyFault(Exception):
    """A key file that cannot be used; the text says why, in words for the user."""


class KeyFile(NamedTuple):
    """A private key file that was looked at.

    ``blob``: the public half in wire form, None where the file does not show it.
    """

    path: Path
    data: bytes
    encrypted: bool
    blob: bytes | None

    @property
    def kind(self) -> str:
        """For messages."""
        names = {"ssh-rsa": "RSA", "ssh-ed25519": "ED25519", "ssh-dss": "DSA"}
        key_type = key_type_of(self.blob) if self.blob else None
        if key_type is None:
            return "key"
        return names.get(key_type, key_type.removesuffix("@openssh.com"))


def examine(path: Path) -> KeyFile | None:
    """Look at a file; None where there is none. Raises :class:`KeyFault`."""
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise KeyFault(f"cannot be read ({error.strerror})") from error
    lines = data.replace(b"\r", b"").strip().split(b"\n")
    blob = _public_half(path)
    match lines[0].strip():
        case b"-----BEGIN OPENSSH PRIVATE KEY-----":
            encrypted, blob = _openssh_header(lines)
        case b"-----BEGIN ENCRYPTED PRIVATE KEY-----":
            encrypted = True
        case (
            b"-----BEGIN RSA PRIVATE KEY-----"
            | b"-----BEGIN EC PRIVATE KEY-----"
            | b"-----BEGIN PRIVATE KEY-----"
        ):
            encrypted = any(line.startswith(b"Proc-Type: 4,ENCRYPTED") for line in lines[:3])
        case b"-----BEGIN DSA PRIVATE KEY-----":
            raise KeyFault("is a DSA key, which ssh no longer accepts")
        case _ if key_type_of(_decoded(lines[0].split(b" ")[1:2])) is not None:
            raise KeyFault("is a public key; its private key may be in the agent or a token")
        case _:
            raise KeyFault("is not a private key")
    key_type = key_type_of(blob) if blob else None
    if key_type is not None and key_type.startswith("sk-"):
        raise KeyFault("is a security key: only --transport openssh can use it")
    return KeyFile(path, data, encrypted, blob)


def _openssh_header(lines: list[bytes]) -> tuple[bool, bytes | None]:
    """PROTOCOL.key of OpenSSH: cipher, kdf, options, number of keys, public key."""
    body = _decoded([b"".join(line.strip() for line in lines[1:-1])])
    if not body.startswith(_MAGIC):
        raise KeyFault("is damaged")
    rest = body[len(_MAGIC) :]
    fields = []
    for _ in range(3):
        end = 4 + int.from_bytes(rest[:4], "big")
        fields.append(rest[4:end])
        rest = rest[end:]
    end = 8 + int.from_bytes(rest[4:8], "big")
    blob = rest[8:end]
    if key_type_of(blob) is None:
        raise KeyFault("is damaged")
    return fields[0] != b"none", blob


def _decoded(parts: list[bytes]) -> bytes:
    try:
        return base64.b64decode(parts[0]) if parts else b""
    except (binascii.Error, ValueError):
        return b""


def _public_half(path: Path) -> bytes | None:
    """From ``FILE.pub``, where there is one that can be read."""
    try:
        fields = path.with_name(path.name + ".pub").read_bytes().split()
    except OSError:
        return None
    blob = _decoded(fields[1:2])
    return blob if key_type_of(blob) is not None else None


def public_key(path: Path) -> bytes | None:
    """The public key in a file that holds nothing else (an IdentityFile may be that)."""
    try:
        fields = path.read_bytes()[:16384].split()
    except OSError:
        return None
    blob = _decoded(fields[1:2])
    return blob if fields and key_type_of(blob) == fields[0].decode("ascii", "replace") else None


def load(file: KeyFile, passphrase: str | None) -> tuple[bytes, Signer]:
    """The public half and a signer.

    Raises :class:`KeyFault`, and ``PermissionError`` where the passphrase is wrong.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    secret = passphrase.encode("utf-8", "surrogateescape") if passphrase is not None else None
    try:
        if file.data.lstrip().startswith(b"-----BEGIN OPENSSH"):
            private: Any = serialization.load_ssh_private_key(file.data, secret)
        else:
            private = serialization.load_pem_private_key(file.data, secret)
    except UnsupportedAlgorithm as error:
        raise KeyFault(f"cannot be used here ({error})") from error
    except (ValueError, TypeError) as error:
        if passphrase is not None:
            raise PermissionError from error
        raise KeyFault("is damaged") from error
    return _signer(private)


def _signer(private: Any) -> tuple[bytes, Signer]:
    import paramiko
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    key: paramiko.PKey
    match private:
        case rsa.RSAPrivateKey():
            key = paramiko.RSAKey(key=private)
        case ec.EllipticCurvePrivateKey():
            key = paramiko.ECDSAKey(vals=(private, private.public_key()))
        case ed25519.Ed25519PrivateKey():
            blob = _ed25519_blob(private.public_key().public_bytes_raw())

            def sign_ed25519(data: bytes, algorithm: str) -> bytes:
                del algorithm
                return _string(b"ssh-ed25519") + _string(private.sign(data))

            return blob, sign_ed25519
        case _:
            raise KeyFault("is of a kind that ssh no longer accepts")

    def sign(data: bytes, algorithm: str) -> bytes:
        return key.sign_ssh_data(data, algorithm).asbytes()

    return key.asbytes(), sign


def _ed25519_blob(raw: bytes) -> bytes:
    return _string(b"ssh-ed25519") + _string(raw)


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


class Certificate(NamedTuple):
    """A ``-cert.pub`` file; ``key``: the public key that it certifies, in wire form."""

    path: Path
    name: str
    blob: bytes

    def certifies(self, key: bytes) -> bool:
        """Whether it was made for this public key (PROTOCOL.certkeys of OpenSSH)."""
        plain = self.name.removesuffix(_CERTIFICATE)
        if key_type_of(key) != plain:
            return False
        # type, nonce, then the fields of the public key as they stand in the key itself.
        rest = self.blob[4 + len(self.name) :]
        rest = rest[4 + int.from_bytes(rest[:4], "big") :]
        return rest.startswith(key[4 + len(plain) :])


def read_certificate(path: Path) -> Certificate | None:
    """A certificate of a user's key; None where there is none to be read."""
    blob = public_key(path)
    name = key_type_of(blob) if blob else None
    if blob is None or name is None or not name.endswith(_CERTIFICATE):
        return None
    return Certificate(path, name, blob)
