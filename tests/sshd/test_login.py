"""Logins: the right key is found, and a refusal says what was tried."""

import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from launchpad.errors import ClientError, LoginRefused
from launchpad.transport import connect
from launchpad.transport.base import Endpoint, exchange
from support.sshd import USER, Keys, Said, Server, ServerMaker, ssh, wait_until


def log_in(config: Path, said: Said, choice: str = "paramiko", **options: object) -> str:
    """Log in, run a command, and return what the notes say the host accepted."""
    transport = connect(Endpoint("there"), said.options(config, choice=choice, **options))
    try:
        done = exchange(transport.open(["echo", "in"]), b"", deadline=10)
    finally:
        transport.close()
    assert (done.stdout, done.exit_code) == (b"in\n", 0)
    return "\n".join(said.notes)


def refusal(config: Path, said: Said, choice: str = "paramiko", **options: object) -> LoginRefused:
    with pytest.raises(LoginRefused) as caught:
        log_in(config, said, choice, **options)
    error = caught.value
    everything = f"{error.what} {error.details} {error.advice}"
    for word in ("Traceback", "OPENSSH key", "Invalid key", "not a valid"):
        assert word not in everything
    return error


def fingerprint(keys: Keys, name: str) -> str:
    command = ["ssh-keygen", "-lf", str(keys.private(f"{name}.pub"))]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()[1]


KINDS = {
    "ed25519": ["-t", "ed25519"],
    "ecdsa 256": ["-t", "ecdsa", "-b", "256"],
    "ecdsa 521": ["-t", "ecdsa", "-b", "521"],
    "rsa": ["-t", "rsa", "-b", "2048"],
    "rsa, PEM": ["-t", "rsa", "-b", "2048", "-m", "PEM"],
    "rsa, PKCS8": ["-t", "rsa", "-b", "2048", "-m", "PKCS8"],
    "ecdsa, PEM": ["-t", "ecdsa", "-m", "PEM"],
}


@pytest.fixture(scope="module")
def kinds_server(start_server: ServerMaker, keys: Keys) -> Server:
    for name, arguments in KINDS.items():
        keys.make(_file(name), *arguments)
    return start_server(authorized="\n".join(keys.public(_file(name)) for name in KINDS))


