"""Jobs with a terminal: lent by a tmux server of their own, on which nothing else depends."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, NO_PTY, Lab
from support.typing import Screen, at_terminal
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from support.client import Client

TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])

ECHO = "echo up; while read -r line; do echo got $line; [ $line != end ] || exit 7; done; sleep 300"
DETACH = b"\x02d"


def directory(job: str) -> str:
    return f"/var/lib/launchpad/jobs/{job}"


@pytest.fixture
def attach(make_client: Callable[..., Client]) -> Iterator[Callable[..., Screen]]:
    """Attach a client's terminal; what is left of it ends with the test."""
    screens: list[Screen] = []

    def start(client: Client, *words: str, **settings: dict[str, str]) -> Screen:
        screens.append(at_terminal(client, "attach", *words, **settings))  # type: ignore[arg-type]
        return screens[-1]

    yield start
    for screen in screens:
        screen.close()


@TRANSPORTS
def test_what_is_typed_reaches_the_job_and_its_output_both_log_and_screen(
    launchpad: Client, attach: Callable[..., Screen], transport: str
) -> None:
    job = launchpad.start_job("--tmux", "pve1:101", "--", "sh", "-c", ECHO)
    assert launchpad.status(job)["launcher"] == "tmux"
    screen = attach(launchpad, "--transport", transport, job)
    screen.expect(rb"up")
    screen.type(b"hello\r")
    screen.expect(rb"got hello")
    screen.type(DETACH)
    assert screen.end() == 0
    assert f"{job} runs on".encode() in screen.seen
    assert screen.settings() == screen.modes
    assert launchpad.status(job)["state"] == "running"
    assert launchpad.log(job) == b"up\ngot hello\n"
    # Again, to its end.
    screen = attach(launchpad, "--transport", transport, job)
    screen.expect(rb"got hello")
    screen.type(b"end\r")
    assert screen.end() == 0
    assert f"{job} exited with code 7".encode() in screen.seen
    assert screen.settings() == screen.modes
    launchpad.expect_end(job, code=7)


def test_ctrl_c_in_the_pane_is_for_the_job(
    launchpad: Client, attach: Callable[..., Screen]
) -> None:
    script = "trap 'echo interrupted; exit 3' INT; echo up; while :; do sleep 0.2; done"
    job = launchpad.start_job("--tmux", "pve1:101", "--", "sh", "-c", script)
    screen = attach(launchpad, job)
    screen.expect(rb"up")
    screen.type(b"\x03")
    assert screen.end() == 0
    launchpad.expect_end(job, code=3)
    assert launchpad.log(job) == b"up\ninterrupted\n"


def test_the_terminal_follows_our_size(
    lab: Lab, launchpad: Client, attach: Callable[..., Screen]
) -> None:
    job = launchpad.start_job("--tmux", "pve1:101", "--", "sh", "-c", ECHO)
    screen = attach(launchpad, job)
    screen.expect(rb"up")

    def size() -> str:
        what = 'tmux -S "$1/tmux" list-clients -F "#{client_width}x#{client_height}"'
        return lab.sh(DEBIAN, what, directory(job), check=False).strip()

    wait_until(lambda: size() == "100x30")
    screen.resize(77, 22)
    wait_until(lambda: size() == "77x22")
    screen.type(DETACH)
    assert screen.end() == 0


@pytest.mark.parametrize("terminal", ["xterm-kitty", ""])
def test_any_type_of_terminal_will_do(
    launchpad: Client, attach: Callable[..., Screen], terminal: str
) -> None:
    environment = {"TERM": terminal}
    job = launchpad.start_job("--tmux", "pve1:101", "--", "sh", "-c", ECHO, env=environment)
    screen = attach(launchpad, job, env=environment)
    screen.expect(rb"up")
    screen.type(DETACH)
    assert screen.end() == 0


