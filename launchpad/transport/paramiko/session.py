"""Logged-in connections, one inside the other where there are jump hosts."""

import logging
import threading
import time
from collections.abc import Sequence

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from launchpad.errors import SshError
from launchpad.sshconfig import SshConfig
from launchpad.transport import faults
from launchpad.transport.base import SILENCE_LIMIT, Channel, ConnectOptions, Terminal
from launchpad.transport.paramiko import reach, trust
from launchpad.transport.paramiko.channel import Connection, ParamikoChannel, Pulse, send
from launchpad.transport.paramiko.identities import Keyring
from launchpad.transport.paramiko.knownhosts import KnownHosts
from launchpad.transport.paramiko.line import Line
from launchpad.transport.paramiko.login import Login

# Preference by speed in Python: AES-GCM encrypts and authenticates in one call into C.
_CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes256-ctr",
    "aes192-ctr",
)
_MACS = (
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
    "hmac-sha1",
)


# With MaxSessions 1 a host refuses a channel until it has seen the end of the last one (seconds).
_SETTLING = 0.4


class Session:
    """The connections to a host and to the jump hosts before it, in order of travel."""

    def __init__(self, config: SshConfig, options: ConnectOptions, keyring: Keyring) -> None:
        self.config = config
        self._options = options
        self.keyring = keyring
        self._had_channel = False
        self.connections: list[Connection] = []

    @property
    def user(self) -> str:
        """Who is logged in on the host."""
        return self.config.user

    def open(self, line: bytes, terminal: Terminal | None) -> Channel:
        """Run a command line on the host.

        The request goes out without waiting for its answer: what the command reads can follow at
        once. Raises :class:`~launchpad.errors.SshError`.
        """
        connection = self.connections[-1]
        address = self.config.address
        try:
            channel = self._new_channel(connection.client)
            if terminal is not None:
                send(connection.client, _request_pty(channel, terminal))
                channel.event.wait(self._options.timeout)
                if not channel.event_ready:
                    raise faults.no_channel(address, "it gives no terminal (PermitTTY)")
                channel.event_ready = False
            send(connection.client, _request_command(channel, line))
        except paramiko.ChannelException as error:
            raise faults.no_channel(address, error.text.lower()) from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            if connection.client.is_active():
                raise faults.no_channel(address, str(error).lower() or "no answer") from error
            raise connection.lost("it broke") from error
        return ParamikoChannel(channel, connection, on_pty=terminal is not None)

    def _new_channel(self, client: paramiko.Transport) -> paramiko.Channel:
        """A channel; where the one before it has just ended, the host may not know that yet."""
        give_up = time.monotonic() + (_SETTLING if self._had_channel else 0.0)
        self._had_channel = True
        while True:
            try:
                return client.open_session(timeout=self._options.timeout)
            except paramiko.ChannelException:
                if time.monotonic() >= give_up:
                    raise
            time.sleep(_SETTLING / 20)

    def answers(self, patience: float) -> bool:
        """Whether the host gives a sign of life within ``patience`` seconds."""
        return self.connections[-1].answers(patience)

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        self.keyring.close()


def _request_pty(channel: paramiko.Channel, terminal: Terminal) -> paramiko.Message:
    """RFC 4254 §6.2."""
    message = _request(channel, "pty-req")
    message.add_string(terminal.name)
    for size in (terminal.columns, terminal.rows, 0, 0):
        message.add_int(size)
    message.add_string(b"")
    return message


def _request_command(channel: paramiko.Channel, line: bytes) -> paramiko.Message:
    """RFC 4254 §6.5."""
    message = _request(channel, "exec")
    message.add_string(line)
    return message


def _request(channel: paramiko.Channel, kind: str) -> paramiko.Message:
    message = paramiko.Message()
    message.add_byte(b"\x62")  # SSH_MSG_CHANNEL_REQUEST
    message.add_int(channel.remote_chanid)
    message.add_string(kind)
    message.add_boolean(True)  # noqa: FBT003 (an answer is wanted)
    return message


def establish(
    hosts: Sequence[SshConfig],
    known: Sequence[KnownHosts],
    first: reach.InBackground[Line],
    options: ConnectOptions,
) -> Session:
    """Log in to each host, through the one before it; ``first``: the line to the first."""
    keyring = Keyring(options)
    session = Session(hosts[-1], options, keyring)
    try:
        line = first.wait()
        session.connections.append(_log_in(hosts[0], line, known[0], options, keyring))
        for jump, host, keys in zip(hosts, hosts[1:], known[1:], strict=False):
            dial = _Through(session.connections[-1].client, jump, host)
            connection = _go_on(dial, host, keys, options, keyring)
            session.connections.append(connection)
    except BaseException:
        session.close()
        raise
    return session


