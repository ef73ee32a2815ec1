"""The way to a host: jump hosts, proxy commands, Include and Match, as ssh goes it."""

import os
import sys
from pathlib import Path

import pytest

from launchpad.errors import ClientError, HostKeyUnknown, HostUnreachable, LoginRefused, SshError
from launchpad.transport import connect
from launchpad.transport.base import Endpoint, exchange
from support.sshd import Keys, Said, Server, ServerMaker, free_port, ssh, wait_until

CHOICES = ("paramiko", "openssh")


@pytest.fixture(scope="module")
def chain(start_server: ServerMaker) -> list[Server]:
    """Three servers; nothing says that one can only be reached through another but the tests."""
    return [start_server(), start_server(), start_server()]


def logins(server: Server) -> int:
    return server.log.count("Accepted publickey")


def entry(server: Server, alias: str, *settings: str) -> str:
    return server.config(*settings, alias=alias).read_text()


def write(path: Path, *entries: str) -> Path:
    path.write_text("\n".join(entries))
    return path


def echo(config: Path, said: Said, choice: str, endpoint: Endpoint) -> None:
    transport = connect(endpoint, said.options(config, choice=choice))
    try:
        done = exchange(transport.open(["cat"]), b"through", deadline=15)
        assert (done.stdout, done.exit_code) == (b"through", 0)
    finally:
        transport.close()


@pytest.mark.parametrize("choice", CHOICES)
def test_one_jump_host(choice: str, chain: list[Server], said: Said, tmp_path: Path) -> None:
    first, _, last = chain
    config = write(
        tmp_path / "config",
        entry(first, "first"),
        entry(last, "inner", "ProxyJump first"),
    )
    before = logins(first), logins(last)
    echo(config, said, choice, Endpoint("inner"))
    assert (logins(first), logins(last)) == (before[0] + 1, before[1] + 1)


@pytest.mark.parametrize("choice", CHOICES)
def test_two_jump_hosts(choice: str, chain: list[Server], said: Said, tmp_path: Path) -> None:
    first, second, last = chain
    config = write(
        tmp_path / "config",
        entry(first, "first"),
        entry(second, "second"),
        entry(last, "inner", "ProxyJump first,second"),
    )
    before = [logins(server) for server in chain]
    echo(config, said, choice, Endpoint("inner"))
    assert [logins(server) for server in chain] == [count + 1 for count in before]


@pytest.mark.parametrize("choice", CHOICES)
def test_the_jump_host_has_a_jump_host(
    choice: str, chain: list[Server], said: Said, tmp_path: Path
) -> None:
    first, second, last = chain
    config = write(
        tmp_path / "config",
        entry(first, "first"),
        entry(second, "second", "ProxyJump first"),
        entry(last, "inner", "ProxyJump second"),
    )
    before = [logins(server) for server in chain]
    echo(config, said, choice, Endpoint("inner"))
    assert [logins(server) for server in chain] == [count + 1 for count in before]


@pytest.mark.parametrize("choice", CHOICES)
def test_user_and_port_in_the_jump(
    choice: str, chain: list[Server], keys: Keys, said: Said, tmp_path: Path
) -> None:
    first, _, last = chain
    known = write(tmp_path / "known", first.known_line())
    config = write(
        tmp_path / "config",
        entry(last, "inner", f"ProxyJump root@127.0.0.1:{first.port}"),
        f"Host 127.0.0.1\nUserKnownHostsFile {known}\nIdentityFile {keys.private('user')}",
        "User nobody-here\nIdentityAgent none\n",
    )
    before = logins(first)
    echo(config, said, choice, Endpoint("inner"))
    assert logins(first) == before + 1


@pytest.mark.parametrize("choice", CHOICES)
def test_proxy_jump_none(choice: str, chain: list[Server], said: Said, tmp_path: Path) -> None:
    first, _, last = chain
    config = write(
        tmp_path / "config",
        entry(last, "inner", "ProxyJump none"),
        "Host *\nProxyJump first\n",
    )
    before = logins(first)
    echo(config, said, choice, Endpoint("inner"))
    assert logins(first) == before


@pytest.mark.parametrize("choice", CHOICES)
def test_include_and_match_with_two_jumps(
    choice: str, chain: list[Server], said: Said, tmp_path: Path
) -> None:
    first, second, last = chain
    write(tmp_path / "hosts", entry(first, "first"), entry(second, "second"))
    config = write(
        tmp_path / "config",
        f"Include {tmp_path}/hosts",
        entry(last, "inner"),
        "Match host 127.0.0.1 originalhost inner exec true\nProxyJump first,second\n",
    )
    before = [logins(server) for server in chain]
    echo(config, said, choice, Endpoint("inner"))
    assert [logins(server) for server in chain] == [count + 1 for count in before]


RELAY = f"""#!{sys.executable}
import os, socket, sys, threading
with open(sys.argv[1], "w") as file:
    print(*sys.argv[2:], os.getpid(), file=file)
connection = socket.create_connection((sys.argv[2], int(sys.argv[3])))
def copy():
    while data := os.read(0, 65536):
        connection.sendall(data)
threading.Thread(target=copy, daemon=True).start()
while data := connection.recv(65536):
    os.write(1, data)
"""


