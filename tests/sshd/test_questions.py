"""What is asked on a terminal: host keys, passphrases, passwords; nowhere else, never echoed."""

import subprocess
import sys
from pathlib import Path

import pytest

from launchpad.errors import LoginRefused
from launchpad.transport import connect
from launchpad.transport.base import Channel, Endpoint, Exited, Output, Terminal
from launchpad.transport.local import LocalTransport
from support.sshd import USER, Keys, Said, Server, ServerMaker, ssh

PASSWORD = "correct horse"

CLIENT = """
import sys
from pathlib import Path
from launchpad.errors import LaunchpadError
from launchpad.transport import connect
from launchpad.transport.base import ConnectOptions, Endpoint, exchange
options = ConnectOptions(
    ssh_config=Path(sys.argv[1]), choice=sys.argv[2], interactive=True, timeout=10,
    note=lambda line: print("note:", line), warn=lambda line: print("warning:", line),
)
try:
    transport = connect(Endpoint(sys.argv[3]), options)
    done = exchange(transport.open(["echo", "we", "are", "in"]), b"", deadline=15)
    print(done.stdout.decode(), "exit", done.exit_code)
    transport.close()
except LaunchpadError as error:
    print(type(error).__name__, error.what, "|", error.details)
"""


class Conversation:
    """A client on a pty of its own, and what has been on its screen."""

    def __init__(self, config: Path, choice: str = "paramiko", host: str = "there") -> None:
        words = [sys.executable, "-c", CLIENT, str(config), choice, host]
        self.channel: Channel = LocalTransport().open(words, terminal=Terminal("xterm", 200, 50))
        self.screen = ""

    def wait_for(self, text: str) -> None:
        while text not in self.screen:
            match self.channel.receive(20):
                case Output(_, data):
                    self.screen += data.decode()
                case event:
                    raise AssertionError(f"{event} instead of {text!r}: {self.screen}")

    def answer(self, question: str, answer: str) -> None:
        self.wait_for(question)
        self.screen = self.screen.partition(question)[2]
        self.channel.send(answer.encode() + b"\n")

    def end(self) -> str:
        while True:
            match self.channel.receive(20):
                case Output(_, data):
                    self.screen += data.decode()
                case Exited():
                    return self.screen
                case None:
                    raise AssertionError(f"it does not end: {self.screen}")


def test_a_new_host_key_is_shown_and_recorded(server: Server, keys: Keys) -> None:
    config = server.config(known="")
    talk = Conversation(config)
    talk.wait_for("(yes/no/[fingerprint])? ")
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(keys.private("host_ed25519.pub"))],
        capture_output=True, check=True, text=True,
    ).stdout.split()[1]  # fmt: skip
    assert f"ED25519 key fingerprint is {shown}." in talk.screen
    talk.answer("(yes/no/[fingerprint])? ", "perhaps")
    talk.answer("Please type", "yes")
    assert "we are in" in talk.end()
    assert (server.directory / "known_hosts").read_text() == server.known_line()
    assert "we are in" in Conversation(config).end()


def test_the_fingerprint_is_an_answer_too(server: Server, keys: Keys) -> None:
    command = ["ssh-keygen", "-lf", str(keys.private("host_ed25519.pub"))]
    shown = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()[1]
    talk = Conversation(server.config(known=""))
    talk.answer("(yes/no/[fingerprint])? ", shown)
    assert "we are in" in talk.end()


@pytest.mark.parametrize("choice", ["paramiko", "openssh"])
def test_no_is_a_refusal(choice: str, server: Server) -> None:
    talk = Conversation(server.config(known=""), choice)
    talk.answer("(yes/no/[fingerprint])? ", "no")
    assert "HostKeyUnknown" in talk.end()
    assert (server.directory / "known_hosts").read_text() == ""


@pytest.mark.parametrize("choice", ["paramiko", "openssh"])
def test_a_changed_key_is_not_a_question(choice: str, server: Server, keys: Keys) -> None:
    known = f"[127.0.0.1]:{server.port} {keys.public('other_ed25519')}\n"
    assert "HostKeyChanged" in Conversation(server.config(known=known), choice).end()


@pytest.fixture(scope="module")
def locked(start_server: ServerMaker, keys: Keys) -> Server:
    keys.make("locked_ours", "-t", "ed25519", "-N", PASSWORD)
    return start_server(authorized=keys.public("locked_ours"))


