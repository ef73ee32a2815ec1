"""What `ssh -G` prints, read; and what paramiko's parser makes of the same files without it."""

import os
import pwd
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from launchpad.errors import ClientError, UsageError
from launchpad.sshconfig import (
    Jump,
    Question,
    SshConfig,
    StrictHostKeyChecking,
    check_names,
    parse,
    ssh_program,
)
from launchpad.sshconfig_parser import read
from launchpad.sshconfig_values import parse_jumps

HOME = pwd.getpwuid(os.getuid()).pw_dir
ME = pwd.getpwuid(os.getuid()).pw_name

# Every option that decides something, in more than its default.
CONFIG = """
Host box
  HostName 192.0.2.7
  User gpu
  Port 2200
  IdentityFile ~/.ssh/box-%h-%r
  IdentityFile "/keys/with blank"
  CertificateFile /certs/%n
  IdentitiesOnly yes
  IdentityAgent /run/agent-%u
  ConnectTimeout 7
  ServerAliveInterval 5
  ServerAliveCountMax 2
  UserKnownHostsFile /known/one "/known/with blank"
  GlobalKnownHostsFile /etc/known
  HostKeyAlias kin
  HashKnownHosts yes
  StrictHostKeyChecking accept-new
  HostKeyAlgorithms ssh-ed25519,rsa-sha2-512
  Compression yes
  PasswordAuthentication no
  ProxyJump ops@one:2222,two
  BindAddress 192.0.2.1
  AddressFamily inet
Host piped
  ProxyCommand relay %h %p %r %n 100%%
Host free
  ProxyJump none
  IdentityAgent none
  UserKnownHostsFile none
  StrictHostKeyChecking no
"""


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(CONFIG)
    return path


def ask_ssh(host: str, config_file: Path | None, user: str | None = None) -> SshConfig:
    program = ssh_program()
    assert program is not None
    return Question(program, host, user, None, config_file).answer(10)


def ask_parser(host: str, config_file: Path | None, user: str | None = None) -> SshConfig:
    warnings: list[str] = []
    found = read(host, user, None, config_file, warnings.append)
    assert not warnings
    return found


Ask = Callable[..., SshConfig]

BOTH = pytest.mark.parametrize("ask", [ask_ssh, ask_parser], ids=["ssh -G", "parser"])


@BOTH
def test_all_options(ask: Ask, config_file: Path) -> None:
    found = ask("box", config_file)
    assert (found.alias, found.hostname, found.user, found.port) == (
        "box",
        "192.0.2.7",
        "gpu",
        2200,
    )
    assert found.identity_files == (
        Path(f"{HOME}/.ssh/box-192.0.2.7-gpu"),
        Path("/keys/with blank"),
    )
    assert found.identities_configured
    assert found.identities_only
    assert found.identity_agent == Path(f"/run/agent-{ME}")
    assert found.certificate_files == (Path("/certs/box"),)
    assert found.connect_timeout == 7
    assert (found.server_alive_interval, found.server_alive_count_max) == (5, 2)
    assert found.user_known_hosts == (Path("/known/one"), Path("/known/with blank"))
    assert found.global_known_hosts == (Path("/etc/known"),)
    assert found.host_key_alias == "kin"
    assert found.hash_known_hosts
    assert found.strict_host_key_checking is StrictHostKeyChecking.ACCEPT_NEW
    assert found.host_key_algorithms == ("ssh-ed25519", "rsa-sha2-512")
    assert found.compression
    assert not found.password_authentication
    assert found.keyboard_interactive
    assert found.jumps == (Jump("one", "ops", 2222), Jump("two"))
    assert found.proxy_command is None
    assert (found.bind_address, found.address_family) == ("192.0.2.1", "inet")
    assert found.address == "gpu@192.0.2.7:2200"


@BOTH
def test_a_proxy_command(ask: Ask, config_file: Path) -> None:
    found = ask("piped", config_file, "me")
    assert found.proxy_command == "relay piped 22 me piped 100%"
    assert not found.jumps


