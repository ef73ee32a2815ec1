"""`exec`: the streams of a command, its exit code, its signals, and its terminal."""

from __future__ import annotations

import hashlib
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, NO_PTY, Lab
from support.processes import peak_memory
from support.typing import at_terminal
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.client import Client

TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
BOTH = pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX])
LAUNCHPAD = [sys.executable, "-m", "launchpad"]

SHELLS = pytest.mark.parametrize(
    "user", ["root", "ops", "ops-zsh", "ops-fish", "ops-tcsh", "ops-dash"]
)


@pytest.fixture
def nap(lab: Lab) -> Iterator[str]:
    """A time to sleep that nobody else has; what sleeps so long in 101 ends with the test."""
    seconds = f"{secrets.randbelow(900_000) + 100_000}"
    yield seconds
    for pid in lab.processes(DEBIAN, "sleep", seconds):
        lab.sh(DEBIAN, 'kill -KILL "$1"', str(pid))


EVERY_BYTE = bytes(range(256)) * 20


@TRANSPORTS
@BOTH
def test_the_streams_stay_apart_byte_for_byte(launchpad: Client, transport: str, ctid: int) -> None:
    script = "cat; printf 'one\\nlast without a newline' >&2; exit 7"
    outcome = launchpad(
        "exec", "--transport", transport, f"pve1:{ctid}", "--", "sh", "-c", script, stdin=EVERY_BYTE
    )
    assert outcome.stdout == EVERY_BYTE
    assert outcome.stderr == b"one\nlast without a newline"
    assert outcome.code == 7


@SHELLS
def test_arguments_arrive_as_they_are_through_every_login_shell(
    launchpad: Client, user: str
) -> None:
    words = ["a b", "", "'", '"', "$HOME", "\\", "!x", "*", "--", "é", "a\nb", "-n"]
    raw = [*map(os.fsencode, words), b"\xff\xfe"]
    outcome = launchpad("exec", "-n", f"{user}@pve1:101", "--", "printf", "%s\\0", *raw)
    assert outcome.stdout == b"".join(word + b"\0" for word in raw)
    assert outcome.code == 0


@TRANSPORTS
def test_much_goes_both_ways_at_once(launchpad: Client, transport: str, tmp_path: Path) -> None:
    size = 30_000_000
    data = tmp_path / "data"
    data.write_bytes(os.urandom(1_000_000) * (size // 1_000_000))
    program = (
        "import sys,shutil\n"
        "while True:\n"
        "    data = sys.stdin.buffer.read1(65536)\n"
        "    if not data: break\n"
        "    sys.stderr.buffer.write(data); sys.stdout.buffer.write(data)\n"
    )
    out, err = tmp_path / "out", tmp_path / "err"
    with data.open("rb") as source, out.open("wb") as stdout, err.open("wb") as stderr:
        words = ["exec", "--transport", transport, "pve1:101", "--", "python3", "-c", program]
        process = subprocess.Popen(
            [*LAUNCHPAD, *words],
            env=launchpad.environment,
            cwd=launchpad.home,
            stdin=source,
            stdout=stdout,
            stderr=stderr,
        )
        # Not ru_maxrss: that begins with what we had when the process was forked.
        peak = 0
        while process.poll() is None:
            peak = max(peak, peak_memory(process.pid))
            time.sleep(0.01)
    assert process.returncode == 0, err.read_bytes()[-500:]
    wanted = hashlib.sha256(data.read_bytes()).hexdigest()
    assert hashlib.sha256(out.read_bytes()).hexdigest() == wanted
    assert hashlib.sha256(err.read_bytes()).hexdigest() == wanted
    # What goes through is not kept.
    assert 0 < peak < 80_000_000


def test_a_pause_holds_nothing_back(launchpad: Client) -> None:
    # A dialogue in which either side waits for the other's last byte, whatever byte that is.
    program = (
        "import sys\n"
        "while (data := sys.stdin.buffer.read(1)):\n"
        "    sys.stdout.buffer.write(data); sys.stdout.buffer.flush()\n"
    )
    process = launchpad.start(
        "exec", "pve1:101", "--", "python3", "-c", program, stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(256):
        process.stdin.write(bytes([number]))
        process.stdin.flush()
        assert process.stdout.read(1) == bytes([number])
    out, err = process.communicate(timeout=20)
    assert (out, err, process.returncode) == (b"", b"", 0)


@BOTH
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["true"], 0),
        (["sh", "-c", "exit 255"], 255),
        (["sh", "-c", "exit 137"], 137),
        (["sh", "-c", "kill -9 $$"], 137),
        (["sh", "-c", "kill -TERM $$"], 143),
        (["/no/such/program"], 127),
        (["nosuchprogram"], 127),
        (["/etc"], 126),
        (["/etc/passwd"], 126),
    ],
)
def test_the_exit_code_is_passed_on(
    launchpad: Client, ctid: int, words: list[str], code: int
) -> None:
    outcome = launchpad("exec", "-n", f"pve1:{ctid}", "--", *words)
    assert outcome.code == code, str(outcome)
    assert outcome.out == ""
    if words[0] in ("true", "sh"):
        assert outcome.err == ""
    else:
        assert words[0] in outcome.err