def behind(front: Session, host: SshConfig, known: KnownHosts, options: ConnectOptions) -> Session:
    """Log in to a host through one that we are logged in to, which stays in the caller's care."""
    keyring = front.keyring
    session = Session(host, options, keyring)
    dial = _Through(front.connections[-1].client, front.config, host)
    connection = _go_on(dial, host, known, options, keyring)
    session.connections.append(connection)
    return session


def _go_on(
    dial: "_Through",
    host: SshConfig,
    known: KnownHosts,
    options: ConnectOptions,
    keyring: Keyring,
) -> Connection:
    line = reach.reach(host, dial, reach.step_timeout(host, options))
    return _log_in(host, line, known, options, keyring)


class _Through:
    """Dials a host from a jump host."""

    def __init__(self, client: paramiko.Transport, jump: SshConfig, host: SshConfig) -> None:
        self._client, self._jump, self._host = client, jump, host

    def __call__(self, deadline: float) -> reach.Connection:
        try:
            channel = self._client.open_channel(
                "direct-tcpip",
                (self._host.hostname, self._host.port),
                ("127.0.0.1", 0),
                timeout=max(0.1, deadline - time.monotonic()),
            )
        except paramiko.ChannelException as error:
            raise faults.jump_refused(
                reach.place(self._host), self._jump.alias, error.text.lower()
            ) from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise faults.jump_refused(
                reach.place(self._host), self._jump.alias, str(error).lower() or "it hung up"
            ) from error
        return reach.Connection(channel)


def _log_in(
    config: SshConfig, line: Line, known: KnownHosts, options: ConnectOptions, keyring: Keyring
) -> Connection:
    """From the server's version line to a login; closes the line where that fails."""
    # It is a socket in all that paramiko asks of one.
    client = paramiko.Transport(line)  # type: ignore[arg-type]
    connection = Connection(client, line, config.address, _pulse(config))
    try:
        _prepare(connection, config, known)
        _exchange_keys(connection, config, reach.step_timeout(config, options))
        shown = client.get_remote_server_key()
        trust.check(trust.ShownKey(shown.asbytes()), known, config, options)
        accepted = Login(connection, config, options, keyring).run()
    except BaseException:
        connection.close()
        raise
    options.note(f"{config.address}: logged in with {accepted}")
    return connection


def _pulse(config: SshConfig) -> Pulse:
    """The user's own, where it is quicker than ours."""
    interval, count = config.server_alive_interval, config.server_alive_count_max
    limit = interval * (count + 1)
    return Pulse(interval, limit) if 0 < limit <= SILENCE_LIMIT else Pulse()


def _prepare(connection: Connection, config: SshConfig, known: KnownHosts) -> None:
    """What to offer in the key exchange, and where to put what paramiko would log."""
    client = connection.client
    client.local_version = reach.VERSION_LINE
    # One of its own for each connection, known to nobody else.
    logger = logging.Logger("launchpad.paramiko", logging.INFO)  # noqa: LOG001
    logger.addHandler(_Goodbye(connection))
    client.logger = logger
    client.packetizer.set_log(logger)
    offer = client.get_security_options()
    offer.ciphers = _allowed(_CIPHERS, offer.ciphers, config.ciphers)
    offer.digests = _allowed(_MACS, offer.digests, config.macs)
    offer.kex = _allowed(offer.kex, offer.kex, config.key_exchanges)
    offer.key_types = trust.key_algorithms(config, known)
    client.use_compression(config.compression)


def _allowed(
    ours: Sequence[str], able: Sequence[str], configured: Sequence[str]
) -> tuple[str, ...]:
    """What this paramiko can do and the configuration allows; all of it where that names none."""
    can = tuple(name for name in ours if name in able)
    return tuple(name for name in can if name in configured) or can


class _Goodbye(logging.Handler):
    """paramiko throws away why a server hung up, except for a line in its log."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text.startswith("Disconnect (code"):
            self._connection.goodbye = text.partition("): ")[2].strip()


def _exchange_keys(connection: Connection, config: SshConfig, timeout: float) -> None:
    client = connection.client
    done = threading.Event()
    client.banner_timeout = client.handshake_timeout = timeout
    client.start_client(event=done)
    answered = done.wait(timeout)
    if client.is_active() and client.initial_kex_done:
        return
    error = client.get_exception()
    if isinstance(error, IncompatiblePeer):
        raise SshError(
            f"{reach.place(config)} and this client have no algorithm in common",
            details=str(error),
            advice="--transport openssh knows more of them; or update sshd there",
        ) from error
    why = "its ssh server hung up during the key exchange"
    if not answered:
        why = f"its ssh server did not finish the key exchange within {timeout:g} s"
    details = connection.goodbye or (str(error) if error is not None else "")
    raise faults.unreachable(reach.place(config), why, details=details) from error
