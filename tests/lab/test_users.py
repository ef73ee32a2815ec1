"""Jobs of another user of the container."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.client import Client
    from support.lab import Lab


@pytest.mark.parametrize("ctid", [101, 102])
def test_a_job_of_another_user_is_that_users_in_everything(
    launchpad: Client, lab: Lab, ctid: int
) -> None:
    line = "id -un; echo $HOME $USER; pwd; echo error >>/dev/stderr; exec sleep 300"
    job = launchpad.run("run", "--json", "-u", "worker", f"pve1:{ctid}", "-c", line).json()
    assert job["first_lines"] == ["worker", "/home/worker worker", "/home/worker", "error"]
    status = lab.run(ctid, "cat", f"/proc/{job['pid']}/status").stdout.decode()
    assert "Uid:\t1000\t1000\t1000\t1000" in status
    killed = launchpad.run("kill", job["id"])
    assert killed.code == 0, killed


def test_a_log_below_the_users_home_is_told_by_its_path(launchpad: Client, lab: Lab) -> None:
    name = f"~/{secrets.token_hex(8)}.log"
    job = launchpad.run(
        "run", "--json", "-u", "worker", "--log", name, "pve1:101", "--", "echo", "hello"
    ).json()
    assert job["log"] == f"/home/worker/{name[2:]}"
    assert launchpad.run("tail", job["id"]).stdout == b"hello\n"
    owner = lab.run(101, "stat", "-c", "%U %a", job["log"]).stdout
    assert owner == b"worker 644\n"
    lab.run(101, "rm", job["log"])


def test_a_log_that_is_appended_to_is_shown_from_where_the_job_begins(
    launchpad: Client, lab: Lab
) -> None:
    path = f"/root/{secrets.token_hex(8)}.log"
    first = launchpad.run("run", "-f", "--log", path, "pve1:101", "--", "echo", "one")
    assert first.stdout == b"one\n", first
    again = launchpad.run("run", "-f", "--log", path, "--append", "pve1:101", "--", "echo", "two")
    assert again.stdout == b"two\n", again
    assert lab.run(101, "cat", path).stdout == b"one\ntwo\n"
    lab.run(101, "rm", path)