@BOTH
def test_none(ask: Ask, config_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    found = ask("free", config_file)
    assert found.jumps == ()
    assert found.identity_agent is None
    assert found.user_known_hosts == ()
    assert found.strict_host_key_checking is StrictHostKeyChecking.NO


@BOTH
def test_defaults(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    found = ask("plain.example", Path("/dev/null"))
    assert (found.hostname, found.user, found.port) == ("plain.example", ME, 22)
    assert Path(f"{HOME}/.ssh/id_ed25519") in found.identity_files
    assert not found.identities_configured
    assert found.identity_agent == Path("/run/agent")
    assert found.user_known_hosts[0] == Path(f"{HOME}/.ssh/known_hosts")
    assert found.strict_host_key_checking is StrictHostKeyChecking.ASK
    assert found.connect_timeout is None
    assert found.server_alive_interval == 0
    assert found.control_path is None


@BOTH
def test_user_and_port_of_the_call_win(ask: Ask, config_file: Path) -> None:
    assert ask("box", config_file, "other").address == "other@192.0.2.7:2200"


def test_options_without_a_field_of_their_own() -> None:
    found = parse("box", "hostname box\nuser me\npkcs11provider /lib/x\ngssapiauthentication yes\n")
    assert found.option("PKCS11Provider") == "/lib/x"
    assert found.option("securitykeyprovider") is None
    assert found.enabled("gssapiauthentication")
    assert not found.enabled("hostbasedauthentication")


def test_a_control_path() -> None:
    found = parse("box", "user me\ncontrolmaster auto\ncontrolpath /run/user/0/box\n")
    assert found.control_master
    assert found.control_path == Path("/run/user/0/box")
    assert not parse("box", "user me\ncontrolmaster false\ncontrolpath none\n").control_master


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1m30s", 90), ("2h", 7200), ("none", None), ("x", None)]
)
def test_times(text: str, seconds: float | None) -> None:
    assert parse("box", f"user me\nconnecttimeout {text}\n").connect_timeout == seconds


@pytest.mark.parametrize(
    ("text", "jumps"),
    [
        ("a", (Jump("a"),)),
        ("me@a:22,b", (Jump("a", "me", 22), Jump("b"))),
        ("ssh://me@a:22", (Jump("a", "me", 22),)),
        ("[2001:db8::1]:22", (Jump("2001:db8::1", None, 22),)),
        ("me@2001:db8::1", (Jump("2001:db8::1", "me"),)),
        ("user@realm@a", (Jump("a", "user@realm"),)),
        ("", ()),
    ],
)
def test_jumps(text: str, jumps: tuple[Jump, ...]) -> None:
    assert parse_jumps(text) == jumps


@pytest.mark.parametrize("text", ["a:b", "a:22:33x", "me@"])
def test_jumps_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ClientError):
        parse_jumps(text)


@pytest.mark.parametrize("host", ["-x", "", "a b", "a;b", "a$b", "a`b", "a\nb", "a'b", 'a"b', "(a"])
def test_what_no_host_is_called(host: str) -> None:
    with pytest.raises(UsageError):
        check_names(host, None)


@pytest.mark.parametrize("host", ["a", "a.b-c_d", "2001:db8::1", "fe80::1%eth0", "münchen", "a~b"])
def test_what_hosts_are_called(host: str) -> None:
    check_names(host, None)


@pytest.mark.parametrize("user", ["-x", "", "a;b", "a -x", "a\\", "a'b", "a\x00b"])
def test_what_no_user_is_called(user: str) -> None:
    with pytest.raises(UsageError):
        check_names("host", user)


@pytest.mark.parametrize("user", ["a", "a.b", "DOMAIN\\me", "me@realm", "a b"])
def test_what_users_are_called(user: str) -> None:
    check_names("host", user)


def test_a_configuration_that_ssh_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("Nonsense yes\n")
    with pytest.raises(ClientError) as caught:
        ask_ssh("box", path)
    assert str(path) in caught.value.what
    assert "line 1" in caught.value.details
    with pytest.raises(ClientError):
        ask_ssh("box", tmp_path / "missing")


def test_a_configuration_that_hangs(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text('Match exec "sleep 60"\n')
    program = ssh_program()
    assert program is not None
    with pytest.raises(ClientError) as caught:
        Question(program, "box", None, None, path).answer(0.3)
    assert "no answer within 0.3 s" in caught.value.what


def test_no_ssh_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ssh_program() is None


@pytest.mark.parametrize(
    "line",
    [
        "Include other",
        'Match exec "true"',
        "Match host box exec true",
        "CanonicalizeHostname yes",
    ],
)
def test_the_parser_says_what_it_cannot_read(line: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(f"Host box\n  Port 2200\n{line}\n  Port 1\n  User nobody\n")
    warnings: list[str] = []
    found = read("box", None, None, path, warnings.append)
    assert found.port == 2200
    assert [warning for warning in warnings if line in warning]
    if line.startswith("Match"):
        assert found.user == ME


def test_the_parser_needs_the_file_it_was_given(tmp_path: Path) -> None:
    with pytest.raises(ClientError):
        read("box", None, None, tmp_path / "missing", print)
    assert read("box", None, None, Path("none"), print).hostname == "box"


def test_both_ways_agree(config_file: Path) -> None:
    """Field by field, where a parser can know it; `ssh -G` is right."""
    unknowable = {"everything", "ciphers", "macs", "key_exchanges", "host_key_algorithms"}
    for host in ("box", "piped", "free", "elsewhere"):
        by_ssh, by_parser = ask_ssh(host, config_file), ask_parser(host, config_file)
        for name in SshConfig.__dataclass_fields__:
            if name not in unknowable | {"identity_files"}:
                assert getattr(by_parser, name) == getattr(by_ssh, name), (host, name)


def test_the_user_s_own_file_is_read_where_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text("Host box\n  Port 2200\n")
    assert read("box", None, None, None, print).port == 2200


def test_ssh_g_leaves_nothing_running(config_file: Path) -> None:
    ask_ssh("box", config_file)
    done = subprocess.run(
        ["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, check=False
    )
    assert b" -G " not in done.stdout