@pytest.mark.exclusive
@pytest.mark.parametrize("code", [0, 1, 255])
def test_the_front_end_s_exit_code_is_not_the_command_s(
    lab: Lab, launchpad: Client, code: int
) -> None:
    with lab.front_end(f'#!/bin/sh\n/usr/share/lab/pct "$@"\nexit {code}\n'):
        assert launchpad("exec", "-n", "pve1:101", "--", "sh", "-c", "exit 42").code == 42
        assert launchpad("exec", "-n", "pve1:101", "--", "nosuch").code == 127


@pytest.mark.exclusive
def test_what_a_host_prints_is_not_the_command_s(lab: Lab, launchpad: Client) -> None:
    noise = "echo Welcome 12345; echo oops >&2; printf '{\"pid\": 999}'\n"
    with lab.file_on("pve1", "/root/.bashrc", noise):
        outcome = launchpad("exec", "-n", "pve1:101", "--", "sh", "-c", "echo mine; echo own >&2")
    assert (outcome.stdout, outcome.stderr) == (b"mine\n", b"own\n")


@BOTH
def test_the_environment_is_the_container_s_own(launchpad: Client, ctid: int) -> None:
    outcome = launchpad(
        "exec", "-n", f"pve1:{ctid}", "--", "sh", "-c", "pwd; env", env={"FOO": "bar"}
    )
    directory, *lines = outcome.out.splitlines()
    environment = dict(line.partition("=")[::2] for line in lines)
    assert directory == "/root"
    for name in ("SHLVL", "_", "PWD", "OLDPWD"):
        environment.pop(name, None)
    assert environment == {
        "HOME": "/root",
        "USER": "root",
        "LOGNAME": "root",
        "SHELL": "/bin/bash" if ctid == DEBIAN else "/bin/sh",
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
    }


