"""What a start must survive: descriptors, front ends, environments and directories of the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, NO_PTY, SLEEPER, Lab
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.client import Client

TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
BOTH = pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX])


@TRANSPORTS
@pytest.mark.parametrize(
    ("ctid", "command"),
    [
        (DEBIAN, ["bash", "-c", "exec 3>&1 4>&2; sleep 60"]),
        (DEBIAN, ["bash", "-c", "exec 13>&1 14>&2; sleep 60"]),
        (DEBIAN, ["sh", "-c", "sleep 60 & echo up"]),
        (BUSYBOX, ["sh", "-c", "exec 3>&1 4>&2; sleep 60"]),
        (BUSYBOX, ["sh", "-c", "(sleep 60 &) ; sleep 60"]),
    ],
)
def test_run_returns_whatever_the_job_does_with_its_descriptors(
    launchpad: Client, transport: str, ctid: int, command: list[str]
) -> None:
    outcome = launchpad.succeed("run", "--transport", transport, f"pve1:{ctid}", "--", *command)
    assert outcome.seconds < 10
    job = outcome.out.strip()
    assert launchpad.status(job)["processes"] >= 1


@TRANSPORTS
@pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX, NO_PTY, SLEEPER])
def test_a_job_holds_nothing_but_dev_null_and_its_log(
    lab: Lab, launchpad: Client, transport: str, ctid: int
) -> None:
    job = launchpad.start_job("--transport", transport, f"pve1:{ctid}", "--", "sleep", "300")
    status = launchpad.status(job)
    links = lab.sh(ctid, 'cd "/proc/$1/fd"; for f in *; do readlink "$f"; done', str(status["pid"]))
    assert links.split() == ["/dev/null", status["log"], status["log"]]


def test_no_process_of_launchpad_stays_on_the_client(launchpad: Client) -> None:
    for transport in ("paramiko", "openssh"):
        process = launchpad.start("run", "--transport", transport, "pve1:101", "--", "sleep", "300")
        assert process.wait(10) == 0
        assert launchpad.processes_of(process) == []


def test_a_job_lives_on_when_its_client_is_killed(lab: Lab, launchpad: Client) -> None:
    process = launchpad.start("run", "--confirm", "30s", "pve1:101", "--", "sleep", "4141")
    (pid,) = wait_until(lambda: lab.processes(DEBIAN, "sleep", "4141"), 20)
    process.kill()
    process.wait(10)
    wait_until(lambda: not launchpad.processes_of(process), what="the client is gone")
    ((job, _target),) = launchpad.known_jobs()
    status = launchpad.status(job)
    assert (status["state"], status["pid"]) == ("running", pid)


@pytest.mark.exclusive
@pytest.mark.parametrize("code", [0, 1, 255])
def test_the_front_end_s_exit_code_decides_nothing(lab: Lab, launchpad: Client, code: int) -> None:
    with lab.front_end(f'#!/bin/sh\n/usr/share/lab/pct "$@"\nexit {code}\n'):
        missing = launchpad("run", "pve1:101", "--", "/no/such/prog")
        assert missing.code == 127
        assert "/no/such/prog" in missing.err
        assert "not found" in missing.err
        assert missing.out == ""
        killed = launchpad.start_job("pve1:101", "--", "bash", "-c", "kill -9 $$", code=137)
        launchpad.expect_end(killed, code=137)
        status = launchpad.status(killed)
        assert (status["state"], status["signal"]) == ("killed", "SIGKILL")
        good = launchpad.start_job("pve1:101", "--", "true")
        launchpad.expect_end(good, code=0)


@pytest.mark.exclusive
def test_a_job_has_the_container_s_path_and_nothing_of_the_host_s_environment(
    lab: Lab, launchpad: Client
) -> None:
    profile = "export PATH=/opt/hostonly/bin:/usr/bin HOSTONLY=yes\n"
    tool = "#!/bin/sh\necho tool\n"
    with (
        lab.file_on("pve1", "/root/.bashrc", profile),
        lab.file_in(DEBIAN, "/usr/local/bin/lptool", tool, "755"),
    ):
        job = launchpad.start_job("pve1:101", "--", "lptool")
        launchpad.expect_end(job, code=0)
        assert launchpad.log(job) == b"tool\n"
        job = launchpad.start_job("pve1:101", "--", "env")
        launchpad.expect_end(job, code=0)
    lines = launchpad.log(job).decode().splitlines()
    environment = dict(line.partition("=")[::2] for line in lines)
    path = environment["PATH"].split(":")
    assert "/usr/local/bin" in path
    assert "/opt/hostonly/bin" not in path
    for name in ("HOSTONLY", "SSH_CLIENT", "SSH_CONNECTION", "MAIL", "BASH_ENV", "OLDPWD"):
        assert name not in environment


# Newer releases of pct can clear the environment, and a later one will do so by itself.
CLEARING = """#!/bin/sh
[ "$1" = exec ] || exec /usr/share/lab/pct "$@"
id=$2
shift 2
exec /usr/share/lab/pct exec "$id" --keep-env 0 "$@"
"""


@pytest.mark.exclusive
@pytest.mark.parametrize("user", ["root", "ops"])
@pytest.mark.parametrize("clears", [False, True])
@BOTH
def test_home_and_user_are_the_container_s_whatever_pct_does_with_the_environment(
    lab: Lab, launchpad: Client, ctid: int, clears: bool, user: str
) -> None:
    command = "set -u; echo $HOME $USER $LOGNAME; echo $SHELL; cd ~ && pwd; echo $LANG"
    front_end = CLEARING if clears else '#!/bin/sh\nexec /usr/share/lab/pct "$@"\n'
    with lab.front_end(front_end):
        job = launchpad.start_job(f"{user}@pve1:{ctid}", "--", "sh", "-c", command)
        launchpad.expect_end(job, code=0)
    entry = lab.sh(ctid, "head -n 1 /etc/passwd").strip().split(":")
    assert launchpad.log(job).decode().splitlines() == [
        f"{entry[5]} root root",
        entry[6],
        "/root",
        "C.UTF-8",
    ]


@pytest.mark.exclusive
@BOTH
def test_a_foreign_locale_reaches_neither_the_reply_nor_the_log(
    lab: Lab, make_client: Callable[..., Client], ctid: int
) -> None:
    german = make_client("german", LC_ALL="de_DE.UTF-8", LANG="de_DE.UTF-8")
    exports = "export LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8\n"
    with (
        lab.file_on("pve1", "/root/.bashrc", exports),
        lab.file_in(ctid, "/etc/profile.d/locale.sh", exports),
    ):
        outcome = german.succeed("run", "--json", f"pve1:{ctid}", "--", "printf", "%s\\n", "ok")
    document = outcome.json()
    assert document["pid"] > 1
    assert document["first_lines"] == ["ok"]
    assert german.log(document["id"]) == b"ok\n"


@BOTH
def test_a_job_begins_in_the_home_of_the_container_s_user(launchpad: Client, ctid: int) -> None:
    # The home of ops exists on the host only; attaching would keep it, or fall to /.
    for user in ("root", "ops"):
        job = launchpad.start_job(f"{user}@pve1:{ctid}", "--", "sh", "-c", "pwd; cd ..; pwd -P")
        launchpad.expect_end(job, code=0)
        assert launchpad.log(job) == b"/root\n/\n"


@pytest.mark.exclusive
def test_a_deleted_directory_on_the_host_gives_no_warning(lab: Lab, launchpad: Client) -> None:
    profile = "mkdir -p /tmp/gone; cd /tmp/gone; rmdir /tmp/gone\n"
    with lab.file_on("pve1", "/root/.bashrc", profile):
        command = ["python3", "-c", "import os; print(os.getcwd())"]
        outcome = launchpad.succeed("run", "pve1:101", "--", *command)
    assert "getcwd" not in outcome.err
    launchpad.expect_end(outcome.out.strip(), code=0)
    assert launchpad.log(outcome.out.strip()) == b"/root\n"


@BOTH
@pytest.mark.parametrize("cwd", ["/no/such/directory", "~/no-such-directory", "/etc/passwd"])
def test_a_missing_directory_is_told_before_anything_starts(
    lab: Lab, launchpad: Client, ctid: int, cwd: str
) -> None:
    name = f"nowhere{len(cwd)}"  # others of these tests may be at work in the same container
    outcome = launchpad("run", "-C", cwd, "-n", name, f"pve1:{ctid}", "--", "true")
    assert outcome.code == 125
    assert outcome.out == ""
    assert cwd.replace("~", "/root") in outcome.err
    assert f"{name}-" not in lab.sh(ctid, "ls /var/lib/launchpad/jobs")
    assert launchpad.known_jobs() == []


@BOTH
def test_the_directory_asked_for_is_the_one_that_the_job_has(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    lab.sh(ctid, "mkdir -p '/root/a b' /srv/x")
    for cwd, expected in (("/srv/x", "/srv/x"), ("~/a b", "/root/a b"), ("~", "/root")):
        job = launchpad.start_job("-C", cwd, f"pve1:{ctid}", "--", "pwd")
        launchpad.expect_end(job, code=0)
        assert launchpad.log(job).decode() == f"{expected}\n"


def test_standard_input_is_never_read(launchpad: Client) -> None:
    typed = b"pve1:101\npve1:102\npve1:101\n"
    for transport in ("paramiko", "openssh"):
        script = 'while read -r x; do "$@" "$x" -- true; done'
        words = ["sh", "-c", script, "sh"]
        outcome = launchpad.run("run", "--transport", transport, stdin=typed, prefix=words)
        assert outcome.code == 0, str(outcome)
        assert len(set(outcome.out.split())) == 3, str(outcome)


def test_a_job_s_standard_input_is_empty(launchpad: Client) -> None:
    outcome = launchpad.succeed("run", "pve1:101", "--", "cat", stdin=b"of the client\n")
    job = outcome.out.strip()
    launchpad.expect_end(job, code=0)
    assert launchpad.log(job) == b""


@BOTH
@pytest.mark.parametrize(
    ("command", "meant"),
    [
        (["FOO=1", "python3", "-c", "pass"], "-e FOO=1"),
        (["FOO=1 printenv FOO"], "-e FOO=1"),
        (["cd", "/tmp"], "-C"),
        (["cd /tmp && pwd"], "-c"),
    ],
)
def test_a_shell_word_in_front_is_refused_and_the_option_meant_is_shown(
    launchpad: Client, ctid: int, command: list[str], meant: str
) -> None:
    outcome = launchpad("run", f"pve1:{ctid}", "--", *command)
    assert outcome.code == 125
    assert outcome.out == ""
    assert meant in outcome.err
    assert "started" not in outcome.err
    assert launchpad.known_jobs() == []


@TRANSPORTS
@BOTH
def test_the_pid_is_the_program_s_own_and_leads_its_session(
    lab: Lab, launchpad: Client, ctid: int, transport: str
) -> None:
    words = ["run", "--json", "--transport", transport, f"pve1:{ctid}", "--", "sleep", "4242"]
    document = launchpad.succeed(*words).json()
    assert document["pid"] in lab.processes(ctid, "sleep", "4242")
    assert lab.session_of(ctid, document["pid"]) == document["pid"]


@pytest.mark.exclusive
@BOTH
def test_what_profiles_print_is_not_mistaken_for_an_answer(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    host = "echo 'Welcome 12345'; printf '{\"pid\": 999}'; echo warning >&2\n"
    container = "echo PID=1; printf '\\033[2Jno newline'; echo noise >&2\n"
    with (
        lab.file_on("pve1", "/root/.bashrc", host),
        lab.file_in(ctid, "/etc/profile.d/noise.sh", container),
    ):
        words = ["run", "--json", f"pve1:{ctid}", "--", "sh", "-c", "echo real; exec sleep 4444"]
        document = launchpad.succeed(*words).json()
        assert document["first_lines"] == ["real"]
        assert [document["pid"]] == lab.processes(ctid, "sleep", "4444")
        status = launchpad.status(document["id"])
        assert (status["state"], status["pid"]) == ("running", document["pid"])
        assert launchpad.log(document["id"]) == b"real\n"
        launchpad.succeed("kill", document["id"])
        assert launchpad.status(document["id"])["state"] == "killed"
        assert not lab.alive(ctid, document["pid"])


@pytest.mark.exclusive
@TRANSPORTS
def test_a_flood_on_the_error_stream_does_not_block_a_start(
    lab: Lab, launchpad: Client, transport: str
) -> None:
    flood = "head -c 5000000 /dev/zero | tr '\\0' x >&2"
    with lab.front_end(f'#!/bin/sh\n{flood}\nexec /usr/share/lab/pct "$@"\n'):
        outcome = launchpad.succeed("run", "--transport", transport, "pve1:101", "--", "true")
        assert outcome.seconds < 20
        launchpad.expect_end(outcome.out.strip(), code=0)
