"""known_hosts without a host: patterns, hashes, and the order of algorithms."""

import base64
from pathlib import Path

import pytest

from launchpad.sshconfig import parse
from launchpad.transport.paramiko.knownhosts import (
    Changed,
    KnownHosts,
    Matches,
    Revoked,
    Unknown,
    hashed,
    known_name,
    matches,
)
from launchpad.transport.paramiko.trust import ShownKey, key_algorithms


def blob(key_type: str, body: bytes = b"\0\0\0\x01x") -> bytes:
    return len(key_type).to_bytes(4, "big") + key_type.encode() + body


def line(names: str, key_type: str, body: bytes = b"\0\0\0\x01x", marker: str = "") -> str:
    return f"{marker}{names} {key_type} {base64.b64encode(blob(key_type, body)).decode()}\n"


def known(tmp_path: Path, *lines: str, port: int = 22, alias: str | None = None) -> KnownHosts:
    file = tmp_path / "known_hosts"
    file.write_text("".join(lines))
    return KnownHosts([file], "Pve1.Example", port, alias, lambda _line: None)


@pytest.mark.parametrize(
    ("patterns", "name", "expected"),
    [
        ("a", "a", True),
        ("A", "a", True),
        ("a,b", "b", True),
        ("ab", "a", False),
        ("a?", "ab", True),
        ("*", "anything", True),
        ("*.example", "a.example", True),
        ("*.example,!b.example", "b.example", False),
        ("!b,*", "b", False),
        ("!b", "a", False),
        ("[a]:22?2", "[a]:2222", True),
        ("a.b", "axb", False),
        ("[ab]", "a", False),
    ],
)
def test_patterns(patterns: str, name: str, expected: bool) -> None:
    assert matches(patterns.encode(), name) is expected


def test_hashed_names() -> None:
    field = hashed("pve1", b"0123456789abcdefghij").encode()
    assert field.startswith(b"|1|MDEyMzQ1Njc4OWFiY2RlZmdoaWo=|")
    assert matches(field, "pve1")
    assert not matches(field, "pve2")
    for broken in (b"|2|x|y", b"|1|x", b"|1|!!!|AAAA"):
        with pytest.raises(ValueError, match=r"hash|base64"):
            matches(broken, "pve1")


@pytest.mark.parametrize(
    ("hostname", "port", "alias", "name"),
    [
        ("Pve1", 22, None, "pve1"),
        ("Pve1", 2222, None, "[pve1]:2222"),
        ("2001:db8::1", 22, None, "2001:db8::1"),
        ("2001:db8::1", 2222, None, "[2001:db8::1]:2222"),
        ("Pve1", 2222, "Kin", "kin"),
    ],
)
def test_names(hostname: str, port: int, alias: str | None, name: str) -> None:
    assert known_name(hostname, port, alias) == name


def test_verdicts(tmp_path: Path) -> None:
    hosts = known(
        tmp_path,
        line("pve1.example", "ssh-rsa"),
        line("pve1.example", "ssh-ed25519"),
        line("*", "ssh-ed25519", b"stolen", marker="@revoked "),
    )
    assert hosts.verdict(blob("ssh-ed25519")) == Matches(f"{tmp_path}/known_hosts:2")
    assert isinstance(hosts.verdict(blob("ssh-ed25519", b"other")), Changed)
    assert isinstance(hosts.verdict(blob("ssh-ed25519", b"stolen")), Revoked)
    assert known(tmp_path).verdict(blob("ssh-rsa")) == Unknown()
    assert hosts.key_types == ("ssh-rsa", "ssh-ed25519")


def test_a_missing_and_an_unreadable_file(tmp_path: Path) -> None:
    notes: list[str] = []
    hosts = KnownHosts([tmp_path / "none", tmp_path], "pve1", 22, None, notes.append)
    assert hosts.verdict(blob("ssh-rsa")) == Unknown()
    assert len(notes) == 1
    assert "cannot be read" in notes[0]


ALL = "ssh-ed25519,ecdsa-sha2-nistp256,rsa-sha2-512,rsa-sha2-256"


@pytest.mark.parametrize(
    ("recorded", "configured", "order"),
    [
        ((), ALL, ALL),
        (("ssh-ed25519",), ALL, ALL),
        (("ssh-rsa",), ALL, "rsa-sha2-512,rsa-sha2-256,ssh-ed25519,ecdsa-sha2-nistp256"),
        (("ssh-rsa", "ssh-ed25519"), ALL, ALL),
        (("ecdsa-sha2-nistp256",), "ssh-ed25519,rsa-sha2-512", "ssh-ed25519,rsa-sha2-512"),
        (("ssh-rsa",), "sk-ssh-ed25519@openssh.com," + ALL, None),
    ],
)
def test_algorithms_for_recorded_types_come_first(
    recorded: tuple[str, ...], configured: str, order: str | None, tmp_path: Path
) -> None:
    hosts = known(tmp_path, *(line("pve1.example", key_type) for key_type in recorded))
    config = parse("pve1", f"user me\nhostkeyalgorithms {configured}\n")
    found = ",".join(key_algorithms(config, hosts))
    assert found == (order or "rsa-sha2-512,rsa-sha2-256,ssh-ed25519,ecdsa-sha2-nistp256")


def test_a_shown_key_reads_as_ssh_prints_it() -> None:
    shown = ShownKey(blob("ecdsa-sha2-nistp256"))
    assert str(shown).startswith("ECDSA SHA256:")
    assert not str(shown).endswith("=")
