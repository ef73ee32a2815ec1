"""Hosts through the ssh program, with the user's own configuration, agent and hardware keys."""

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from launchpad.command import host_line, to_bytes
from launchpad.errors import LaunchpadError, SshError
from launchpad.sshconfig import SshConfig, check_names, file_arguments, host_arguments, ssh_program
from launchpad.transport import faults, inner, sharing
from launchpad.transport.base import (
    SILENCE_LIMIT,
    Channel,
    ConnectOptions,
    Endpoint,
    Event,
    Exited,
    Output,
    Stream,
    Terminal,
    TransportName,
)
from launchpad.transport.pipes import PipeChannel
from launchpad.transport.second_try import SecondTry
from launchpad.transport.spawn import Wiring, on_pipes, on_pty
from launchpad.transport.sshlog import SshLog

# ssh exits with this for every failure of its own (ssh(1), EXIT STATUS), and so may a command.
_SSH_FAILED = 255

# ssh gives up after COUNT unanswered questions, each INTERVAL seconds after the last.
_ALIVE_INTERVAL = 15
_ALIVE_COUNT = 2

# Locale variables stay here: most sshd accept them, and few containers have that locale.
_STAYS_HERE = rb"LANG|LANGUAGE|LC_\w+"

# In the log: what the host, or the process that holds the shared connection, passed on.
_STATUS = rb"(?m)^debug\d: .*?Exit status (-?\d+)|Received exit status from master (\d+)"
_SHARED = b"master session id: "
_MASTER_ENDED = b"Control master terminated unexpectedly"

# On stderr, as the last words.
_CLOSED_BY_HOST = rb"Connection to \S+ closed by remote host\.\r?\n\Z"

# As much of stderr is remembered from its beginning, and from its end (bytes).
_FIRST_WORDS = 8192
_LAST_WORDS = 256

# A master whose connection broke is gone after this long (seconds).
_MASTER_LEAVES = 0.5


class OpenSshTransport:
    """See :class:`launchpad.transport.base.Transport`.

    Nothing is connected before :meth:`open`; its failures are raised by ``receive``.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        options: ConnectOptions,
        config: SshConfig,
        reason: str,
    ) -> None:
        check_names(endpoint.host, endpoint.user)
        program = ssh_program()
        if program is None:
            raise SshError(
                "there is no ssh program on this machine",
                advice="install the OpenSSH client, or use --transport paramiko",
            )
        self._reason = reason
        self._user = config.user
        # For messages.
        self._endpoint = Endpoint(endpoint.inner.name, config.user) if endpoint.inner else endpoint
        self._options = options
        self._prefix = [program, *file_arguments(options.ssh_config)]
        settings = _settings(options, config)
        # The socket of the shared connection, if there is one.
        self._master = config.control_path
        if options.share and config.control_path is None:
            self._master = sharing.socket_path(config, options)
            settings += sharing.settings(self._master)
        if endpoint.inner is not None:
            # The first value of an option counts: those above before these, all before the files'.
            settings += inner.settings(config, endpoint.inner)
        for setting in settings:
            self._prefix += ["-o", setting]
        self._suffix = host_arguments(endpoint.host, endpoint.user, endpoint.port)
        self._channels: list[_SshChannel] = []

    @property
    def name(self) -> TransportName:
        return "openssh"

    @property
    def reason(self) -> str:
        return self._reason

    @property
    def user(self) -> str:
        return self._user

    def open(self, words: Sequence[str], *, terminal: Terminal | None = None) -> Channel:
        return SecondTry(lambda: self._start(words, terminal))

    def _start(self, words: Sequence[str], terminal: Terminal | None) -> "_SshChannel":
        log = SshLog()
        arguments = [*self._prefix, "-E", log.path, "-tt" if terminal else "-T", *self._suffix]
        line = [*map(to_bytes, arguments), host_line(words)]
        variables = {
            name: value
            for name, value in os.environb.items()
            if not re.fullmatch(_STAYS_HERE, name)
        }
        try:
            if terminal:
                # Where ssh may ask, it asks on this pty, that is through our user's terminal.
                wiring = on_pty(line, terminal, environment=variables, separate_stderr=True)
            else:
                wiring = on_pipes(
                    line, environment=variables, same_session=self._options.interactive
                )
        except OSError as error:
            log.close()
            raise SshError("the ssh program cannot be run", details=str(error)) from error
        channel = _SshChannel(wiring, log, self._endpoint, self._options, self._master)
        self._channels = [one for one in self._channels if not one.closed]
        self._channels.append(channel)
        return channel

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
        self._channels.clear()


def _settings(options: ConnectOptions, config: SshConfig) -> list[str]:
    """What overrides the user's configuration (``-o``), and why."""
    timeout = min(options.timeout, config.connect_timeout or options.timeout)
    interval, count = config.server_alive_interval, config.server_alive_count_max
    if not interval or interval * (count + 1) > SILENCE_LIMIT:
        interval, count = _ALIVE_INTERVAL, _ALIVE_COUNT
    settings = [
        # The log (not the command's stderr) tells how far ssh came and whether a status arrived.
        "LogLevel=DEBUG1",
        f"ConnectTimeout={max(1, round(timeout))}",
        f"ServerAliveInterval={interval}",
        f"ServerAliveCountMax={count}",
        # stdin is data.
        "EscapeChar=none",
        # These belong to the user's own sessions and would fail or disturb ours.
        "ClearAllForwardings=yes",
        "ForwardX11=no",
        "PermitLocalCommand=no",
        "RemoteCommand=none",
    ]
    if not options.interactive:
        settings.append("BatchMode=yes")
    if "logverbose" in config.everything:
        # What becomes of a session on a shared connection is said at a higher level only.
        settings.append("LogVerbose=mux.c:mux_client_request_session():*")
    return settings