@pytest.mark.parametrize(
    ("ctid", "reason"), [(BUSYBOX, "no tmux in the container"), (NO_PTY, "create window failed")]
)
def test_where_no_terminal_can_be_had_the_job_runs_without(
    lab: Lab, launchpad: Client, attach: Callable[..., Screen], ctid: int, reason: str
) -> None:
    outcome = launchpad.succeed("run", "--tmux", f"pve1:{ctid}", "--", "sleep", "54321")
    job = outcome.out.strip()
    assert f"setsid ({'tmux: ' if ctid == NO_PTY else ''}{reason}" in outcome.err
    # Once, not twice.
    status = launchpad.status(job)
    assert lab.processes(ctid, "sleep", "54321") == [status["pid"]]
    assert (status["state"], status["launcher"], status["processes"]) == ("running", "setsid", 1)
    assert reason in status["launcher_reason"]
    assert lab.sh(ctid, 'ls "$1"', directory(job)).split().count("tmux") == 0
    screen = attach(launchpad, job)
    assert screen.end() == 125
    assert b"has no terminal" in screen.seen
    assert reason.encode() in screen.seen
    assert f"launchpad tail -f {job}".encode() in screen.seen


@pytest.mark.parametrize("script", ["echo boom; exit 3", "exit 3"])
def test_a_job_that_crashes_at_once_is_a_crash_and_no_fallback(
    launchpad: Client, script: str
) -> None:
    outcome = launchpad("run", "--tmux", "pve1:101", "--", "sh", "-c", script)
    assert outcome.code == 3
    assert "   tmux   " in outcome.err
    assert "setsid" not in outcome.err
    job = outcome.out.strip()
    status = launchpad.status(job)
    assert (status["state"], status["exit_code"], status["launcher"]) == ("exited", 3, "tmux")
    assert launchpad.log(job) == (b"boom\n" if "boom" in script else b"")


@pytest.mark.parametrize("words", [["/no/such/program"], ["nosuch"]])
def test_a_program_that_is_not_there_leaves_no_server(
    lab: Lab, launchpad: Client, words: list[str]
) -> None:
    outcome = launchpad("run", "--tmux", "-n", "missing", "pve1:101", "--", *words)
    assert outcome.code == 127
    assert outcome.out == ""
    wait_until(lambda: "/missing-" not in lab.sh(DEBIAN, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))


def test_nothing_of_an_older_server_leaks_in(lab: Lab, launchpad: Client) -> None:
    old = "LAUNCHPAD_JOB_ID=old-aaaaaa FOO=old tmux new-session -d -s job 'sleep 55555'"
    lab.sh(DEBIAN, old)
    try:
        first = launchpad.start_job("--tmux", "-e", "FOO=1", "pve1:101", "--", "sleep", "300")
        second = launchpad.start_job("--tmux", "-e", "FOO=2", "pve1:101", "--", "env")
        third = launchpad.start_job("--tmux", "pve1:101", "--", "env")
        launchpad.expect_end(second, code=0)
        launchpad.expect_end(third, code=0)
        environment = dict(
            line.partition("=")[::2] for line in launchpad.log(second).decode().splitlines()
        )
        assert environment["FOO"] == "2"
        assert environment["LAUNCHPAD_JOB_ID"] == second
        assert not {"TMUX", "TMUX_PANE"} & set(environment)
        assert b"FOO=" not in launchpad.log(third)
        # Neither the older server nor our own are members of the job.
        status = launchpad.status(first)
        assert (status["state"], status["processes"]) == ("running", 1)
        assert status["launcher"] == "tmux"
        launchpad.succeed("kill", first)
        assert lab.processes(DEBIAN, "sleep", "55555")
        servers = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"
        wait_until(lambda: directory(first) not in lab.sh(DEBIAN, servers), 20)
    finally:
        lab.sh(DEBIAN, "tmux kill-server")


def test_status_and_kill_never_need_the_socket(
    lab: Lab, launchpad: Client, attach: Callable[..., Screen]
) -> None:
    job = launchpad.start_job("--tmux", "pve1:101", "--", "sh", "-c", "echo up; sleep 300; :")
    lab.sh(DEBIAN, 'rm "$1/tmux"', directory(job))
    status = launchpad.status(job)
    assert (status["state"], status["processes"]) == ("running", 2)
    screen = attach(launchpad, job)
    assert screen.end() == 125
    assert b"no terminal any more" in screen.seen
    assert launchpad.log(job) == b"up\n"
    launchpad.succeed("kill", job)
    assert not lab.alive(DEBIAN, status["pid"])
    launchpad.expect_end(job, code=143)
    everything = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"
    wait_until(lambda: directory(job) not in lab.sh(DEBIAN, everything), 20)


