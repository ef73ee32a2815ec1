"""Arguments, targets and secrets: what is typed arrives, and arrives nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, Lab
from support.tracing import Trace, traced_node
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.client import Client

TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
BOTH = pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX])


@TRANSPORTS
@BOTH
def test_text_that_looks_like_shell_acts_nowhere(
    lab: Lab, launchpad: Client, ctid: int, transport: str
) -> None:
    # A path as well: touch makes the file only where these directories are.
    directory, file = f"/root/a-{transport}; touch /tmp", f"pwned-{transport}"
    lab.sh(ctid, 'rm -rf "$1" && mkdir -p "$1"', directory)
    to = ("--transport", transport, f"pve1:{ctid}", "--")
    job = launchpad.start_job(*to, "touch", f"{directory}/{file}")
    launchpad.expect_end(job, code=0)
    assert lab.sh(ctid, 'ls "$1"', directory) == f"{file}\n"
    assert lab.sh(ctid, 'ls "$1" 2>/dev/null', f"/tmp/{file}", check=False) == ""
    assert not (lab.node_root() / "tmp" / file).exists()
    lab.sh(ctid, 'rm -r "$1"', directory.removesuffix("/tmp"))


@TRANSPORTS
@BOTH
def test_an_argument_list_of_one_mebibyte_works(
    launchpad: Client, ctid: int, transport: str
) -> None:
    # Quotes grow when they are quoted; no single argument may reach 128 KiB (execve(2)).
    arguments = ["'" * 100_000, '"$x" ' * 20_000, *["x" * 1_000] * 868]
    assert sum(map(len, arguments)) + len(arguments) >= 1_048_576
    script = 'printf "%s %s %s\\n" $# "${#1}" "${#2}"; printf "%s" "$*" | wc -c'
    job = launchpad.start_job(
        *("--transport", transport, f"pve1:{ctid}", "--", "sh", "-c", script, "sh", *arguments)
    )
    launchpad.expect_end(job, code=0)
    total = sum(map(len, arguments)) + len(arguments) - 1
    assert launchpad.log(job).split() == [b"870", b"100000", b"100000", b"%d" % total]


@BOTH
def test_quotes_that_grow_past_every_limit_of_a_line_arrive(launchpad: Client, ctid: int) -> None:
    script = 'printf %s "$1" | wc -c'
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", script, "_", "'" * 120_000)
    launchpad.expect_end(job, code=0)
    assert launchpad.log(job).strip() == b"120000"


@BOTH
def test_an_argument_that_no_program_can_take_is_told_before_anything_runs(
    lab: Lab, launchpad: Client, tmp_path: Path, ctid: int
) -> None:
    # The client's own argument list has the same limit: such an argument can only come from a
    # file, and --env-file is the one that is read.
    file = tmp_path / "environment"
    file.write_text("HUGE=" + "x" * 260_000 + "\n")
    words = ["run", "--env-file", str(file), f"pve1:{ctid}", "--", "sleep", "4545"]
    outcome = launchpad(*words)
    assert outcome.code in (125, 126), str(outcome)
    assert outcome.out == ""
    assert "long" in outcome.err or "128 KiB" in outcome.err, str(outcome)
    assert lab.processes(ctid, "sleep", "4545") == []


def test_everything_behind_the_first_double_dash_belongs_to_the_job(launchpad: Client) -> None:
    outcome = launchpad("run", "pve1:101", "--", "--help")
    assert outcome.code == 127
    assert "--help: not found" in outcome.err or "--help" in outcome.err
    assert "Usage" not in outcome.out
    words = ["--", "-n", "x", "--json", "--", "-f", "--"]
    job = launchpad.start_job("pve1:101", "--", "printf", "%s\\n", *words)
    launchpad.expect_end(job, code=0)
    assert launchpad.log(job).decode().split("\n")[:-1] == words


def test_without_a_double_dash_the_corrected_line_is_shown(launchpad: Client) -> None:
    words = ["python3", "train.py", "--name", "x", "--follow"]
    outcome = launchpad("run", "pve1:101", *words)
    assert outcome.code == 125
    assert outcome.out == ""
    assert "launchpad run pve1:101 -- python3 train.py --name x --follow" in outcome.err
    assert launchpad.known_jobs() == []


@pytest.mark.exclusive
@pytest.mark.parametrize("verb", ["run", "status"])
def test_a_target_that_means_nothing_is_refused_before_any_connection(
    lab: Lab, launchpad: Client, verb: str
) -> None:
    seen = lab.watch()
    bad = ["::1:102", "pve1:", ":102", "pve1:102x;", "pve1:102;id", "pve1:-h", "pve1:00102"]
    for target in [*bad, "-oProxyCommand=touch /tmp/pwned:102"]:
        outcome = (
            launchpad(verb, "--", target)
            if verb == "status"
            else launchpad(verb, target, "--", "true")
        )
        assert outcome.code == (125 if verb == "run" else 2), str(outcome)
        assert outcome.out == ""
    assert seen.connections == []


SECRET = "s3cr3t-5b1f9e"


@BOTH
def test_secrets_stand_in_no_process_list_file_or_screen(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    words = ["-e", "API_KEY", f"pve1:{ctid}", "--", "sleep", "4646"]
    outcome = launchpad.succeed("run", *words, env={"API_KEY": SECRET})
    job = outcome.out.strip()
    status = launchpad.succeed("status", "--json", job)
    assert status.json()["jobs"][0]["env_names"] == ["API_KEY"]
    screens = [outcome, status, launchpad.succeed("status", job), launchpad("tail", job)]
    assert all(SECRET not in screen.out + screen.err for screen in screens)
    assert SECRET.encode() not in launchpad.index.read_bytes()
    look = (
        'cd "$2"; find . -type f -exec grep -a -l "$1" {} +; grep -a -l "$1" /proc/[0-9]*/cmdline'
    )
    found = lab.sh(ctid, look, SECRET, f"/var/lib/launchpad/jobs/{job}", check=False).split()
    # The look itself carries the word on its own command line.
    assert [each for each in found if not each.startswith("/proc/")] == []
    assert len(found) <= 2
    pid = status.json()["jobs"][0]["pid"]
    environment = lab.sh(ctid, 'tr "\\000" "\\n" <"/proc/$1/environ"', str(pid))
    assert f"API_KEY={SECRET}" in environment.splitlines()


@BOTH
def test_nobody_but_the_owner_reads_the_files_of_a_job(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    job = launchpad.start_job(f"pve1:{ctid}", "--", "sh", "-c", "echo hi; exec sleep 300")
    script = 'cd "$1" && for f in . .. ../.. *; do stat -c "%a %F %n" "$f"; done'
    for line in lab.sh(ctid, script, f"/var/lib/launchpad/jobs/{job}").splitlines():
        mode, *words = line.split()
        assert mode == ("700" if "directory" in words else "600"), line
    assert launchpad.index.stat().st_mode & 0o777 == 0o600
    assert launchpad.index.parent.stat().st_mode & 0o777 == 0o700


def test_a_value_on_the_command_line_is_warned_about_once(launchpad: Client) -> None:
    outcome = launchpad.succeed("run", "-e", f"API_KEY={SECRET}", "pve1:101", "--", "true")
    (warning,) = [line for line in outcome.err.splitlines() if "API_KEY" in line]
    assert "-e API_KEY (" in warning
    assert SECRET not in outcome.err


@pytest.mark.exclusive
@TRANSPORTS
@BOTH
def test_no_value_of_the_environment_is_in_an_argument_vector_of_any_process(
    lab: Lab, launchpad: Client, tmp_path: Path, ctid: int, transport: str
) -> None:
    by_name, by_file, by_value = (f"{SECRET}-{kind}" for kind in ("name", "file", "value"))
    file = tmp_path / "environment"
    file.write_text(f"BY_FILE={by_file}\n")
    on_client = tmp_path / "client.trace"
    with traced_node(lab, "pve1", tmp_path / "node.trace") as on_node:
        options = ["-e", "BY_NAME", "--env-file", str(file), "-e", f"BY_VALUE={by_value}"]
        outcome = launchpad.run(
            *("run", "--transport", transport, *options, f"pve1:{ctid}", "--"),
            *("sh", "-c", 'printf "%s\\n" "$BY_NAME" "$BY_FILE" "$BY_VALUE"; exec sleep 4747'),
            env={"BY_NAME": by_name},
            prefix=Trace.command(on_client),
        )
        assert outcome.code == 0, str(outcome)
        # Not before the job has become the program whose argument vector is the last one.
        wait_until(lambda: lab.processes(ctid, "sleep", "4747"), 10)
        assert launchpad.log(outcome.out.strip()).decode().split() == [by_name, by_file, by_value]
        launchpad.succeed("kill", outcome.out.strip())
    client, node = Trace.read(on_client), on_node.vectors()
    assert any("launchpad" in vector for vector in client)
    for program in ("/usr/sbin/pct", "lxc-attach", "setsid", "4747"):
        assert any(program in vector for vector in node), program
    everything = [*client, *node]
    assert [vector for vector in everything if by_name in vector or by_file in vector] == []
    assert all("BY_VALUE=" in vector for vector in everything if by_value in vector)
    assert not any(by_value in vector for vector in node)
    if transport == "openssh":
        assert any('/ssh", [' in vector for vector in client)
