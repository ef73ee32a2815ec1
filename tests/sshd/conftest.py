"""Real sshd instances on high ports of 127.0.0.1, each with keys and a configuration of its own."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.sshd import SSHD, Keys, Said, Server, ServerMaker, free_port, wait_until


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    made = Keys(tmp_path_factory.mktemp("keys"))
    for name, *arguments in (
        ("host_ed25519", "-t", "ed25519"),
        ("host_ecdsa", "-t", "ecdsa"),
        ("host_rsa", "-t", "rsa", "-b", "2048"),
        ("other_ed25519", "-t", "ed25519"),
        ("other_ecdsa", "-t", "ecdsa"),
        ("user", "-t", "ed25519"),
        ("stranger", "-t", "ed25519"),
    ):
        made.make(name, *arguments)
    return made


@pytest.fixture(scope="session")
def start_server(keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerMaker]:
    """Start an sshd with further lines of configuration; all of them end with the tests."""
    servers: list[Server] = []
    Path("/run/sshd").mkdir(exist_ok=True)

    def start(
        *settings: str,
        host_keys: tuple[str, ...] = ("host_rsa", "host_ecdsa", "host_ed25519"),
        authorized: str | None = None,
        address: str = "127.0.0.1",
        wrapper: tuple[str, ...] = (),
    ) -> Server:
        directory = tmp_path_factory.mktemp("sshd")
        home = directory / "home"
        home.mkdir()
        authorized_keys = directory / "authorized_keys"
        authorized_keys.write_text(authorized if authorized is not None else keys.public("user"))
        port = free_port()
        configuration = directory / "sshd_config"
        configuration.write_text(
            "\n".join(
                [
                    *settings,
                    f"Port {port}",
                    f"ListenAddress {address}",
                    *(f"HostKey {keys.private(name)}" for name in host_keys),
                    f"AuthorizedKeysFile {authorized_keys}",
                    f"PidFile {directory}/pid",
                    # The start-up files of this machine's root are none of our business.
                    f"SetEnv HOME={home}",
                    "StrictModes no",
                    *([] if "UsePAM yes" in settings else ["UsePAM no"]),
                    "PermitRootLogin yes",
                    "LogLevel VERBOSE",
                ]
            )
            + "\n"
        )
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(
                [*wrapper, SSHD, "-D", "-e", "-f", str(configuration)],
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        server = Server(process, port, directory, keys, host_keys)
        servers.append(server)
        wait_until(
            lambda: "Server listening" in server.log or process.poll() is not None, "sshd listens"
        )
        assert process.poll() is None, server.log
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="session")
def server(start_server: ServerMaker) -> Server:
    """The sshd that most tests use; they must leave it as it is."""
    return start_server("MaxStartups 100")


@pytest.fixture
def said() -> Said:
    return Said()