class _SshChannel(PipeChannel):
    """The ssh process ends when its channel does, whoever holds the pipes."""

    def __init__(
        self,
        wiring: Wiring,
        log: SshLog,
        endpoint: Endpoint,
        options: ConnectOptions,
        master: Path | None,
    ) -> None:
        super().__init__(wiring, lingers=False)
        self._log = log
        self._endpoint = endpoint
        self._options = options
        self._master = master
        self._described = False
        self._first_words = b""
        self._last_words = b""

    def receive(self, timeout: float | None) -> Event | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            event = super().receive(left)
            if event is not None:
                self._describe_login()
            if not isinstance(event, Output) or event.stream is Stream.STDOUT:
                return event
            self._first_words += event.data[: _FIRST_WORDS - len(self._first_words)]
            self._last_words = (self._last_words + event.data)[-_LAST_WORDS:]
            if self.terminal is None:
                return event
            # With a pty the command has no stderr: this is ssh's "Connection to … closed."

    def ended(self, code: int) -> Exited:
        self._describe_login()
        if code != _SSH_FAILED:
            return super().ended(code)
        from launchpad.transport.sshwords import authenticated_by

        log = self._log.read()
        statuses = [int(direct or shared) for direct, shared in re.findall(_STATUS, log)]
        if statuses and statuses[-1] == _SSH_FAILED:
            return Exited(_SSH_FAILED)
        if authenticated_by(log) is None and _SHARED not in log:
            # The command has not run: stderr is that of jump hosts and proxy commands.
            raise self._failure_in(self._first_words + b"\n" + log) or faults.unreachable(
                str(self._endpoint), "the ssh program gave up without a word"
            )
        failure = self._failure_in(log)
        if failure is not None:
            raise failure
        if re.search(_CLOSED_BY_HOST, self._last_words) or (
            _MASTER_ENDED in log and sharing.is_gone(self._master, _MASTER_LEAVES)
        ):
            raise faults.line_lost(str(self._endpoint), "the host closed it")
        return Exited(None)

    def _failure_in(self, words: bytes) -> LaunchpadError | None:
        from launchpad.transport.sshwords import classify

        file = self._options.ssh_config
        return classify(words, self._endpoint, str(file) if file else None)

    def _describe_login(self) -> None:
        if not self._described:
            self._described = True
            # Late: by now something has come, and more is waited for.
            from launchpad.transport.sshwords import describe_login

            for line in describe_login(self._log.read()):
                self._options.note(line)

    def forsake(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self._log.close()
