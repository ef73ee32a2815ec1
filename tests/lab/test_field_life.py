"""What becomes of a job is told exactly, on Debian, on busybox, and where PID 1 never reaps."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, NO_PTY, ON_PVE2, SLEEPER, Lab
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.client import Client

TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
BOTH = pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX])
ALL = pytest.mark.parametrize(
    "target", ["pve1:101", "pve1:102", "pve1:104", "pve1:106", "pve2:105", "ops@pve1:102"]
)


def ended(lab: Lab, launchpad: Client, ctid: int, *command: str) -> str:
    """A job that has ended while nobody was connected; its id."""
    job = launchpad.start_job(f"pve1:{ctid}", "--", *command, code=-1)
    script = 'ls "/var/lib/launchpad/jobs/$1"'
    wait_until(lambda: "end,1," in lab.sh(ctid, script, job), 20, "the end record")
    return job


@ALL
def test_the_whole_life_of_a_job(lab: Lab, launchpad: Client, target: str) -> None:
    # The words of the command are those that a search by command line would find.
    script = "echo hi; echo launchpad grep pct; exec sleep 300"
    ctid = int(target.rpartition(":")[2])
    document = launchpad.succeed(
        "run", "--json", "-n", "life", target, "--", "sh", "-c", script
    ).json()
    job = document["id"]
    assert document["first_lines"] == ["hi", "launchpad grep pct"]
    assert (document["state"], document["name"], document["ctid"]) == ("running", "life", ctid)
    assert launchpad.log(job) == b"hi\nlaunchpad grep pct\n"
    assert launchpad.succeed("tail", "-n", "1").out == "launchpad grep pct\n"
    status = launchpad.status(job)
    assert (status["state"], status["pid"], status["processes"]) == ("running", document["pid"], 1)
    assert status["last_line"] == "launchpad grep pct"
    killed = launchpad.succeed("kill", job)
    assert job in killed.err
    assert not lab.alive(ctid, document["pid"])
    status = launchpad.status(job)
    assert (status["state"], status["signal"], status["reason"]) == (
        "killed",
        "SIGTERM",
        "launchpad",
    )
    again = launchpad.succeed("kill", job)
    assert "already" in again.err
    launchpad.expect_end(job, code=128 + 15)


def test_the_json_of_a_start_and_the_life_after_it(lab: Lab, launchpad: Client) -> None:
    outcome = launchpad("run", "--json", "pve1:101", "--", "sh", "-c", "echo hello; sleep 300")
    assert outcome.code == 0
    assert outcome.seconds < 5
    document = outcome.json()
    assert document["state"] == "running"
    assert document["first_lines"] == ["hello"]
    assert (document["created"], document["started"], document["schema"]) == (True, "yes", 1)
    assert lab.session_of(DEBIAN, document["pid"]) == document["pid"]
    assert lab.alive(DEBIAN, document["pid"])  # and the client is gone
    launchpad.succeed("kill", document["id"])
    status = launchpad.status(document["id"])
    assert (status["state"], status["reason"]) == ("killed", "launchpad")
    assert not lab.alive(DEBIAN, document["pid"])


SELF_INFLICTED = [
    ("exit 0", "exited", 0, None),
    ("exit 7", "exited", 7, None),
    ("exit 255", "exited", 255, None),
    ("exit 137", "exited", 137, None),
    ("exit 143", "exited", 143, None),
    ("kill -KILL $$", "killed", None, "SIGKILL"),
    ("kill -SEGV $$", "killed", None, "SIGSEGV"),
    ("kill -TERM $$", "killed", None, "SIGTERM"),
]


@pytest.mark.parametrize(("script", "state", "code", "signal"), SELF_INFLICTED)
@pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX, SLEEPER])
def test_the_end_of_a_job_that_nobody_watched_is_kept(
    lab: Lab,
    launchpad: Client,
    ctid: int,
    script: str,
    state: str,
    code: int | None,
    signal: str | None,
) -> None:
    job = ended(lab, launchpad, ctid, "sh", "-c", f"echo last words; {script}")
    status = launchpad.status(job)
    assert (status["state"], status["exit_code"], status["signal"]) == (state, code, signal)
    assert status["reason"] in (None, "other")
    assert status["last_line"] == "last words"
    assert status["ended_at"] is not None
    numbers = {"SIGKILL": 9, "SIGSEGV": 11, "SIGTERM": 15}
    launchpad.expect_end(job, code=code if code is not None else 128 + numbers[signal or ""])


@pytest.mark.parametrize("signal", ["KILL", "TERM", "SEGV"])
@pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX, SLEEPER])
def test_a_signal_from_outside_is_told_as_such(
    lab: Lab, launchpad: Client, ctid: int, signal: str
) -> None:
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sleep", "300")
    lab.sh(ctid, 'kill "-$1" "$2"', signal, str(launchpad.status(job)["pid"]))
    assert launchpad("wait", job).code > 128
    status = launchpad.status(job)
    assert (status["state"], status["signal"]) == ("killed", f"SIG{signal}")
    assert status["reason"] != "launchpad"


@BOTH
def test_of_two_equal_commands_only_the_one_asked_for_is_killed(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    first, second = (launchpad.start_job(f"pve1:{ctid}", "--", "sleep", "777") for _ in range(2))
    # Its command line holds the id of another job.
    named = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", "sleep 778; :", first)
    launchpad.succeed("kill", first)
    assert launchpad.status(first)["state"] == "killed"
    for job in (second, named):
        status = launchpad.status(job)
        assert status["state"] == "running"
        assert lab.alive(ctid, status["pid"])
    assert launchpad.status(first)["processes"] in (0, None)


@BOTH
def test_kill_ends_every_process_of_a_job(lab: Lab, launchpad: Client, ctid: int) -> None:
    workers = "for i in 1 2 3 4 5 6 7 8; do sleep 4848 & done; setsid sleep 4849 & wait"
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", workers)
    wait_until(lambda: len(lab.processes(ctid, "sleep", "4848")) == 8, what="all workers run")
    wait_until(lambda: lab.processes(ctid, "sleep", "4849"), what="the one that went away runs")
    assert launchpad.status(job)["processes"] == 10
    launchpad.succeed("kill", job)
    assert lab.processes(ctid, "sleep", "4848") == []
    assert lab.processes(ctid, "sleep", "4849") == []


def test_the_output_of_python_is_seen_at_once(launchpad: Client) -> None:
    program = ["python3", "-c", "import time; print(1); time.sleep(300)"]
    outcome = launchpad.succeed("run", "--json", "pve1:101", "--", *program)
    assert outcome.seconds < 5
    assert outcome.json()["first_lines"] == ["1"]


def test_a_silent_job_is_running_and_not_failed(launchpad: Client) -> None:
    buffered = ["-e", "PYTHONUNBUFFERED=", "pve1:101", "--", "python3", "-c"]
    program = "import time; print(1); time.sleep(300)"
    for words in ([*buffered, program], ["pve1:101", "--", "sleep", "300"]):
        outcome = launchpad.succeed("run", *words)
        assert "no output yet" in outcome.err
        assert launchpad.status(outcome.out.strip())["state"] == "running"


@BOTH
@TRANSPORTS
def test_a_long_log_comes_back_exactly(launchpad: Client, ctid: int, transport: str) -> None:
    # 50 MB: far more than any window or pipe holds.
    line = "x" * 99
    script = f'yes {line} | head -n "$1"'
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", script, "sh", "500000")
    launchpad.expect_end(job, code=0)
    for count, expected in (("1000000", 500_000), ("all", 500_000), ("1000", 1000)):
        words = ["tail", "--transport", transport, "-n", count, job]
        data = launchpad.succeed(*words, timeout=120).stdout
        assert len(data) == 100 * expected
        assert data == (line.encode() + b"\n") * expected


@pytest.mark.exclusive
def test_starts_at_the_same_moment_get_ids_and_logs_of_their_own(
    make_client: Callable[..., Client],
) -> None:
    clients = [make_client("one"), make_client("two")]

    def start(number: int) -> tuple[Client, str]:
        client = clients[number % 2]
        return client, client.start_job("pve1:101", "--", "sh", "-c", "echo $$")

    # Not more at once: an sshd refuses some of more than ten that are logging in (MaxStartups).
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(start, range(20)))
    assert len({job for _client, job in jobs}) == 20
    logs = [client.log(job) for client, job in jobs]
    assert all(log.count(b"\n") == 1 for log in logs)
    assert len(set(logs)) == 20


@pytest.mark.exclusive
@TRANSPORTS
@pytest.mark.parametrize("target", ["pve1:101", "ops@pve1:102"])
def test_one_verb_is_one_connection_one_channel_and_one_pct_exec(
    lab: Lab, launchpad: Client, transport: str, target: str
) -> None:
    to = ("--transport", transport)
    seen = lab.watch()
    job = launchpad.start_job(*to, target, "--", "sh", "-c", "echo hi; exec sleep 300")
    verbs: list[tuple[str, ...]] = [
        ("tail", *to, "-n", "1", job),
        ("status", *to, "--json", job),
        ("kill", *to, job),
    ]
    calls = [seen]
    for verb in verbs:
        calls.append(lab.watch())
        launchpad.succeed(*verb)
    # Each watch sees what came after it: one verb less each time.
    for number, watch in enumerate(calls):
        left = len(calls) - number
        assert len(watch.connections) == left
        assert len(watch.sessions) == left
        assert [call["argv"][:2] for call in watch.pct_calls] == [
            ["exec", target.rpartition(":")[2]]
        ] * left


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (["--help"], {"paramiko", "rich"}),
        (["run", "--help"], {"paramiko", "rich"}),
        (["--version"], {"paramiko", "rich"}),
        (
            ["run", "--json", "--transport", "openssh", "pve1:102", "--", "true"],
            {"paramiko", "rich"},
        ),
        (["run", "--transport", "openssh", "pve1:102", "--", "true"], {"paramiko"}),
        (["run", "local", "--", "true"], {"paramiko"}),
        (["status", "--json"], {"rich", "paramiko"}),
    ],
)
def test_what_a_call_does_not_need_is_not_imported(
    launchpad: Client, words: list[str], absent: set[str]
) -> None:
    outcome = launchpad.succeed(*words, env={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in outcome.err.splitlines()
        if line.startswith("import time:")
    }
    assert "launchpad" in imported
    assert imported & absent == set()


def test_a_client_with_no_terminal_asks_nothing(lab: Lab, launchpad: Client) -> None:
    """An unknown host key, and nobody to ask: refused, with the command that would help."""
    known = lab.settings.ssh / "known_hosts"
    config = launchpad.home / "ssh_config"
    empty = launchpad.home / "empty_known_hosts"
    empty.touch()
    text = lab.ssh_config.read_text().replace(str(known), str(empty))
    config.write_text(text)
    for transport in ("paramiko", "openssh"):
        words = ["run", "-F", str(config), "--transport", transport, "pve1:101", "--", "true"]
        outcome = launchpad(*words, timeout=30)
        assert outcome.code == 125
        assert outcome.out == ""
        assert "ssh-keyscan" in outcome.err or "known_hosts" in outcome.err
        assert empty.read_bytes() == b""


@pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX, NO_PTY, SLEEPER, ON_PVE2])
def test_nothing_of_a_job_lies_where_it_is_cleaned_away(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    job = launchpad.start_job(f"{lab.node_of(ctid)}:{ctid}", "--", "sleep", "300")
    for directory in ("/tmp", "/var/tmp", "/run", "/dev/shm"):
        assert job not in lab.sh(ctid, 'find "$1" 2>/dev/null', directory, check=False)
    assert launchpad.status(job)["log"] == f"/var/lib/launchpad/jobs/{job}/log"


def test_help_needs_no_home_and_no_configuration(launchpad: Client) -> None:
    outcome = launchpad("--help", env={"HOME": None, "XDG_STATE_HOME": None, "PATH": "/nowhere"})
    assert outcome.code == 0
    assert "launchpad" in outcome.out