def test_stdin_is_left_alone_with_n(launchpad: Client) -> None:
    loop = "while read -r line; do launchpad exec -n pve1:101 -- sh -c 'cat; echo once'; done"
    program = f'launchpad() {{ {" ".join(LAUNCHPAD)} "$@"; }}; {loop}'
    done = subprocess.run(
        ["sh", "-c", program],
        input=b"1\n2\n3\n",
        env=launchpad.environment,
        cwd=launchpad.home,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"once\n" * 3


def test_it_ends_with_its_command_whoever_holds_the_streams(
    lab: Lab, launchpad: Client, nap: str
) -> None:
    outcome = launchpad(
        "exec", "-n", "pve1:101", "--", "sh", "-c", f"sleep {nap} & echo up; exit 3"
    )
    assert (outcome.out, outcome.code) == ("up\n", 3)
    assert outcome.seconds < 20
    assert lab.processes(DEBIAN, "sleep", nap)


def test_a_reader_that_goes_away_is_no_fault(launchpad: Client) -> None:
    words = " ".join([*LAUNCHPAD, "exec", "-n", "pve1:101", "--", "yes"])
    done = subprocess.run(
        ["bash", "-c", f"{words} | head -n 1; exit ${{PIPESTATUS[0]}}"],
        env=launchpad.environment,
        cwd=launchpad.home,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == (b"y\n", b"", 141)


@TRANSPORTS
@BOTH
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_command(
    launchpad: Client, transport: str, ctid: int, number: signal.Signals
) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 33' {name}; echo up; sleep 300 & wait"
    process = launchpad.start(
        "exec", "-n", "--transport", transport, f"pve1:{ctid}", "--", "sh", "-c", script
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (out, err, process.returncode) == (f"got {name}\n".encode(), b"", 33)


def test_ctrl_c_ends_a_command_as_a_terminal_would(lab: Lab, launchpad: Client, nap: str) -> None:
    script = f"echo up; sleep {nap} | cat"
    process = launchpad.start("exec", "-n", "pve1:101", "--", "sh", "-c", script)
    assert process.stdout is not None
    process.stdout.readline()
    assert lab.processes(DEBIAN, "sleep", nap)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert lab.processes(DEBIAN, "sleep", nap) == []


@pytest.mark.exclusive
@TRANSPORTS
def test_a_signal_gets_through_where_a_connection_has_one_session(
    lab: Lab, launchpad: Client, transport: str, tmp_path: Path
) -> None:
    with lab.other_sshd(tmp_path, "MaxSessions=1") as config:
        script = "trap 'exit 33' INT; echo up; sleep 300 & wait"
        process = launchpad.start(
            "exec", "-n", "-F", str(config), "--transport", transport,
            "pve1:101", "--", "sh", "-c", script,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert (out, err, process.returncode) == (b"", b"", 33)


def test_a_second_ctrl_c_gives_up(lab: Lab, launchpad: Client, nap: str) -> None:
    script = f"trap '' INT; echo up; exec sleep {nap}"
    process = launchpad.start("exec", "-n", "pve1:101", "--", "sh", "-c", script)
    assert process.stdout is not None
    process.stdout.readline()
    (pid,) = wait_until(lambda: lab.processes(DEBIAN, "sleep", nap))
    process.send_signal(signal.SIGINT)
    status = Path(f"/proc/{process.pid}/status")
    wait_until(lambda: "ShdPnd:\t0000000000000000" in status.read_text(), what="it has been taken")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert f"PID {pid} in pve1:101".encode() in err


def test_a_command_whose_caller_was_killed_is_hung_up(
    lab: Lab, launchpad: Client, nap: str
) -> None:
    # Over paramiko. An ssh program outlives the launchpad that was killed, and keeps the line.
    words = ["exec", "-n", "--transport", "paramiko", "pve1:101", "--"]
    process = launchpad.start(*words, "sh", "-c", f"echo up; exec sleep {nap}")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    assert lab.processes(DEBIAN, "sleep", nap)
    process.kill()
    wait_until(lambda: not lab.processes(DEBIAN, "sleep", nap), 30)


def test_a_command_may_be_silent_for_long(launchpad: Client) -> None:
    outcome = launchpad(
        "exec", "-n", "pve1:101", "--", "sh", "-c", "sleep 12; echo end >&2; exit 4"
    )
    assert (outcome.stdout, outcome.stderr, outcome.code) == (b"", b"end\n", 4)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("pve1:103", b"pct start 103"),
        ("pve1:777", b"there is no container 777"),
        ("guest@pve1:101", b"NOPASSWD"),
        ("pve1:200", b"virtual machine"),
    ],
)
@pytest.mark.parametrize("terminal", [False, True])
def test_what_fails_below_is_told(
    launchpad: Client, target: str, words: bytes, terminal: bool
) -> None:
    if terminal:
        screen = at_terminal(launchpad, "exec", "-t", target, "--", "true")
        try:
            code, shown = screen.end(), screen.seen
            assert screen.settings() == screen.modes
        finally:
            screen.close()
    else:
        outcome = launchpad("exec", "-n", target, "--", "true")
        code, shown = outcome.code, outcome.stderr
    assert code == 125
    assert words in shown


@TRANSPORTS
@BOTH
def test_a_terminal_has_our_size_and_follows_it(
    launchpad: Client, transport: str, ctid: int
) -> None:
    script = (
        "stty size; echo TERM=$TERM; tty;"
        " while read -r line; do case $line in quit) exit 5 ;; size) stty size ;; esac; done"
    )
    screen = at_terminal(
        launchpad, "exec", "-t", "--transport", transport, f"pve1:{ctid}", "--", "sh", "-c", script,
        size=(93, 31),
    )  # fmt: skip
    try:
        screen.expect(rb"31 93\r\n")
        screen.expect(rb"TERM=xterm")
        screen.expect(rb"/dev/")
        screen.resize(77, 22)

        def size() -> bytes:
            screen.type(b"size\r")
            return screen.expect(rb"(22 77|31 93)\r\n")[1]

        wait_until(lambda: size() == b"22 77")
        screen.type(b"quit\r")
        assert screen.end() == 5
        assert b"launchpad-" not in screen.seen
        assert screen.settings() == screen.modes
    finally:
        screen.close()


@TRANSPORTS
def test_keys_go_through_as_they_are_typed(launchpad: Client, transport: str) -> None:
    program = (
        "import os,sys,tty; tty.setraw(0); os.write(1, b'ready\\r\\n')\n"
        "while (key := os.read(0, 1)) != b'q': os.write(1, b'<%d>' % key[0])\n"
    )
    screen = at_terminal(
        launchpad,
        "exec",
        "-t",
        "--transport",
        transport,
        "pve1:101",
        "--",
        "python3",
        "-c",
        program,
    )
    try:
        screen.expect(rb"ready\r\n")
        # Ctrl-C, Ctrl-Z, Ctrl-D, Ctrl-\, a tilde after a newline, escape.
        screen.type(b"\x03\x1a\x04\x1c\r~.\x1b\xffq")
        screen.expect(rb"<3><26><4><28><13><126><46><27><255>")
        assert screen.end() == 0
        assert screen.settings() == screen.modes
    finally:
        screen.close()


@TRANSPORTS
def test_ctrl_c_on_a_terminal_is_for_the_command(launchpad: Client, transport: str) -> None:
    screen = at_terminal(
        launchpad, "exec", "-t", "--transport", transport, "pve1:101", "--",
        "sh", "-c", "echo up; sleep 300; echo no",
    )  # fmt: skip
    try:
        screen.expect(rb"up\r\n")
        screen.type(b"\x03")
        assert screen.end() == 130
        assert b"no\r\n" not in screen.seen
    finally:
        screen.close()


@BOTH
@SHELLS
def test_without_a_command_there_is_a_login_shell(launchpad: Client, ctid: int, user: str) -> None:
    screen = at_terminal(launchpad, "exec", f"{user}@pve1:{ctid}")
    try:
        screen.expect(rb"# ")
        screen.type(b"echo home is $HOME; tty; exit 9\r")
        screen.expect(rb"home is /root\r\n")
        screen.expect(rb"/dev/(pts|console|tty)")
        assert screen.end() == 9
        assert screen.settings() == screen.modes
    finally:
        screen.close()


def test_a_login_shell_reads_a_script_from_a_pipe(launchpad: Client) -> None:
    outcome = launchpad("exec", "pve1:101", stdin=b"shopt -q login_shell && pwd; exit 4\n")
    assert (outcome.out, outcome.code) == ("/root\n", 4)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_terminal_is_put_back_when_we_are_ended(
    lab: Lab, launchpad: Client, number: signal.Signals, nap: str
) -> None:
    script = f"printf '\\033[?1049h\\033[?25l\\033[?2004hfull screen'; exec sleep {nap}"
    screen = at_terminal(launchpad, "exec", "-t", "pve1:101", "--", "sh", "-c", script)
    try:
        screen.expect(rb"full screen")
        assert screen.settings() != screen.modes
        screen.process.send_signal(number)
        assert screen.end() == 128 + number
        assert screen.settings() == screen.modes
        for mode in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?2004l"):
            assert screen.seen.count(mode) == 1
        # The terminal there was hung up.
        wait_until(lambda: lab.processes(DEBIAN, "sleep", nap) == [])
    finally:
        screen.close()


@TRANSPORTS
def test_where_no_terminal_can_be_had_it_says_so(launchpad: Client, transport: str) -> None:
    screen = at_terminal(
        launchpad, "exec", "-t", "--transport", transport, f"pve1:{NO_PTY}", "--", "tty"
    )
    try:
        code = screen.end()
        assert code != 0
        assert screen.settings() == screen.modes
    finally:
        screen.close()


def test_an_unknown_type_of_terminal_becomes_a_known_one(launchpad: Client) -> None:
    screen = at_terminal(
        launchpad, "exec", "-t", "pve1:101", "--", "sh", "-c", "echo TERM=$TERM; tput cols",
        env={"TERM": "xterm-nobody-has-it"},
    )  # fmt: skip
    try:
        screen.expect(rb"TERM=xterm-256color\r\n100\r\n")
        assert screen.end() == 0
    finally:
        screen.close()


@pytest.mark.parametrize(
    "words",
    [
        ["-t", "pve1:101", "--", "true"],  # stdin is no terminal
        ["-n", "pve1:101"],
        ["-n", "-t", "pve1:101", "--", "true"],
        ["pve1:101", "--"],
        ["pve1:101", "true"],
        ["pve1:101", "--", "cd", "/tmp"],
    ],
)
def test_wrong_usage(launchpad: Client, words: list[str]) -> None:
    outcome = launchpad("exec", *words)
    assert outcome.code == 125
    assert "help:" in outcome.err
    assert outcome.out == ""


def test_a_container_that_stops_is_not_an_exit_code(
    lab: Lab, make_client: Callable[..., Client], nap: str
) -> None:
    client = make_client()
    process = client.start("exec", "-n", "pve1:101", "--", "sh", "-c", f"echo up; exec sleep {nap}")
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    (pid,) = wait_until(lambda: lab.processes(DEBIAN, "sleep", nap))
    stat = lab.sh(DEBIAN, 'cat "/proc/$1/stat"', str(pid))
    # The shell above the command, which would tell its code.
    parent = stat.rpartition(") ")[2].split()[1]
    lab.sh(DEBIAN, 'kill -KILL "$1"; kill "$2"', parent, str(pid))
    _, err = process.communicate(timeout=30)
    assert process.returncode == 125
    assert b"broke off" in err