def test_a_job_outlives_its_tmux(lab: Lab, launchpad: Client) -> None:
    script = "echo up; i=0; while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done"
    job = launchpad.start_job("--tmux", "pve1:101", "--", "sh", "-c", script)
    lab.sh(DEBIAN, 'tmux -S "$1/tmux" kill-server', directory(job))
    status = launchpad.status(job)
    assert status["state"] == "running"
    launchpad.succeed("kill", job)
    status = launchpad.status(job)
    assert (status["state"], status["signal"], status["reason"]) == (
        "killed",
        "SIGTERM",
        "launchpad",
    )


def test_attach_explains_why_there_is_nothing_to_see(
    launchpad: Client, attach: Callable[..., Screen]
) -> None:
    without = launchpad.start_job("pve1:101", "--", "sleep", "300")
    ended = launchpad.start_job("--tmux", "pve1:101", "--", "sh", "-c", "exit 4", code=4)
    launchpad.expect_end(ended, code=4)
    screen = attach(launchpad, without)
    assert screen.end() == 125
    assert b"started with setsid" in screen.seen
    assert b"launchpad run --tmux" in screen.seen
    screen = attach(launchpad, ended)
    assert screen.end() == 125
    assert b"exited with code 4" in screen.seen
    screen = attach(launchpad, without, env={"TERM": "dumb"})
    assert screen.end() == 2
    # Not on a terminal.
    outcome = launchpad("attach", without)
    assert outcome.code == 2
    assert f"launchpad tail -f {without}" in outcome.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_ended_while_attached_leaves_job_and_terminal_in_order(
    launchpad: Client, attach: Callable[..., Screen], number: signal.Signals
) -> None:
    job = launchpad.start_job("--tmux", "pve1:101", "--", "sh", "-c", ECHO)
    screen = attach(launchpad, job)
    screen.expect(rb"up")
    # tmux paints on the terminal's second screen.
    screen.process.send_signal(number)
    assert screen.end() == 128 + number
    assert screen.seen.count(b"\x1b[?1049h") == screen.seen.count(b"\x1b[?1049l") == 1
    assert screen.settings() == screen.modes
    assert launchpad.status(job)["state"] == "running"
    screen = attach(launchpad, job)
    screen.expect(rb"up")
    screen.type(DETACH)
    assert screen.end() == 0


def test_two_can_look_at_one_job(
    launchpad: Client, make_client: Callable[..., Client], attach: Callable[..., Screen]
) -> None:
    job = launchpad.start_job("--tmux", "-n", "shared", "pve1:101", "--", "sh", "-c", ECHO)
    other = make_client("other")
    first = attach(launchpad, job)
    first.expect(rb"up")
    # Known by its place; the other one's index has never heard of it.
    second = attach(other, "pve1:101/shared")
    second.expect(rb"up")
    first.type(b"both\r")
    first.expect(rb"got both")
    second.expect(rb"got both")
    for screen in (first, second):
        screen.type(DETACH)
        assert screen.end() == 0


def test_the_job_of_another_user_can_read_its_terminal(
    launchpad: Client, attach: Callable[..., Screen]
) -> None:
    script = "id -un; read -r line; echo got $line"
    job = launchpad.start_job("--tmux", "-u", "worker", "pve1:101", "--", "sh", "-c", script)
    screen = attach(launchpad, job)
    screen.expect(rb"worker")
    screen.type(b"hello\r")
    screen.expect(rb"got hello")
    assert screen.end() == 0
    launchpad.expect_end(job, code=0)


def test_a_terminal_on_another_node(launchpad: Client, attach: Callable[..., Screen]) -> None:
    job = launchpad.start_job("--tmux", "pve1:worker", "--", "sh", "-c", ECHO)
    screen = attach(launchpad, job)
    screen.expect(rb"up")
    screen.type(b"end\r")
    assert screen.end() == 0
    launchpad.expect_end(job, code=7)
