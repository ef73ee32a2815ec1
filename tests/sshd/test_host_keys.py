"""The verdict on host keys is ssh's own, over both transports, and never a looser one."""

import base64
import hmac
import os
import re
import subprocess
from pathlib import Path

import pytest

from launchpad.errors import HostKeyChanged, HostKeyUnknown
from launchpad.transport import connect
from launchpad.transport.base import Endpoint, exchange
from support.sshd import Keys, Said, Server, ServerMaker, ssh

Verdict = type[HostKeyChanged] | type[HostKeyUnknown] | None


def hashed(name: str) -> str:
    salt = os.urandom(20)
    parts = (salt, hmac.digest(salt, name.encode(), "sha1"))
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in parts)


def verdict_of_ssh(config: Path) -> Verdict:
    done = ssh(config, "true")
    if done.returncode == 0:
        return None
    words = done.stderr.decode()
    assert done.returncode == 255
    assert "Host key verification failed" in words
    changed = "HAS CHANGED" in words or "REVOKED HOST KEY" in words
    return HostKeyChanged if changed else HostKeyUnknown


def run_true(choice: str, config: Path, said: Said) -> None:
    transport = connect(Endpoint("there"), said.options(config, choice=choice))
    try:
        assert exchange(transport.open(["true"]), b"", deadline=10).exit_code == 0
    finally:
        transport.close()


def verdict_of(choice: str, config: Path, said: Said) -> Verdict:
    try:
        run_true(choice, config, said)
    except (HostKeyChanged, HostKeyUnknown) as error:
        return type(error)
    return None


UNREADABLE = """
# comment
garbage
@strange x y z
{name} ssh-ed25519 AAAAno
{name} ssh-future AAAA
|1|x|y ssh-ed25519 AAAA
\xff
"""

# known_hosts, in which {name} is the server's ("[127.0.0.1]:PORT") and {ed25519} a key of its;
# further settings of the client; the verdict.
CASES: dict[str, tuple[str, list[str], Verdict]] = {
    "plain with port": ("{name} {ed25519}", [], None),
    "hashed with port": ("{hashed_name} {ed25519}", [], None),
    "no entry": ("", [], HostKeyUnknown),
    "entry for another host": ("elsewhere {ed25519}", [], HostKeyUnknown),
    "the very key under the bare name": ("127.0.0.1 {ed25519}", [], None),
    "hashed bare name": ("{hashed_bare} {ed25519}", [], None),
    "another key under the bare name": ("127.0.0.1 {stranger}", [], HostKeyUnknown),
    "another port": ("[127.0.0.1]:1 {ed25519}", [], HostKeyUnknown),
    "only ecdsa of a server with three": ("{name} {ecdsa}", [], None),
    "only rsa of a server with three": ("{name} {rsa}", [], None),
    "changed": ("{name} {stranger}", [], HostKeyChanged),
    "changed, hashed": ("{hashed_name} {stranger}", [], HostKeyChanged),
    "changed, although the bare name has it": (
        "{name} {stranger}\n127.0.0.1 {ed25519}",
        [],
        HostKeyChanged,
    ),
    "a foreign key of another type": ("{name} {stranger_ecdsa}", [], HostKeyChanged),
    "another type known, and not asked for": (
        "{name} {stranger_ecdsa}",
        ["HostKeyAlgorithms ssh-ed25519"],
        HostKeyChanged,
    ),
    "one of two is right": ("{name} {stranger}\n{name} {ed25519}", [], None),
    "alias": ("kin {ed25519}", ["HostKeyAlias kin"], None),
    "alias, other case": ("KIN {ed25519}", ["HostKeyAlias Kin"], None),
    "alias, hashed": ("{hashed_kin} {ed25519}", ["HostKeyAlias kin"], None),
    "alias, but only the address is known": (
        "{name} {ed25519}",
        ["HostKeyAlias kin"],
        HostKeyUnknown,
    ),
    "wildcard": ("[127.0.0.?]:* {ed25519}", [], None),
    "negated": ("*,!{name},!127.0.0.1 {ed25519}", [], HostKeyUnknown),
    "several names": ("a,{name},b {ed25519} comment", [], None),
    "unreadable lines around it": (
        UNREADABLE + "  {name}\t{ed25519}",
        [],
        None,
    ),
    "revoked": ("{name} {ed25519}\n@revoked * {ed25519}", [], HostKeyChanged),
    "another key is revoked": ("{name} {ed25519}\n@revoked * {stranger}", [], None),
    "an authority, but no certificate": (
        "@cert-authority {name} {stranger}",
        [],
        HostKeyUnknown,
    ),
    "strict": ("", ["StrictHostKeyChecking yes"], HostKeyUnknown),
    "accept-new, changed": (
        "{name} {stranger}",
        ["StrictHostKeyChecking accept-new"],
        HostKeyChanged,
    ),
}


def known_hosts(template: str, server: Server, keys: Keys) -> str:
    name = f"[127.0.0.1]:{server.port}"
    text = template.format(
        name=name,
        hashed_name=hashed(name),
        hashed_bare=hashed("127.0.0.1"),
        hashed_kin=hashed("kin"),
        ed25519=keys.public("host_ed25519"),
        ecdsa=keys.public("host_ecdsa"),
        rsa=keys.public("host_rsa"),
        stranger=keys.public("other_ed25519"),
        stranger_ecdsa=keys.public("other_ecdsa"),
    )
    return f"{text}\n"


