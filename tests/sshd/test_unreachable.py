"""Hosts that cannot be reached: an error with name and port, within its deadline, and no trace."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from launchpad.errors import (
    HostUnreachable,
    LaunchpadError,
    LoginRefused,
    SshError,
    UsageError,
)
from launchpad.transport import connect
from launchpad.transport.base import Completed, Endpoint, exchange
from support.sshd import Said, Server, ServerMaker, free_port, wait_until

CHOICES = ("paramiko", "openssh")

# Seconds for each step in these tests.
STEP = 1.5


def call(config: Path | None, said: Said, choice: str, endpoint: Endpoint) -> Completed:
    transport = connect(endpoint, said.options(config, choice=choice, timeout=STEP))
    try:
        return exchange(transport.open(["true"]), b"", deadline=10)
    finally:
        transport.close()


def fault(
    said: Said, choice: str, port: int, host: str = "127.0.0.1", within: float = STEP + 2
) -> HostUnreachable:
    started = time.monotonic()
    with pytest.raises(HostUnreachable) as caught:
        call(Path("/dev/null"), said, choice, Endpoint(host, "root", port))
    assert time.monotonic() - started < within
    assert host in caught.value.what
    assert "Traceback" not in f"{caught.value.what}{caught.value.details}"
    return caught.value


class Listener:
    """A port that does as it is told with each connection."""

    def __init__(self, serve: Callable[[socket.socket, int], None]) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=50)
        self._serve = serve
        self.port: int = self._socket.getsockname()[1]
        self.count = 0
        self._kept: list[socket.socket] = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.count += 1
            self._kept.append(connection)
            threading.Thread(target=self._serve, args=(connection, self.count), daemon=True).start()

    def close(self) -> None:
        self._socket.close()
        for connection in self._kept:
            connection.close()


@pytest.fixture
def listen() -> Iterator[Callable[..., Listener]]:
    listeners: list[Listener] = []

    def start(serve: Callable[[socket.socket, int], None]) -> Listener:
        listeners.append(Listener(serve))
        return listeners[-1]

    yield start
    for listener in listeners:
        listener.close()


@pytest.mark.parametrize("choice", CHOICES)
def test_a_closed_port(choice: str, said: Said) -> None:
    port = free_port()
    error = fault(said, choice, port)
    assert f"port {port}" in error.what
    assert "connection refused" in error.what


@pytest.mark.parametrize("choice", CHOICES)
def test_an_unknown_name(choice: str, said: Said) -> None:
    error = fault(said, choice, 22, host="no-such-host.invalid", within=10)
    assert "not known" in error.what


@pytest.mark.parametrize("choice", CHOICES)
def test_a_silent_port(choice: str, said: Said, listen: Callable[..., Listener]) -> None:
    listener = listen(lambda _connection, _count: None)
    error = fault(said, choice, listener.port)
    assert f"port {listener.port}" in error.what
    if choice == "paramiko":
        assert "no ssh server answered within 1.5 s" in error.what


@pytest.mark.parametrize("choice", CHOICES)
def test_a_web_server(choice: str, said: Said, listen: Callable[..., Listener]) -> None:
    def answer(connection: socket.socket, _count: int) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.0 400 Bad request\r\n\r\n")
        connection.close()

    error = fault(said, choice, listen(answer).port)
    if choice == "paramiko":
        assert "not an ssh server" in error.what
        assert "HTTP/1.0 400" in error.details


def test_a_server_that_never_stops_talking(said: Said, listen: Callable[..., Listener]) -> None:
    def flood(connection: socket.socket, _count: int) -> None:
        try:
            while True:
                connection.sendall(b"x" * 10000)
        except OSError:
            pass

    assert "not an ssh server" in fault(said, "paramiko", listen(flood).port).what


def test_a_server_that_hangs_after_its_version_line(
    said: Said, listen: Callable[..., Listener]
) -> None:
    def greet(connection: socket.socket, _count: int) -> None:
        connection.sendall(b"SSH-2.0-Sleepy\r\n")

    assert "key exchange" in fault(said, "paramiko", listen(greet).port).what


def test_a_server_that_hangs_up_after_its_version_line(
    said: Said, listen: Callable[..., Listener]
) -> None:
    def greet(connection: socket.socket, _count: int) -> None:
        connection.sendall(b"SSH-2.0-Rude\r\n")
        connection.recv(100)
        connection.close()

    assert "hung up during the key exchange" in fault(said, "paramiko", listen(greet).port).what
    assert "cannot reach" in fault(said, "openssh", listen(greet).port).what


@pytest.mark.parametrize("choice", CHOICES)
def test_a_connection_dropped_once_is_tried_again(
    choice: str, server: Server, said: Said, listen: Callable[..., Listener]
) -> None:
    def drop_the_first(connection: socket.socket, count: int) -> None:
        if count == 1:
            connection.close()
            return
        with socket.create_connection(("127.0.0.1", server.port)) as behind:
            pump = threading.Thread(target=_copy, args=(connection, behind), daemon=True)
            pump.start()
            _copy(behind, connection)

    listener = listen(drop_the_first)
    config = server.config("HostKeyAlias kin", known=server.known_line(name="kin"))
    endpoint = Endpoint("there", None, listener.port)
    transport = connect(endpoint, said.options(config, choice=choice, timeout=STEP))
    done = exchange(transport.open(["cat"]), b"once", deadline=10)
    transport.close()
    assert (done.stdout, done.exit_code) == (b"once", 0)
    assert listener.count == 2


def _copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.mark.parametrize("choice", CHOICES)
def test_connections_dropped_for_ever(
    choice: str, said: Said, listen: Callable[..., Listener]
) -> None:
    def drop(connection: socket.socket, _count: int) -> None:
        connection.sendall(b"Exceeded MaxStartups\r\n")
        connection.close()

    listener = listen(drop)
    error = fault(said, choice, listener.port, within=4)
    assert "MaxStartups" in f"{error.advice}{error.details}"
    assert listener.count == 2


def test_twelve_at_once_against_max_startups(start_server: ServerMaker, said: Said) -> None:
    """Each gets in or is told why; nobody waits for ever."""
    server = start_server("MaxStartups 2:100:3")
    config = server.config()

    def one(_number: int) -> int | str | None:
        try:
            return call(config, said, "paramiko", Endpoint("there")).exit_code
        except HostUnreachable as error:
            return error.advice

    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(one, range(12)))
    assert 0 in outcomes
    for outcome in outcomes:
        assert outcome == 0 or "MaxStartups" in str(outcome)


def test_an_sshd_that_stops_during_the_login(
    start_server: ServerMaker, said: Said, tmp_path: Path
) -> None:
    """SIGSTOP hits the process that checks the key: no answer, no reset."""
    marker = tmp_path / "asked"
    script = tmp_path / "keys"
    script.write_text(f"touch {marker}\nkill -STOP $PPID\n")
    # sshd looks at the program's path only, and refuses one below a /tmp that all may write to.
    server = start_server(
        f"AuthorizedKeysCommand /bin/sh {script}",
        "AuthorizedKeysCommandUser root",
        authorized="# no one\n",
    )
    config = server.config()
    started = time.monotonic()
    with pytest.raises(LoginRefused) as caught:
        call(config, said, "paramiko", Endpoint("there"))
    assert time.monotonic() - started < 3 * STEP
    assert "no answer within" in caught.value.what
    assert marker.exists()
    for pid in server.sessions():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "host", ["-oProxyCommand=touch /tmp/owned", "a b", "x;y", "$(id)", "a\nb", ""]
)
def test_no_name_of_a_host(host: str, said: Said) -> None:
    with pytest.raises(UsageError):
        call(None, said, "paramiko", Endpoint(host))


@pytest.mark.parametrize("user", ["-l", "a;b", "x\ny", "'"])
def test_no_name_of_a_user(user: str, said: Said) -> None:
    with pytest.raises(UsageError):
        call(None, said, "paramiko", Endpoint("there", user))


def test_nothing_in_common(start_server: ServerMaker, said: Said) -> None:
    server = start_server("Ciphers chacha20-poly1305@openssh.com")
    with pytest.raises(SshError) as caught:
        call(server.config(), said, "paramiko", Endpoint("there"))
    assert "no algorithm in common" in caught.value.what
    assert "--transport openssh" in caught.value.advice
    assert call(server.config(), said, "openssh", Endpoint("there")).exit_code == 0


AWAIT_FAILURE = """
import sys
from pathlib import Path
from launchpad.errors import LaunchpadError
from launchpad.transport import connect
from launchpad.transport.base import ConnectOptions, Endpoint
try:
    connect(Endpoint("127.0.0.1", "root", int(sys.argv[1])),
            ConnectOptions(ssh_config=Path("/dev/null"), choice="paramiko", timeout=8))
except LaunchpadError as error:
    print(error.layer)
"""


def test_no_thread_keeps_the_process_alive(listen: Callable[..., Listener]) -> None:
    """A key exchange that breaks off leaves threads of paramiko's behind."""

    def greet(connection: socket.socket, _count: int) -> None:
        connection.sendall(b"SSH-2.0-Rude\r\n")
        connection.recv(100)
        connection.close()

    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", AWAIT_FAILURE, str(listen(greet).port)],
        capture_output=True,
        check=True,
        timeout=20,
    )
    assert done.stdout == b"ssh\n"
    assert done.stderr == b""
    assert time.monotonic() - started < 6


def test_no_thread_is_left_after_failures(server: Server, said: Said) -> None:
    before = threading.active_count()
    for known in ("", server.known_line(key="other_ed25519")):
        with pytest.raises(LaunchpadError):
            call(server.config(known=known), said, "paramiko", Endpoint("there"))
    wait_until(lambda: threading.active_count() <= before, "threads end")
