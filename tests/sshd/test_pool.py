"""Connections that are kept for the next call, and shared by threads."""

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from launchpad.errors import LaunchpadError, LoginRefused
from launchpad.transport import connect, pool as pools
from launchpad.transport.base import ConnectOptions, Endpoint, Output, Transport, exchange
from launchpad.transport.pool import SESSIONS, Pool
from support.sshd import Said, Server, ServerMaker, wait_until

THERE = Endpoint("there")


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


@pytest.fixture
def own(start_server: ServerMaker) -> Server:
    """A server that nobody else logs in to."""
    return start_server()


def logins(server: Server) -> int:
    return server.log.count("Accepted publickey")


def echo(transport: Transport, text: str) -> str:
    done = exchange(transport.open(["sh", "-c", f"echo {text}"]), b"", deadline=20)
    assert done.exit_code == 0, done
    return done.stdout.decode().strip()


def call(options: ConnectOptions, text: str) -> str:
    transport = connect(THERE, options)
    try:
        return echo(transport, text)
    finally:
        transport.close()


def test_the_next_call_has_the_connection_of_the_last(own: Server, said: Said, pool: Pool) -> None:
    options = said.options(own.config(), pool=pool)
    assert [call(options, f"word{number}") for number in range(3)] == ["word0", "word1", "word2"]
    assert logins(own) == 1


def test_without_a_pool_each_call_logs_in(own: Server, said: Said) -> None:
    options = said.options(own.config())
    call(options, "a")
    call(options, "b")
    assert logins(own) == 2


def test_many_threads_need_few_logins(own: Server, said: Said, pool: Pool) -> None:
    options = said.options(own.config(), pool=pool)
    gate = threading.Barrier(32)

    def one(number: int) -> str:
        gate.wait(20)
        transport = connect(THERE, options)
        try:
            return "".join(echo(transport, f"{number}-{turn}") for turn in range(3))
        finally:
            transport.close()

    with ThreadPoolExecutor(32) as threads:
        assert list(threads.map(one, range(32))) == [f"{n}-0{n}-1{n}-2" for n in range(32)]
    assert 1 <= logins(own) <= 32 // SESSIONS


def test_a_host_that_allows_one_command_at_once(
    start_server: ServerMaker, said: Said, pool: Pool
) -> None:
    server = start_server("MaxSessions 1")
    options = said.options(server.config(), pool=pool)
    transports = [connect(THERE, options) for _ in range(3)]
    channels = [transport.open(["cat"]) for transport in transports]
    for channel in channels:
        channel.send(b"here")
        assert b"here" in _read(channel.receive(10))
    for transport in transports:
        transport.close()
    assert logins(server) == 3


def _read(event: object) -> bytes:
    assert isinstance(event, Output), event
    return event.data


def test_a_connection_that_died_is_not_handed_out(own: Server, said: Said, pool: Pool) -> None:
    options = said.options(own.config(), pool=pool)
    assert call(options, "before") == "before"
    for process in own.sessions():
        os.kill(process, signal.SIGKILL)
    assert call(options, "after") == "after"
    assert logins(own) == 2


def test_a_connection_that_fell_silent_is_not_handed_out(
    own: Server, said: Said, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_PATIENCE", 0.3)
    options = said.options(own.config(), pool=pool)
    assert call(options, "before") == "before"
    asleep = own.sessions()
    for process in asleep:
        os.kill(process, signal.SIGSTOP)
    try:
        assert call(options, "after") == "after"
    finally:
        for process in asleep:
            os.kill(process, signal.SIGCONT)
    assert logins(own) == 2


def test_giving_back_ends_the_commands_of_one_user_only(
    own: Server, said: Said, pool: Pool
) -> None:
    options = said.options(own.config(), pool=pool)
    one, other = connect(THERE, options), connect(THERE, options)
    ours, theirs = one.open(["cat"]), other.open(["cat"])
    ours.send(b"a")
    assert _read(ours.receive(10)) == b"a"
    one.close()
    one.close()
    theirs.send(b"b")
    assert _read(theirs.receive(10)) == b"b"
    other.close()
    assert logins(own) == 1
    # Nothing of the first call stays on the host.
    assert call(options, "again") == "again"


def test_all_who_wait_learn_why_a_login_failed(
    start_server: ServerMaker, said: Said, pool: Pool
) -> None:
    server = start_server(authorized="")
    options = said.options(server.config(), pool=pool)
    gate = threading.Barrier(8)

    def one(_number: int) -> LaunchpadError:
        gate.wait(20)
        with pytest.raises(LoginRefused) as caught:
            connect(THERE, options)
        return caught.value

    with ThreadPoolExecutor(8) as threads:
        errors = list(threads.map(one, range(8)))
    assert {error.what for error in errors} == {errors[0].what}
    assert {error.advice for error in errors} == {errors[0].advice}
    assert len({id(error) for error in errors}) == 8


def test_an_idle_connection_is_closed(
    own: Server, said: Said, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "IDLE", 0.2)
    options = said.options(own.config(), pool=pool)
    call(options, "a")
    wait_until(lambda: not own.sessions(), "the connection is closed")
    assert call(options, "b") == "b"


def test_closing_the_pool_closes_connections_when_they_are_given_back(
    own: Server, said: Said, pool: Pool
) -> None:
    options = said.options(own.config(), pool=pool)
    call(options, "idle")
    used = connect(THERE, options)
    pool.close()
    assert echo(used, "still") == "still"
    used.close()
    wait_until(lambda: not own.sessions(), "the connection is closed")


def test_a_forked_process_has_connections_of_its_own(own: Server, said: Said, pool: Pool) -> None:
    options = said.options(own.config(), pool=pool)
    call(options, "parent")
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if call(options, "child") == "child" else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert call(options, "parent") == "parent"
    assert logins(own) == 2


def test_the_ssh_program_is_not_kept(own: Server, said: Said, pool: Pool) -> None:
    options = said.options(own.config(), choice="openssh", pool=pool)
    assert call(options, "a") == "a"
    assert call(options, "b") == "b"
    assert logins(own) == 2