@pytest.mark.parametrize("case", CASES)
def test_verdict(case: str, server: Server, keys: Keys, said: Said) -> None:
    template, settings, expected = CASES[case]
    config = server.config(*settings, known=known_hosts(template, server, keys))
    assert verdict_of_ssh(config) is expected
    assert verdict_of("paramiko", config, said) is expected
    if expected is not None:
        assert verdict_of("openssh", config, said) is expected


def test_a_server_with_a_new_type_of_key_only(
    start_server: ServerMaker, keys: Keys, said: Said
) -> None:
    server = start_server(host_keys=("host_ed25519",))
    config = server.config(known=f"[127.0.0.1]:{server.port} {keys.public('host_ecdsa')}\n")
    assert verdict_of_ssh(config) is HostKeyChanged
    assert verdict_of("paramiko", config, said) is HostKeyChanged


def test_the_user_s_second_file_and_the_global_file_count(
    server: Server, said: Said, tmp_path: Path
) -> None:
    known = tmp_path / "with blank" / "known"
    known.parent.mkdir()
    known.write_text(server.known_line())
    for settings in (
        [f'UserKnownHostsFile {tmp_path}/none "{known}"'],
        ["UserKnownHostsFile none", f'GlobalKnownHostsFile "{known}"'],
    ):
        config = server.config(*settings)
        assert verdict_of_ssh(config) is None
        assert verdict_of("paramiko", config, said) is None


def test_unreadable_lines_are_named(server: Server, said: Said) -> None:
    config = server.config(known=f"a b\n{server.known_line()}")
    assert verdict_of("paramiko", config, said) is None
    assert [note for note in said.notes if "known_hosts:1 is skipped" in note]


@pytest.mark.parametrize("hashing", ["yes", "no"])
@pytest.mark.parametrize("strictness", ["accept-new", "no"])
def test_a_new_key_is_recorded_as_ssh_does(
    strictness: str, hashing: str, server: Server, keys: Keys, said: Said
) -> None:
    settings = (f"StrictHostKeyChecking {strictness}", f"HashKnownHosts {hashing}")
    # The last line has no newline, as editors leave it.
    config = server.config(*settings, known=f"elsewhere {keys.public('host_rsa')}")
    assert verdict_of("paramiko", config, said) is None
    assert [line for line in said.warnings if "permanently added" in line]
    recorded = (server.directory / "known_hosts").read_text().splitlines()
    assert len(recorded) == 2
    assert recorded[1].startswith("|1|") == (hashing == "yes")
    strict = server.config("StrictHostKeyChecking yes", known="\n".join(recorded))
    assert verdict_of_ssh(strict) is None
    assert verdict_of("paramiko", strict, said) is None


def test_the_directory_for_known_hosts_is_made_private(
    server: Server, said: Said, tmp_path: Path
) -> None:
    known = tmp_path / "new" / "known_hosts"
    config = server.config("StrictHostKeyChecking accept-new", f"UserKnownHostsFile {known}")
    assert verdict_of("paramiko", config, said) is None
    assert known.parent.stat().st_mode & 0o777 == 0o700
    assert known.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_is_a_warning(
    server: Server, said: Said, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    config = server.config(
        "StrictHostKeyChecking accept-new", f"UserKnownHostsFile {tmp_path}/file/known"
    )
    assert verdict_of_ssh(config) is None
    assert verdict_of("paramiko", config, said) is None
    assert [line for line in said.warnings if "was not added" in line]


@pytest.mark.parametrize("choice", ["paramiko", "openssh"])
def test_an_unknown_key_names_fingerprint_and_remedy(
    choice: str, server: Server, keys: Keys, said: Said
) -> None:
    config = server.config(known="")
    with pytest.raises(HostKeyUnknown) as caught:
        run_true(choice, config, said)
    fingerprint = _fingerprint(keys, "host_ed25519")
    assert fingerprint in caught.value.what
    assert f"ssh -F {config} there true" in caught.value.advice


@pytest.mark.parametrize("choice", ["paramiko", "openssh"])
def test_the_remedy_for_a_changed_key_works(
    choice: str, server: Server, keys: Keys, said: Said
) -> None:
    name = f"[127.0.0.1]:{server.port}"
    config = server.config(known=f"# ours\n{name} {keys.public('other_ed25519')}\n")
    with pytest.raises(HostKeyChanged) as caught:
        run_true(choice, config, said)
    assert name in caught.value.what
    assert f"{server.directory}/known_hosts:2" in caught.value.what
    assert _fingerprint(keys, "host_ed25519") in caught.value.what
    remedy = re.search(r"ssh-keygen .*", caught.value.advice)
    assert remedy is not None
    assert os.system(f"{remedy[0]} >/dev/null 2>&1") == 0  # noqa: S605 (as the user would)
    assert verdict_of_ssh(config) is HostKeyUnknown


def _fingerprint(keys: Keys, name: str) -> str:
    command = ["ssh-keygen", "-lf", str(keys.private(f"{name}.pub"))]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()[1]
