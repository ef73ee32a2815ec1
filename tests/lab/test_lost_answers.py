"""A start whose answer is lost: looked up, told truly, and never made twice."""

from __future__ import annotations

import json
import os
import secrets
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.waiting import wait_until

if TYPE_CHECKING:
    from support.client import Client
    from support.lab import Lab

TRANSPORTS = ("paramiko", "openssh")

# A front end whose answer goes nowhere, and whose caller, the host's shell, is killed once the job
# runs: ssh gets no status.
KILLS_ITS_SHELL = r"""#!/bin/sh
[ "$1" = exec ] && [ ! -e /run/killed-%s ] || exec /usr/share/lab/pct "$@"
: >/run/killed-%s
exec 3<&0
/usr/share/lab/pct "$@" <&3 >/dev/null &
until /usr/share/lab/pct exec 101 -- pgrep -f "^sleep %s" >/dev/null </dev/null; do sleep 0.1; done
kill -9 "$PPID"
wait
"""

# A front end that says its word and ends before anything was run.
BREAKS_BEFORE = r"""#!/bin/sh
case $1 in
  exec) [ -e /run/broke-%s ] || { : >/run/broke-%s; kill -9 "$PPID"; exit 0; } ;;
esac
exec /usr/share/lab/pct "$@"
"""


def sleepers(lab: Lab, ctid: int, seconds: str) -> list[int]:
    return lab.processes(ctid, "sleep", seconds)


@pytest.mark.exclusive
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_job_whose_answer_was_lost_is_found_and_not_started_again(
    launchpad: Client, lab: Lab, transport: str
) -> None:
    seconds = f"3{secrets.randbelow(10**6):06}"
    front_end = KILLS_ITS_SHELL % (seconds, seconds, seconds)
    with lab.front_end(front_end):
        outcome = launchpad.run(
            "run", "--transport", transport, "--json", "pve1:101", "--", "sleep", seconds
        )
    assert outcome.code == 0, outcome
    job = outcome.json()
    assert (job["started"], job["state"]) == ("yes", "running")
    assert sleepers(lab, 101, seconds) == [job["pid"]]


@pytest.mark.exclusive
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_start_that_never_arrived_is_told_as_such_and_stays_forbidden(
    launchpad: Client, lab: Lab, transport: str
) -> None:
    mark = secrets.token_hex(4)
    with lab.front_end(BREAKS_BEFORE % (mark, mark)):
        outcome = launchpad.run(
            "run", "--transport", transport, "--json", "pve1:101", "--", "sleep", "300"
        )
    assert outcome.code == 125, outcome
    failure = outcome.json()
    assert failure["started"] == "no", outcome
    assert failure["error"]["layer"] in {"ssh", "pct"}
    assert failure["error"]["advice"]
    assert lab.sh(101, 'ls -d /var/lib/launchpad/jobs/"$1" 2>&1 || :', failure["id"]).startswith(
        "ls: cannot access"
    )
    assert launchpad.run("status", failure["id"]).code == 125


@pytest.mark.exclusive
def test_a_host_that_goes_away_for_good_leaves_the_start_unknown(
    launchpad: Client, lab: Lab
) -> None:
    slow = '#!/bin/sh\n[ "$1" != exec ] || sleep 2\nexec /usr/share/lab/pct "$@"\n'
    with lab.front_end(slow):
        watch = lab.watch("pve1")
        process = launchpad.start(
            "run", "--json", "pve1:101", "--", "sleep", "300", env={"LAUNCHPAD_RECOVERY": "1"}
        )
        wait_until(lambda: watch.sessions, what="the session has begun")
        with lab.cut("pve1"):
            stdout, stderr = process.communicate(timeout=170)
    assert process.returncode == 125, stderr
    failure = json.loads(stdout)
    assert failure["started"] == "unknown", stderr
    assert failure["id"] in failure["error"]["advice"]


def callers(lab: Lab) -> list[Path]:
    """The lxc-attach processes of a node, as /proc/PID of this machine."""
    found = []
    node = Path(f"/proc/{lab.node_pid()}/ns/net").readlink()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (place / "cmdline").read_bytes().split(b"\0")
            if words[0] == b"lxc-attach" and (place / "ns/net").readlink() == node:
                found.append(place)
    return found


def is_held(process: Path) -> bool:
    """Whether it is in the cgroup of a container, and frozen with it."""
    return "/106" in (process / "cgroup").read_text()


@pytest.mark.exclusive
def test_a_frozen_container_is_given_up_and_starts_nothing_when_it_thaws(
    launchpad: Client, lab: Lab
) -> None:
    seconds = f"4{secrets.randbelow(10**6):06}"
    with lab.frozen(106):
        outcome = launchpad.run("run", "--json", "pve1:106", "--", "sleep", seconds, timeout=60)
        # Only what the freezer holds is there until the container thaws, and then dies unrun.
        held = [each for each in callers(lab) if not is_held(each)]
        assert held == []
    assert outcome.code == 125, outcome
    failure = outcome.json()
    assert failure["error"]["layer"] == "container"
    assert "frozen" in failure["error"]["advice"]
    assert failure["started"] in {"no", "unknown"}
    assert outcome.seconds < 40
    # What was on its way finds a closed line, and ends. It must have had its chance to start.
    wait_until(
        lambda: "lxc-attach" not in lab.on_node("pve1", "ps", "axww", "-o", "args").stdout.decode(),
        30,
        "nothing is left on the host",
    )
    assert not sleepers(lab, 106, seconds)
    assert launchpad.run("status", "--json", "pve1:106").code == 0


@pytest.mark.parametrize("delay", [0.15, 0.3, 0.45, 0.6, 0.9, 1.5])
def test_ctrl_c_at_any_moment_tells_the_id_and_what_is_true(
    launchpad: Client, lab: Lab, delay: float
) -> None:
    seconds = f"5{secrets.randbelow(10**6):06}"
    process = launchpad.start("run", "--json", "pve1:101", "--", "sleep", seconds)
    with pytest.raises(Exception, match="timed out"):
        process.communicate(timeout=delay)
    os.kill(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    # Before main has taken over, Python dies of the signal itself, in words of its own.
    assert b"launchpad/__main__" not in stderr
    assert process.returncode in {130, -signal.SIGINT}, (stdout, stderr)
    running = sleepers(lab, 101, seconds)
    if not stdout:
        # The interpreter was still reading its own modules.
        assert not running
        return
    failure = json.loads(stdout)
    assert failure["started"] == ("yes" if running else "no"), (stdout, stderr)
    assert failure["id"].encode() in stderr


def test_one_key_is_one_job_for_two_machines(launchpad: Client, make_client: object) -> None:
    key = secrets.token_hex(8)
    words = ("run", "--json", "--idempotency-key", key, "pve1:101", "--", "sleep", "300")
    first = launchpad.run(*words).json()
    assert first["created"] is True
    again = launchpad.run(*words).json()
    assert (again["id"], again["created"]) == (first["id"], False)
    other = make_client("other").run(*words).json()  # type: ignore[operator]
    assert (other["id"], other["created"]) == (first["id"], False)
    refused = launchpad.run(*words[:-1], "301")
    assert refused.code == 125, refused
    assert first["id"] in refused.err
