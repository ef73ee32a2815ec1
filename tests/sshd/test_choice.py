"""Which transport `auto` takes; what the ssh program shares; what the user's options do."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launchpad.errors import HostKeyUnknown, HostUnreachable, LineLost, SshError
from launchpad.transport import connect
from launchpad.transport.base import Endpoint, Terminal, Transport, exchange
from support.sshd import USER, Keys, Said, Server, ServerMaker, ssh, wait_until


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory for sockets: the paths of pytest are too long for them."""
    path = Path(f"/tmp/lp{os.getpid()}")
    path.mkdir(mode=0o700)
    yield path
    shutil.rmtree(path)


def true(transport: Transport) -> None:
    assert exchange(transport.open(["true"]), b"", deadline=10).exit_code == 0


def logins(server: Server) -> int:
    return server.log.count("Accepted publickey")


def test_auto_takes_paramiko(server: Server, said: Said) -> None:
    transport = connect(Endpoint("there"), said.options(server.config(), choice="auto"))
    assert (transport.name, transport.user) == ("paramiko", USER)
    true(transport)
    transport.close()


def test_auto_takes_the_ssh_program_for_a_shared_connection(
    start_server: ServerMaker, said: Said, short: Path
) -> None:
    """The user's master is used, and made where there is none, as their configuration says."""
    server = start_server()
    config = server.config("ControlMaster auto", f"ControlPath {short}/%C", "ControlPersist 30")
    try:
        for _ in range(3):
            transport = connect(Endpoint("there"), said.options(config, choice="auto"))
            assert transport.name == "openssh"
            assert "shares connections" in transport.reason
            true(transport)
            transport.close()
        assert logins(server) == 1
    finally:
        ssh_exit(config)


def ssh_exit(config: Path, *settings: str) -> None:
    command = ["ssh", "-F", str(config), *settings, "-O", "exit", "there"]
    subprocess.run(command, check=False, capture_output=True)


def test_a_master_that_is_there_is_used_without_control_master(
    start_server: ServerMaker, said: Said, short: Path
) -> None:
    server = start_server()
    config = server.config(f"ControlPath {short}/m")
    plain = connect(Endpoint("there"), said.options(config, choice="auto"))
    assert plain.name == "paramiko"
    plain.close()
    before = logins(server)
    command = ["ssh", "-F", str(config), "-M", "-N", "-f", "there"]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        shared = connect(Endpoint("there"), said.options(config, choice="auto"))
        assert shared.name == "openssh"
        true(shared)
        shared.close()
        assert logins(server) == before + 1
    finally:
        ssh_exit(config)


@pytest.fixture
def shared(
    start_server: ServerMaker, said: Said, short: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Server, Transport]]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    server = start_server()
    config = server.config()
    transport = connect(Endpoint("there"), said.options(config, choice="auto", share=True))
    yield server, transport
    transport.close()
    for path in (short / "launchpad").iterdir():
        ssh_exit(config, "-o", f"ControlPath={path}")


def test_a_connection_of_our_own_is_kept(shared: tuple[Server, Transport], short: Path) -> None:
    server, transport = shared
    for _ in range(3):
        true(transport)
    assert (transport.name, logins(server)) == ("openssh", 1)
    (path,) = (short / "launchpad").iterdir()
    assert (short / "launchpad").stat().st_mode & 0o777 == 0o700
    assert len(str(path)) < 104 - 17


def test_the_ends_of_sessions_on_a_shared_connection(shared: tuple[Server, Transport]) -> None:
    """An exit code of 255 is the command's own; a killed command has none."""
    _, transport = shared
    for _ in range(2):  # the first call makes the connection, the second one finds it
        for code in (255, 0, 7):
            done = exchange(transport.open(["sh", "-c", f"exit {code}"]), b"", deadline=10)
            assert done.exit_code == code
        done = exchange(transport.open(["sh", "-c", "kill -9 $$"]), b"", deadline=10)
        assert done.exit_code in {None, 128 + 9}


def test_a_shared_connection_that_is_killed(shared: tuple[Server, Transport]) -> None:
    server, transport = shared
    true(transport)
    channel = transport.open(["sh", "-c", "echo up; exec sleep 60"])
    assert channel.receive(10) is not None
    for pid in server.sessions():
        os.kill(pid, 9)
    with pytest.raises(LineLost):
        channel.receive(10)
    true(transport)