def _file(kind: str) -> str:
    return "kind_" + "".join(c if c.isalnum() else "_" for c in kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("public_half", [True, False], ids=["with .pub", "alone"])
def test_each_kind_of_key_file(
    kind: str, public_half: bool, kinds_server: Server, keys: Keys, said: Said, tmp_path: Path
) -> None:
    copy = tmp_path / "key"
    shutil.copy(keys.private(_file(kind)), copy)
    if public_half:
        shutil.copy(keys.private(f"{_file(kind)}.pub"), tmp_path / "key.pub")
    config = kinds_server.config(f"IdentityFile {copy}", key=None)
    assert f"logged in with {copy}" in log_in(config, said)


@pytest.mark.parametrize("kind", ["rsa", "rsa, PEM", "ecdsa 256", "ed25519"])
def test_a_key_that_the_host_does_not_know(
    kind: str, server: Server, keys: Keys, said: Said
) -> None:
    name = _file(f"unknown {kind}")
    keys.make(name, *KINDS[kind])
    error = refusal(server.config(key=name), said)
    assert f"{USER}@127.0.0.1:{server.port} refused the login" in error.what
    assert f"offered: {keys.private(name)}" in error.details
    assert fingerprint(keys, name) in error.details
    assert "the host accepts: publickey" in error.details


@pytest.mark.parametrize("choice", ["paramiko", "openssh"])
def test_notes_name_the_host_key_and_what_was_accepted(
    choice: str, server: Server, keys: Keys, said: Said
) -> None:
    notes = log_in(server.config(), said, choice)
    assert f"host key of [127.0.0.1]:{server.port} is known in {server.directory}" in notes
    assert f"ED25519 {fingerprint(keys, 'host_ed25519')}" in notes
    assert f"{USER}@127.0.0.1:{server.port}: logged in with {keys.private('user')}" in notes
    assert fingerprint(keys, "user") in notes


def test_the_same_refusal_from_the_ssh_program(server: Server, keys: Keys, said: Said) -> None:
    error = refusal(server.config(key="stranger"), said, "openssh")
    assert f"{USER}@127.0.0.1:{server.port} refused the login" in error.what
    assert fingerprint(keys, "stranger") in error.details
    assert "the host accepts: publickey" in error.details


def test_no_key_at_all(server: Server, said: Said) -> None:
    error = refusal(server.config("IdentityFile none", key=None), said)
    assert "offered: nothing" in error.details
    assert "the host accepts: publickey" in error.details


def test_an_encrypted_key_without_a_terminal(server: Server, keys: Keys, said: Said) -> None:
    keys.make("locked", "-t", "ed25519", "-N", "secret")
    error = refusal(server.config(key="locked"), said)
    assert f"{keys.private('locked')} is encrypted" in error.details
    assert "no terminal" in error.details


def test_a_security_key_is_left_to_the_ssh_program(
    server: Server, said: Said, tmp_path: Path
) -> None:
    """A key file as ssh-keygen writes it for a token that is not here (PROTOCOL.key)."""
    path = tmp_path / "id_sk"
    path.write_bytes(_security_key())
    error = refusal(server.config(f"IdentityFile {path}", key=None), said)
    assert f"{path} is a security key" in error.details


def _security_key() -> bytes:
    import base64

    def string(data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + data

    public = string(b"sk-ssh-ed25519@openssh.com") + string(b"k" * 32) + string(b"ssh:")
    body = b"openssh-key-v1\0" + string(b"none") + string(b"none") + string(b"")
    body += (1).to_bytes(4, "big") + string(public) + string(b"\0" * 64)
    text = base64.encodebytes(body)
    return b"-----BEGIN OPENSSH PRIVATE KEY-----\n" + text + b"-----END OPENSSH PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is not a private key"),
        (b"\xff\xfe nonsense", "is not a private key"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END", "is damaged"),
        (b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n", "is damaged"),
        (b"-----BEGIN DSA PRIVATE KEY-----\nAAAA\n", "DSA"),
    ],
)
def test_a_file_that_is_no_key(
    content: bytes, says: str, server: Server, said: Said, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    error = refusal(server.config(f"IdentityFile {path}", key=None), said)
    assert str(path) in error.details
    assert says in error.details


def test_the_next_key_is_tried_after_a_broken_one(
    server: Server, keys: Keys, said: Said, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("nonsense")
    config = server.config(f"IdentityFile {broken}", f"IdentityFile {tmp_path}/missing")
    assert f"logged in with {keys.private('user')}" in log_in(config, said)


def test_a_user_who_does_not_exist(server: Server, said: Said) -> None:
    config = server.config()
    with pytest.raises(LoginRefused) as caught:
        connect(Endpoint("there", user="nobody-here"), said.options(config))
    assert f"nobody-here@127.0.0.1:{server.port}" in caught.value.what


# The agent


@pytest.fixture
def agent(keys: Keys, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Start an ssh-agent that holds the keys named; returns its socket."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*names: str, confirm: bool = False) -> Path:
        path = tmp_path / f"agent{len(started)}"
        started.append(subprocess.Popen(["ssh-agent", "-D", "-a", str(path)]))
        wait_until(path.exists, "the agent listens")
        for name in names:
            environment = {**os.environ, "SSH_AUTH_SOCK": str(path)}
            command = ["ssh-add", "-q", *(["-c"] if confirm else []), str(keys.private(name))]
            subprocess.run(command, env=environment, check=True)
        return path

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.wait(5)


@pytest.fixture
def many(keys: Keys) -> list[str]:
    names = [f"many{number}" for number in range(8)]
    for name in names:
        keys.make(name, "-t", "ed25519")
    return names


def test_a_key_of_the_agent(
    agent: Callable[..., Path], server: Server, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent("user")))
    config = server.config("IdentityAgent SSH_AUTH_SOCK", key=None)
    assert "logged in with user of the agent" in log_in(config, said)


@pytest.mark.parametrize("kind", ["rsa", "ecdsa 256"])
def test_other_kinds_of_keys_of_the_agent(
    kind: str, agent: Callable[..., Path], kinds_server: Server, said: Said
) -> None:
    config = kinds_server.config(f"IdentityAgent {agent(_file(kind))}", key=None)
    assert "of the agent" in log_in(config, said)


def test_a_key_that_the_agent_does_not_let_us_use(
    agent: Callable[..., Path], server: Server, keys: Keys, said: Said
) -> None:
    """`ssh-add -c` wants a confirmation, and nobody is there to give it: the next key is tried."""
    settings = [f"IdentityAgent {agent('user', confirm=True)}"]
    error = refusal(server.config(*settings, key=None), said)
    assert "user of the agent could not sign" in error.details
    keys.make("copy_of_user", "-t", "ed25519")
    for ending in ("", ".pub"):
        shutil.copy(keys.private(f"user{ending}"), keys.private(f"copy_of_user{ending}"))
    assert "logged in with" in log_in(server.config("IdentityAgent none", key="copy_of_user"), said)


@pytest.mark.parametrize(
    "answer", [b"", b"\0\0\0\x01\x05", b"\0\0\0\x01\x0c", b"\0\0\0\x05\x0c\0\0\0\x09", b"\xff" * 9]
)
def test_an_agent_that_makes_no_sense(
    answer: bytes, server: Server, said: Said, tmp_path: Path
) -> None:
    path = tmp_path / "agent"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        error = refusal(server.config(f"IdentityAgent {path}", key=None), said)
        thread.join()
    assert "agent: the agent" in error.details or answer == b"\0\0\0\x01\x0c"


def test_no_agent_where_none_is_wanted(
    agent: Callable[..., Path], server: Server, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent("user")))
    error = refusal(server.config("IdentityAgent none", key="stranger"), said)
    assert "agent" not in error.details


def test_an_agent_that_is_not_there(server: Server, said: Said, tmp_path: Path) -> None:
    config = server.config(f"IdentityAgent {tmp_path}/nothing")
    assert "logged in with" in log_in(config, said)
    error = refusal(server.config(f"IdentityAgent {tmp_path}/nothing", key="stranger"), said)
    assert "agent:" in error.details


def test_the_configured_key_comes_before_eight_others(
    agent: Callable[..., Path], many: list[str], server: Server, keys: Keys, said: Said
) -> None:
    """MaxAuthTries is 6: with the agent's keys first it would never be reached."""
    path = agent(*many)
    for settings in ([f"IdentityAgent {path}"], [f"IdentityAgent {path}", "IdentitiesOnly yes"]):
        said.notes.clear()
        config = server.config(*settings)
        assert f"logged in with {keys.private('user')}" in log_in(config, said)


def test_too_many_keys_name_the_limit_and_the_way_out(
    agent: Callable[..., Path], many: list[str], server: Server, said: Said
) -> None:
    config = server.config(f"IdentityAgent {agent(*many, 'user')}", key=None)
    assert ssh(config, "true").returncode == 255
    for choice in ("paramiko", "openssh"):
        error = refusal(config, said, choice)
        assert "MaxAuthTries" in error.what
        assert "many0" in error.details
        assert "IdentitiesOnly yes" in error.advice


def test_identities_only_uses_the_agent_for_configured_keys(
    agent: Callable[..., Path], many: list[str], server: Server, keys: Keys, said: Said,
    tmp_path: Path,
) -> None:  # fmt: skip
    """The private key is in the agent alone; the configuration names its public half."""
    shutil.copy(keys.private("user.pub"), tmp_path / "only.pub")
    for name in ("only", "only.pub"):
        said.notes.clear()
        config = server.config(
            f"IdentityAgent {agent(*many, 'user')}",
            "IdentitiesOnly yes",
            f"IdentityFile {tmp_path}/{name}",
            key=None,
        )
        assert ssh(config, "true").returncode == 0
        assert f"logged in with {tmp_path}/{name} through the agent" in log_in(config, said)


def test_identities_only_offers_nothing_else(
    agent: Callable[..., Path], many: list[str], server: Server, keys: Keys, said: Said
) -> None:
    path = agent(many[0], "user")
    config = server.config(f"IdentityAgent {path}", "IdentitiesOnly yes", key="stranger")
    assert ssh(config, "true").returncode == 255
    error = refusal(config, said)
    assert f"offered: {keys.private('stranger')}" in error.details
    assert "agent" not in error.details
    log_in(server.config(f"IdentityAgent {path}", key="stranger"), said)


def test_an_encrypted_key_through_the_agent_needs_no_passphrase(
    agent: Callable[..., Path], start_server: ServerMaker, keys: Keys, said: Said
) -> None:
    keys.make("locked_in_agent", "-t", "ed25519")
    path = agent("locked_in_agent")
    command = ["ssh-keygen", "-q", "-p", "-N", "secret", "-f"]
    subprocess.run([*command, str(keys.private("locked_in_agent"))], check=True)
    server = start_server(authorized=keys.public("locked_in_agent"))
    config = server.config(f"IdentityAgent {path}", key="locked_in_agent")
    assert "through the agent" in log_in(config, said)


# Certificates


@pytest.mark.parametrize("where", ["beside the key", "CertificateFile", "in the agent"])
def test_a_certificate(
    where: str, agent: Callable[..., Path], start_server: ServerMaker, keys: Keys, said: Said,
    tmp_path: Path,
) -> None:  # fmt: skip
    keys.make("authority", "-t", "ed25519")
    for kind in ("ed25519", "rsa"):
        key = tmp_path / f"{kind}_key"
        subprocess.run(["ssh-keygen", "-q", "-N", "", "-f", str(key), *KINDS[kind]], check=True)
        sign = ["ssh-keygen", "-q", "-s", str(keys.private("authority")), "-I", "me", "-n", USER]
        subprocess.run([*sign, f"{key}.pub"], check=True)
        server = start_server(
            f"TrustedUserCAKeys {keys.private('authority.pub')}", authorized="# nobody\n"
        )
        settings = [f"IdentityFile {key}", "IdentityAgent none"]
        if where == "CertificateFile":
            certificate = tmp_path / f"{kind}.cert"
            Path(f"{key}-cert.pub").rename(certificate)
            settings.append(f"CertificateFile {certificate}")
        elif where == "in the agent":
            path = agent()
            environment = {**os.environ, "SSH_AUTH_SOCK": str(path)}
            subprocess.run(["ssh-add", "-q", str(key)], env=environment, check=True)
            settings = [f"IdentityAgent {path}"]
        config = server.config(*settings, key=None)
        said.notes.clear()
        assert ssh(config, "true").returncode == 0
        log_in(config, said)


# Several steps, and methods


def test_a_method_that_the_host_does_not_take(start_server: ServerMaker, said: Said) -> None:
    server = start_server("PubkeyAuthentication no")
    error = refusal(server.config(), said)
    assert "the host accepts: password" in error.details
    assert "terminal" in error.advice


def test_two_keys_one_after_the_other(start_server: ServerMaker, keys: Keys, said: Said) -> None:
    """AuthenticationMethods with two keys: a partial success is not the end."""
    server = start_server(
        "AuthenticationMethods publickey,publickey",
        authorized=f"{keys.public('user')}\n{keys.public('stranger')}",
    )
    both = server.config(f"IdentityFile {keys.private('stranger')}")
    assert ssh(both, "true").returncode == 0
    log_in(both, said)
    refusal(server.config(), said)


def test_a_configuration_that_ssh_refuses(server: Server, said: Said) -> None:
    config = server.config("NoSuchOption yes")
    with pytest.raises(ClientError) as caught:
        connect(Endpoint("there"), said.options(config))
    assert str(config) in caught.value.what
    assert "line 5" in caught.value.details