@pytest.fixture
def relay(tmp_path: Path) -> Path:
    """A program for ProxyCommand: relay FILE HOST PORT…; writes its arguments and PID to FILE."""
    path = tmp_path / "relay"
    path.write_text(RELAY)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("choice", CHOICES)
def test_a_proxy_command_with_tokens(
    choice: str, chain: list[Server], said: Said, relay: Path, tmp_path: Path
) -> None:
    last = chain[2]
    seen = tmp_path / "seen"
    config = write(
        tmp_path / "config",
        entry(last, "inner", f"ProxyCommand {relay} {seen} %h %p %r %n %% 'a b' $HOME"),
    )
    echo(config, said, choice, Endpoint("inner"))
    words = seen.read_text().rsplit(maxsplit=1)[0]
    assert words == f"127.0.0.1 {last.port} root inner % a b {os.environ['HOME']}"


def test_a_proxy_command_that_fails(chain: list[Server], said: Said, tmp_path: Path) -> None:
    config = write(
        tmp_path / "config",
        entry(chain[2], "inner", "ProxyCommand sh -c 'echo no way from here >&2; exit 1'"),
    )
    with pytest.raises(HostUnreachable) as caught:
        connect(Endpoint("inner"), said.options(config))
    assert "no way from here" in caught.value.details
    assert str(chain[2].port) in caught.value.what


def test_a_proxy_command_ends_with_the_connection(
    chain: list[Server], said: Said, relay: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    config = write(
        tmp_path / "config", entry(chain[2], "inner", f"ProxyCommand {relay} {seen} %h %p")
    )
    echo(config, said, "paramiko", Endpoint("inner"))
    pid = seen.read_text().split()[-1]
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the proxy command has ended")


@pytest.mark.parametrize("choice", CHOICES)
def test_a_jump_host_that_cannot_connect_on(
    choice: str, chain: list[Server], said: Said, tmp_path: Path
) -> None:
    port = free_port()
    config = write(
        tmp_path / "config",
        entry(chain[0], "first"),
        f"Host inner\nHostName 127.0.0.1\nPort {port}\nProxyJump first\n",
    )
    with pytest.raises(HostUnreachable) as caught:
        echo(config, said, choice, Endpoint("inner"))
    if choice == "paramiko":
        assert f"port {port}" in caught.value.what
        assert "first" in caught.value.what
    assert "jump host" in caught.value.what


@pytest.mark.parametrize("choice", CHOICES)
def test_a_jump_host_that_forbids_forwarding(
    choice: str, chain: list[Server], start_server: ServerMaker, said: Said, tmp_path: Path
) -> None:
    strict = start_server("AllowTcpForwarding no")
    config = write(
        tmp_path / "config",
        entry(strict, "strict"),
        entry(chain[2], "inner", "ProxyJump strict"),
    )
    with pytest.raises(HostUnreachable) as caught:
        echo(config, said, choice, Endpoint("inner"))
    assert "AllowTcpForwarding" in caught.value.advice


def test_errors_name_the_host_on_the_way_that_failed(
    chain: list[Server], said: Said, tmp_path: Path
) -> None:
    first, _, last = chain
    inner = entry(last, "inner", "ProxyJump first")
    unknown = write(
        tmp_path / "config", entry(first, "first", "UserKnownHostsFile /dev/null"), inner
    )
    with pytest.raises(HostKeyUnknown) as key:
        connect(Endpoint("inner"), said.options(unknown))
    assert f"[127.0.0.1]:{first.port}" in key.value.what
    assert " first true" in key.value.advice
    refused = write(tmp_path / "config", entry(first, "first", "User nobody-here"), inner)
    text = refused.read_text().replace("User root\nUser nobody-here", "User nobody-here")
    refused.write_text(text)
    with pytest.raises(LoginRefused) as login:
        connect(Endpoint("inner"), said.options(refused))
    assert f"127.0.0.1:{first.port}" in login.value.what


def test_a_circle(chain: list[Server], said: Said, tmp_path: Path) -> None:
    config = write(
        tmp_path / "config",
        entry(chain[0], "first", "ProxyJump second"),
        entry(chain[1], "second", "ProxyJump first"),
    )
    with pytest.raises(SshError, match="circle"):
        connect(Endpoint("first"), said.options(config))


def test_a_hop_that_cannot_be_read(chain: list[Server], said: Said, tmp_path: Path) -> None:
    config = write(tmp_path / "config", entry(chain[0], "first", "ProxyJump a:b:c"))
    assert ssh(config, "true", host="first").returncode == 255
    with pytest.raises(ClientError):
        connect(Endpoint("first"), said.options(config))


def test_the_endpoint_overrides_user_and_port(
    chain: list[Server], said: Said, tmp_path: Path
) -> None:
    config = write(tmp_path / "config", entry(chain[0], "first"))
    text = config.read_text().replace(f"Port {chain[0].port}", "Port 1")
    config.write_text(text.replace("User root", "User nobody-here"))
    echo(config, said, "paramiko", Endpoint("first", "root", chain[0].port))
