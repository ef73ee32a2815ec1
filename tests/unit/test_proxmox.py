"""What pct, sudo, ssh and lxc-attach say becomes an error of the right layer, with advice."""

import pytest

from launchpad.errors import (
    ContainerError,
    ContainerSilent,
    ContainerStopped,
    ContainerUnknown,
    LaunchpadError,
    Layer,
    LineLost,
    PctError,
    PctMissing,
    ShellError,
    SudoRefused,
)
from launchpad.proxmox import explain, pct_words
from launchpad.transport.base import Completed

NO_CONFIG = b"Configuration file 'nodes/pve1/lxc/777.conf' does not exist\n"


def judge(
    stderr: bytes, code: int | None = 255, *, ctid: int = 101, silent: bool = False
) -> LaunchpadError:
    done = Completed(b"", stderr, code, silent=silent)
    return explain(done, ctid=ctid, host="pve1", user="ops", ssh="ssh ops@pve1")


@pytest.mark.parametrize(
    ("stderr", "kind", "part"),
    [
        (b"container '101' not running!\n", ContainerStopped, "ssh ops@pve1 pct start 101"),
        (b"sudo: a password is required\n", SudoRefused, "ops ALL=(root) NOPASSWD: /usr/sbin/pct"),
        (b"sudo: sorry, you must have a tty to run sudo\n", SudoRefused, "!requiretty"),
        (b"ops is not in the sudoers file.\n", SudoRefused, "NOPASSWD"),
        (b"Sorry, user ops is not allowed to execute '/usr/sbin/pct'", SudoRefused, "NOPASSWD"),
        (b"bash: line 1: sudo: command not found\n", SudoRefused, "root@pve1"),
        (b"bash: line 1: /usr/sbin/pct: No such file or directory\n", PctMissing, "ls -l"),
        (b"fish: Unknown command: /usr/sbin/pct\n", PctMissing, "ls -l"),
        (b"/usr/sbin/pct: Permission denied.\n", PctMissing, "ls -l"),
        (b'lxc-attach: 101: attach.c: No such file - Failed to exec "env"\n', ShellError, "sh -c"),
        (b"lxc-attach: 101: Failed to get init pid\n", ContainerError, "sh -c"),
        (b"something new\n", PctError, "sh -c"),
        (b"", PctError, "sh -c"),
    ],
)
def test_words_below_the_script_are_understood(
    stderr: bytes, kind: type[LaunchpadError], part: str
) -> None:
    error = judge(stderr)
    assert type(error) is kind
    assert part in error.advice
    assert "pve1" in error.what
    assert error.details == stderr.decode().strip()


@pytest.mark.parametrize("code", [2, 255])
def test_an_unknown_container_is_known_by_its_words_and_not_by_the_code(code: int) -> None:
    assert type(judge(NO_CONFIG, code, ctid=777)) is ContainerUnknown
    # The same words about another container are not about ours.
    assert type(judge(NO_CONFIG, code, ctid=101)) is PctError


def test_a_call_without_a_status_is_a_lost_line_and_never_a_success() -> None:
    assert judge(b"", None).layer is Layer.SSH
    assert type(judge(b"", None)) is LineLost
    assert type(judge(b"", 0)) is PctError


def test_silence_is_told_as_silence() -> None:
    error = judge(b"", None, silent=True)
    assert type(error) is ContainerSilent
    assert "frozen" in error.advice


def test_a_flood_is_told_as_a_flood() -> None:
    done = Completed(b"x" * 100, b"", None, oversized=True)
    error = explain(done, ctid=101, host="pve1", user="root", ssh="")
    assert type(error) is ShellError
    assert "floods" in error.advice


def test_on_the_node_itself_no_ssh_stands_in_the_advice() -> None:
    done = Completed(b"", b"container '101' not running!\n", 255)
    error = explain(done, ctid=101, host="this node", user="root", ssh="")
    assert error.advice == "pct start 101"


def test_braces_in_what_was_said_are_data() -> None:
    assert judge(b"{ctid} {0} {bad\n").details == "{ctid} {0} {bad"


def test_only_others_than_root_need_sudo() -> None:
    assert pct_words(101, sudo=False) == ("/usr/sbin/pct", "exec", "101", "--")
    assert pct_words(101, sudo=True)[:2] == ("sudo", "-n")