def test_no_directory_of_others_is_used(
    server: Server, said: Said, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that others may enter is not for sockets: the next one is taken."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    monkeypatch.setenv("HOME", str(short / "home"))
    (short / "launchpad").mkdir(mode=0o755)
    (short / "home" / ".ssh").mkdir(parents=True)
    config = server.config()
    transport = connect(Endpoint("there"), said.options(config, choice="openssh", share=True))
    true(transport)
    transport.close()
    assert not list((short / "launchpad").iterdir())
    (path,) = (short / "home" / ".ssh" / "launchpad").iterdir()
    ssh_exit(config, "-o", f"ControlPath={path}")


@pytest.mark.parametrize("setting", [
    "PKCS11Provider /usr/lib/token.so",
    "KnownHostsCommand /bin/true",
    "VerifyHostKeyDNS yes",
    "HostbasedAuthentication yes",
    "ProxyUseFdpass yes",
])  # fmt: skip
def test_what_only_the_ssh_program_can_do(setting: str, server: Server, said: Said) -> None:
    transport = connect(Endpoint("there"), said.options(server.config(setting), choice="auto"))
    assert transport.name == "openssh"
    assert setting.split(maxsplit=1)[0] in transport.reason


def test_a_host_certificate_is_left_to_the_ssh_program(
    start_server: ServerMaker, keys: Keys, said: Said, tmp_path: Path
) -> None:
    keys.make("authority", "-t", "ed25519")
    shutil.copy(keys.private("host_ed25519.pub"), tmp_path / "host.pub")
    sign = ["ssh-keygen", "-q", "-s", str(keys.private("authority")), "-I", "host", "-h"]
    subprocess.run([*sign, "-n", "kin", str(tmp_path / "host.pub")], check=True)
    server = start_server(f"HostCertificate {tmp_path}/host-cert.pub")
    known = f"@cert-authority kin {keys.public('authority')}\n"
    config = server.config("HostKeyAlias kin", known=known)
    assert ssh(config, "true").returncode == 0
    transport = connect(Endpoint("there"), said.options(config, choice="auto"))
    assert transport.name == "openssh"
    assert "@cert-authority" in transport.reason
    true(transport)
    with pytest.raises(HostKeyUnknown) as caught:
        connect(Endpoint("there"), said.options(config, choice="paramiko"))
    assert "--transport openssh" in caught.value.details


# Options over paramiko


def test_compression(server: Server, said: Said) -> None:
    config = server.config("Compression yes")
    transport = connect(Endpoint("there"), said.options(config))
    done = exchange(transport.open(["cat"]), b"x" * 500_000, deadline=10)
    assert done.stdout == b"x" * 500_000
    transport.close()


def test_ciphers_and_other_algorithms_stay_within_the_configuration(
    start_server: ServerMaker, said: Said
) -> None:
    server = start_server("LogLevel DEBUG1")
    config = server.config(
        "Ciphers aes256-ctr",
        "MACs hmac-sha2-512",
        "KexAlgorithms ecdh-sha2-nistp384",
        "HostKeyAlgorithms rsa-sha2-256",
        known=server.known_line(key="host_rsa"),
    )
    transport = connect(Endpoint("there"), said.options(config))
    true(transport)
    transport.close()
    for word in ("aes256-ctr", "hmac-sha2-512", "ecdh-sha2-nistp384", "rsa-sha2-256"):
        assert word in "".join(line for line in server.log.splitlines() if "kex: " in line)


def test_tokens_and_tilde_in_identity_files(
    server: Server, keys: Keys, said: Said, tmp_path: Path
) -> None:
    key = tmp_path / f"there-127.0.0.1-{server.port}-{USER}"
    shutil.copy(keys.private("user"), key)
    config = server.config(f"IdentityFile {tmp_path}/%n-%h-%p-%r", key=None)
    assert ssh(config, "true").returncode == 0
    transport = connect(Endpoint("there"), said.options(config))
    transport.close()
    assert [note for note in said.notes if f"logged in with {key}" in note]


def test_connect_timeout(said: Said, server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = server.config("ConnectTimeout 1")
        started = time.monotonic()
        with pytest.raises(HostUnreachable, match="within 1 s"):
            connect(Endpoint("there", None, silent.getsockname()[1]), said.options(config))
        assert time.monotonic() - started < 2


def test_address_family_and_bind_address(server: Server, said: Said) -> None:
    config = server.config("BindAddress 127.0.0.77", "AddressFamily inet")
    transport = connect(Endpoint("there"), said.options(config))
    true(transport)
    transport.close()
    assert "from 127.0.0.77" in server.log
    with pytest.raises(HostUnreachable):
        connect(Endpoint("there"), said.options(server.config("AddressFamily inet6")))


def test_forwardings_and_remote_commands_of_the_user_s_sessions_do_not_disturb(
    server: Server, said: Said
) -> None:
    """What is meant for `ssh there` would make every call of ours fail."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = server.config(
            f"LocalForward 127.0.0.1:{taken.getsockname()[1]} 127.0.0.1:1",
            "ExitOnForwardFailure yes",
            "RemoteCommand tmux attach",
            "RequestTTY force",
        )
        for choice in ("openssh", "paramiko"):
            transport = connect(Endpoint("there"), said.options(config, choice=choice))
            done = exchange(transport.open(["cat"]), b"\0~.\n\xff", deadline=10)
            assert done.stdout == b"\0~.\n\xff"
            transport.close()


@pytest.mark.parametrize("choice", ["openssh", "paramiko"])
def test_no_locale_leaves_this_machine(
    choice: str, start_server: ServerMaker, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    server = start_server("AcceptEnv LANG LC_*")
    config = server.config("SendEnv LANG LC_*")
    transport = connect(Endpoint("there"), said.options(config, choice=choice))
    done = exchange(transport.open(["env"]), b"", deadline=10)
    transport.close()
    assert b"de_DE" not in done.stdout
    assert b"SSH_CONNECTION" in done.stdout


@pytest.mark.parametrize("choice", ["openssh", "paramiko"])
def test_a_terminal_where_none_can_be_had(
    choice: str, start_server: ServerMaker, said: Said
) -> None:
    server = start_server("PermitTTY no")
    transport = connect(Endpoint("there"), said.options(server.config(), choice=choice))
    with pytest.raises(SshError, match="opened no session"):
        transport.open(["true"], terminal=Terminal("xterm", 80, 24)).receive(10)
    transport.close()


# Imports

NEITHER = """
import sys
from pathlib import Path
from launchpad.transport import connect, this_machine
from launchpad.transport.base import ConnectOptions, Endpoint, exchange
slow = {"paramiko", "cryptography", "asyncio", "invoke", "importlib.metadata", "click", "rich"}
assert not slow & set(sys.modules), slow & set(sys.modules)
assert exchange(this_machine().open(["true"]), b"", deadline=10).exit_code == 0
options = ConnectOptions(ssh_config=Path(sys.argv[1]), choice="openssh")
assert exchange(connect(Endpoint("there"), options).open(["true"]), b"", deadline=10).exit_code == 0
assert not slow & set(sys.modules), slow & set(sys.modules)
"""

ONLY_PARAMIKO = """
import sys
from pathlib import Path
from launchpad.transport import connect
from launchpad.transport.base import ConnectOptions, Endpoint, exchange
options = ConnectOptions(ssh_config=Path(sys.argv[1]), choice="paramiko")
transport = connect(Endpoint("there"), options)
assert "paramiko" in sys.modules
assert not {"invoke", "importlib.metadata", "asyncio", "unittest"} & set(sys.modules)
import paramiko, importlib.metadata
assert paramiko.__version__ == importlib.metadata.version("paramiko")
import invoke
transport.close()
"""


@pytest.mark.parametrize("script", [NEITHER, ONLY_PARAMIKO], ids=["without", "with"])
def test_nothing_is_imported_that_is_not_used(script: str, server: Server) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script, str(server.config())], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_nothing_of_ours_is_left_running(server: Server) -> None:
    wait_until(lambda: not server.sessions(), "all sessions of the server have ended")