@pytest.mark.parametrize("choice", ["paramiko", "openssh"])
def test_a_passphrase(choice: str, locked: Server, keys: Keys) -> None:
    talk = Conversation(locked.config(key="locked_ours"), choice)
    question = f"Enter passphrase for key '{keys.private('locked_ours')}': "
    talk.answer(question, "wrong")
    talk.answer(question, PASSWORD)
    screen = talk.end()
    assert "we are in" in screen
    assert "passphrase" not in screen
    assert PASSWORD not in screen


def test_a_passphrase_is_asked_once_for_two_hosts(
    locked: Server, start_server: ServerMaker, keys: Keys
) -> None:
    behind = start_server(authorized=keys.public("locked_ours"))
    entry = locked.config(key="locked_ours").read_text()
    config = behind.config("ProxyJump there", key="locked_ours", alias="inner", more=entry)
    talk = Conversation(config, host="inner")
    talk.answer("Enter passphrase", PASSWORD)
    assert "we are in" in talk.end()


def test_other_keys_are_tried_before_a_passphrase_is_asked(locked: Server, keys: Keys) -> None:
    keys.make("plain_ours", "-t", "ed25519")
    with (locked.directory / "authorized_keys").open("a") as file:
        file.write(f"\n{keys.public('plain_ours')}\n")
    config = locked.config(f"IdentityFile {keys.private('locked_ours')}", key="plain_ours")
    assert "we are in" in Conversation(config).end()


# Passwords: an sshd with a shadow file and PAM rules of its own


@pytest.fixture(scope="module")
def with_passwords(start_server: ServerMaker, tmp_path_factory: pytest.TempPathFactory) -> Server:
    directory = tmp_path_factory.mktemp("passwords")
    made = subprocess.run(
        ["openssl", "passwd", "-6", PASSWORD], capture_output=True, check=True, text=True
    )
    lines = [
        f"{USER}:{made.stdout.strip()}:19000:0:99999:7:::" if line.startswith(f"{USER}:") else line
        for line in Path("/etc/shadow").read_text().splitlines()
    ]
    shadow = directory / "shadow"
    shadow.write_text("\n".join(lines) + "\n")
    shadow.chmod(0o600)
    rules = directory / "pam"
    rules.write_text(
        "auth required pam_unix.so nodelay\naccount required pam_permit.so\n"
        "session required pam_permit.so\n"
    )
    script = f"mount --bind {shadow} /etc/shadow; mount --bind {rules} /etc/pam.d/sshd"
    return start_server(
        "UsePAM yes",
        "PubkeyAuthentication no",
        wrapper=("unshare", "--mount", "sh", "-c", f'{script}; exec "$@"', "sh"),
    )


@pytest.mark.parametrize("choice", ["paramiko", "openssh"])
@pytest.mark.parametrize("method", ["password", "keyboard-interactive"])
def test_a_password(method: str, choice: str, with_passwords: Server) -> None:
    other = {"password": "KbdInteractive", "keyboard-interactive": "Password"}[method]
    config = with_passwords.config(f"{other}Authentication no")
    talk = Conversation(config, choice)
    talk.answer("assword: ", "wrong")
    talk.answer("assword: ", PASSWORD)
    screen = talk.end()
    assert "we are in" in screen
    assert PASSWORD not in screen
    if choice == "paramiko":
        assert f"logged in with {method}" in screen


def test_three_wrong_passwords(with_passwords: Server) -> None:
    config = with_passwords.config("KbdInteractiveAuthentication no")
    talk = Conversation(config)
    for _ in range(3):
        talk.answer("assword: ", "wrong")
    screen = talk.end()
    assert f"LoginRefused {USER}@127.0.0.1:{with_passwords.port}" in screen
    assert "a password" in screen


@pytest.mark.parametrize("choice", ["paramiko", "openssh"])
def test_nothing_is_asked_without_a_terminal(
    choice: str, with_passwords: Server, said: Said
) -> None:
    config = with_passwords.config()
    assert ssh(config, "true").returncode == 255
    with pytest.raises(LoginRefused) as caught:
        connect(Endpoint("there"), said.options(config, choice=choice)).open(["true"]).receive(10)
    assert "password" in caught.value.details


def test_the_secret_stands_nowhere(with_passwords: Server) -> None:
    """Not in an environment, not in arguments, not in a file of the client's."""
    talk = Conversation(with_passwords.config("KbdInteractiveAuthentication no"))
    talk.answer("assword: ", PASSWORD)
    talk.wait_for("note: ")
    for process in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                assert PASSWORD.encode() not in (process / name).read_bytes(), process
            except OSError:
                continue
    talk.end()
