"""Words of OpenSSH's log, and the failures they stand for."""

import pytest

from launchpad.errors import (
    ClientError,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LaunchpadError,
    LineLost,
    LoginRefused,
    SshError,
)
from launchpad.transport.base import Endpoint
from launchpad.transport.sshwords import authenticated_by, classify, describe_login

THERE = Endpoint("pve1", "root", 2222)

LOGGED_IN = 'Authenticated to pve1 ([192.0.2.4]:2222) using "publickey".\n'

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
The fingerprint for the ED25519 key sent by the remote host is
SHA256:a8DrM4+mr50LxCPvJ84qxH01FbPDorzPgppoEbB4/1Y.
Add correct host key in /home/me/.ssh/known_hosts to get rid of this message.
Offending ED25519 key in /home/me/.ssh/known_hosts:3
  remove with:
  ssh-keygen -f "/home/me/.ssh/known_hosts" -R "[192.0.2.4]:2222"
Host key for [192.0.2.4]:2222 has changed and you have requested strict checking.
Host key verification failed.
"""

CASES: dict[str, type[LaunchpadError]] = {
    "ssh: Could not resolve hostname pve1: Name or service not known": HostUnreachable,
    "ssh: connect to host pve1 port 2222: Connection refused": HostUnreachable,
    "ssh: connect to host pve1 port 2222: No route to host": HostUnreachable,
    "ssh: connect to host pve1 port 2222: Connection timed out": HostUnreachable,
    "Connection timed out during banner exchange": HostUnreachable,
    "kex_exchange_identification: Connection closed by remote host": HostUnreachable,
    "kex_exchange_identification: read: Connection reset by peer": HostUnreachable,
    "ssh_exchange_identification: Connection closed by remote host": HostUnreachable,
    "kex_exchange_identification: banner line contains invalid characters": HostUnreachable,
    "Connection closed by 192.0.2.4 port 2222": HostUnreachable,
    "channel 0: open failed: connect failed: Connection refused": HostUnreachable,
    "stdio forwarding failed": HostUnreachable,
    "Host key verification failed.": HostKeyUnknown,
    "No ED25519 host key is known for pve1 and you have requested strict checking.": HostKeyUnknown,
    CHANGED: HostKeyChanged,
    "@ WARNING: REVOKED HOST KEY DETECTED! @\nHost key verification failed.": HostKeyChanged,
    "root@pve1: Permission denied (publickey,password).": LoginRefused,
    "Permission denied (publickey).": LoginRefused,
    "Received disconnect from 192.0.2.4 port 2222:2: Too many authentication failures\n"
    "Disconnected from 192.0.2.4 port 2222": LoginRefused,
    "Unable to negotiate with 192.0.2.4 port 2222: no matching host key type found. "
    "Their offer: ssh-rsa": SshError,
    "/home/me/.ssh/config: line 3: Bad configuration option: nonsense": ClientError,
    "Bad owner or permissions on /home/me/.ssh/config": ClientError,
    LOGGED_IN + "client_loop: send disconnect: Broken pipe": LineLost,
    LOGGED_IN + "Timeout, server pve1 not responding.": LineLost,
    LOGGED_IN + "Connection closed by 192.0.2.4 port 2222": LineLost,
    LOGGED_IN + "Read from remote host pve1: Connection reset by peer": LineLost,
    LOGGED_IN + "packet_write_wait: Connection to 192.0.2.4 port 2222: Broken pipe": LineLost,
    LOGGED_IN + "channel 0: open failed: administratively prohibited: open failed": SshError,
    LOGGED_IN + "exec request failed on channel 0": SshError,
    "mux_client_request_session: session request failed: Session open refused by peer": SshError,
}


@pytest.mark.parametrize("words", CASES)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_words(words: str, ending: str) -> None:
    text = "debug1: Reading configuration data\n" + words + "\n"
    error = classify(text.replace("\n", ending).encode(), THERE)
    assert isinstance(error, CASES[words])
    assert error.what
    assert error.advice or isinstance(error, LineLost | ClientError)
    assert "debug1" not in f"{error.what}{error.details}"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "debug1: Connection closed by something harmless",
        "Warning: Permanently added 'pve1' (ED25519) to the list of known hosts.",
        LOGGED_IN + "debug1: Exit status 255",
        LOGGED_IN + "Transferred: sent 3472, received 3976 bytes, in 0.2 seconds",
    ],
)
def test_no_failure(words: str) -> None:
    assert classify(words.encode(), THERE) is None


def test_who_was_refused_and_what_was_offered() -> None:
    words = (
        "debug1: Authenticating to 192.0.2.4:2222 as 'gpu'\n"
        "debug1: Offering public key: /home/me/.ssh/id ED25519 SHA256:abc explicit agent\n"
        "debug1: Offering public key: work RSA SHA256:def agent\n"
        "no such identity: /home/me/.ssh/missing: No such file or directory\n"
        'Load key "/home/me/.ssh/broken": invalid format\n'
        "gpu@192.0.2.4: Permission denied (publickey,keyboard-interactive).\n"
    )
    error = classify(words.encode(), THERE, "/home/me/conf")
    assert isinstance(error, LoginRefused)
    assert error.what == "gpu@192.0.2.4:2222 refused the login"
    assert "/home/me/.ssh/id ED25519 SHA256:abc, work RSA SHA256:def" in error.details
    assert "/home/me/.ssh/missing does not exist" in error.details
    assert "/home/me/.ssh/broken cannot be used (invalid format)" in error.details
    assert "publickey, keyboard-interactive" in error.details
    assert "ssh -F /home/me/conf -p 2222 root@pve1 -v" in error.advice


def test_a_changed_key_with_its_remedy() -> None:
    error = classify(CHANGED.encode(), THERE)
    assert isinstance(error, HostKeyChanged)
    assert "[192.0.2.4]:2222 has changed" in error.what
    assert "ED25519 SHA256:a8DrM4+mr50LxCPvJ84qxH01FbPDorzPgppoEbB4/1Y," in error.what
    assert "/home/me/.ssh/known_hosts:3" in error.what
    assert 'ssh-keygen -f "/home/me/.ssh/known_hosts" -R "[192.0.2.4]:2222"' in error.advice


def test_the_method_that_was_accepted() -> None:
    assert authenticated_by(LOGGED_IN.encode()) == "publickey"
    assert authenticated_by(b"Permission denied (publickey).") is None


def test_a_login_for_the_curious() -> None:
    words = (
        "debug1: Authenticating to 192.0.2.4:2222 as 'gpu'\n"
        "debug1: Server host key: ssh-ed25519 SHA256:abc\n"
        "debug1: Host '[192.0.2.4]:2222' is known and matches the ED25519 host key.\n"
        "debug1: Found key in /home/me/.ssh/known_hosts:3\n"
        "debug1: Server accepts key: /home/me/.ssh/id ED25519 SHA256:def agent\n" + LOGGED_IN
    )
    assert describe_login(words.encode()) == [
        "host key of [192.0.2.4]:2222 is known in /home/me/.ssh/known_hosts:3: ED25519 SHA256:abc",
        "gpu@192.0.2.4:2222: logged in with /home/me/.ssh/id (ED25519 SHA256:def)",
    ]
    assert describe_login(b"") == []


def test_bytes_that_are_no_text() -> None:
    assert classify(b"\xff\xfe\n\0", THERE) is None
    assert isinstance(classify(b"\xff\nHost key verification failed.\n", THERE), HostKeyUnknown)
