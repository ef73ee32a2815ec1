"""Proving who we are: keys and certificates, and, on a terminal only, passwords."""

from collections.abc import Sequence

import paramiko

from launchpad.errors import LaunchpadError
from launchpad.sshconfig import SshConfig
from launchpad.transport import faults
from launchpad.transport.base import ConnectOptions
from launchpad.transport.paramiko import terminal
from launchpad.transport.paramiko.agent import AgentFault
from launchpad.transport.paramiko.channel import Connection
from launchpad.transport.paramiko.identities import Identity, Keyring, Offering
from launchpad.transport.paramiko.reach import InBackground

# Somebody who types a password gets this long (seconds); sshd itself allows 120.
_TYPING_TIME = 120.0


class _Offer(paramiko.PKey):
    """An identity in the shape in which paramiko takes a key."""

    def __init__(self, identity: Identity) -> None:
        super().__init__()
        self.public_blob = None
        self._identity = identity
        self.fault = ""

    def asbytes(self) -> bytes:
        return self._identity.blob

    def get_name(self) -> str:
        return self._identity.name

    def can_sign(self) -> bool:
        return True

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> paramiko.Message:
        """Called on paramiko's own thread, which an exception would end, connection and all.

        A key that cannot sign gives a signature that no server accepts; the next one has its turn.
        """
        try:
            return paramiko.Message(self._identity.sign(data, algorithm or self.get_name()))
        except (AgentFault, OSError, ValueError) as error:
            self.fault = str(error)
            return paramiko.Message(b"")


class Login:
    """One login, and what is to be said about it if it fails."""

    def __init__(
        self,
        connection: Connection,
        config: SshConfig,
        options: ConnectOptions,
        keyring: Keyring,
    ) -> None:
        self._connection = connection
        self._client = connection.client
        self._config = config
        self._options = options
        self._offering = Offering(keyring, config)
        self._tried: list[str] = []
        # The methods the server would still take; None until it has said so.
        self._methods: Sequence[str] | None = None

    def run(self) -> str:
        """Log in; returns what was accepted, for ``-v``.

        Raises :class:`~launchpad.errors.LoginRefused`.
        """
        self._client.auth_timeout = self._options.timeout
        for identity in self._offering:
            if self._methods is not None and "publickey" not in self._methods:
                break
            self._tried.append(str(identity))
            if self._offer(identity):
                return str(identity)
        if self._options.interactive:
            accepted = self._ask()
            if accepted:
                return accepted
        raise self._refused()

    def _offer(self, identity: Identity) -> bool:
        key = _Offer(identity)
        try:
            self._methods = self._client.auth_publickey(self._config.user, key) or None
        except paramiko.BadAuthenticationType as error:
            self._methods = error.allowed_types
            return False
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._survives(error)
            if key.fault:
                self._offering.skipped.append(f"{identity.label} could not sign: {key.fault}")
                self._tried.remove(str(identity))
            return False
        return self._methods is None

    def _survives(self, error: Exception) -> None:
        """Go on only where the connection still stands."""
        if not self._client.is_active():
            raise self._hung_up() from error
        if "timeout" in str(error).lower():
            raise faults.login_silent(self._config.address, self._options.timeout) from error

    def _hung_up(self) -> LaunchpadError:
        """The server closed the connection in the middle of the login."""
        offered, goodbye = ", ".join(self._tried), self._connection.goodbye
        if goodbye and "Too many authentication failures" not in goodbye:
            return faults.login_refused(
                self._config.address, offered=offered, advice=f"the host said: {goodbye}"
            )
        return faults.too_many_tries(self._config.address, offered=offered, details=goodbye)

    def _ask(self) -> str | None:
        """Keyboard-interactive, then password: in ssh's order."""
        methods = self._remaining()
        if "keyboard-interactive" in methods and self._config.keyboard_interactive:
            for _attempt in range(self._config.password_prompts):
                if self._interactive():
                    return "keyboard-interactive"
        if "password" in methods and self._config.password_authentication:
            for _attempt in range(self._config.password_prompts):
                question = f"{self._config.user}@{self._config.hostname}'s password: "
                if self._password(terminal.ask(question, echo=False)):
                    return "password"
        return None

    def _password(self, password: str) -> bool:
        self._tried.append("a password")
        try:
            self._methods = self._client.auth_password(self._config.user, password, fallback=False)
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._survives(error)
            return False
        return not self._methods

    def _interactive(self) -> bool:
        """Paramiko asks on its own thread; the terminal is ours, on this one."""
        import queue

        prompts: queue.Queue[list[str] | None] = queue.Queue()
        answers: queue.Queue[list[str]] = queue.Queue()
        asked = False

        def handler(title: str, instructions: str, fields: list[tuple[str, bool]]) -> list[str]:
            lines = [line for line in (title, instructions) if line.strip()]
            prompts.put([*lines, *(f"{text}\0{int(echo)}" for text, echo in fields)])
            return answers.get(timeout=_TYPING_TIME)

        def talk() -> Sequence[str]:
            try:
                return self._client.auth_interactive(self._config.user, handler)
            finally:
                prompts.put(None)

        self._client.auth_timeout = _TYPING_TIME
        talking = InBackground(talk)
        while (fields := prompts.get(timeout=_TYPING_TIME)) is not None:
            given = []
            for field in fields:
                text, separator, echo = field.partition("\0")
                if separator:
                    asked = True
                    given.append(terminal.ask(text, echo=echo == "1"))
                else:
                    self._options.warn(text)
            answers.put(given)
        if asked:
            self._tried.append("keyboard-interactive")
        try:
            self._methods = talking.result(_TYPING_TIME)
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._survives(error)
            return False
        return not self._methods

    def _remaining(self) -> Sequence[str]:
        """What the server takes; asked for only when nothing else is left to do."""
        if self._methods is None and self._client.is_active():
            try:
                self._client.auth_none(self._config.user)
            except paramiko.BadAuthenticationType as error:
                self._methods = error.allowed_types
            except (paramiko.SSHException, EOFError, OSError) as error:
                self._survives(error)
        return self._methods or ()

    def _refused(self) -> LaunchpadError:
        methods = self._remaining()
        advice = ""
        if not self._options.interactive and {"password", "keyboard-interactive"} & set(methods):
            advice = (
                "put a public key of yours into authorized_keys of that user on the host"
                " (ssh-copy-id); a password can be asked for on a terminal only"
            )
        return faults.login_refused(
            self._config.address,
            offered=", ".join(self._tried),
            not_offered=self._offering.skipped,
            accepts=", ".join(methods),
            advice=advice,
        )
