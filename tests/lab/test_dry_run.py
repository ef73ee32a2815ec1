"""--dry-run: the line that is shown, pasted, does in a real container what a launch does."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, Lab
from support.waiting import wait_until

if TYPE_CHECKING:
    from support.client import Client

WORDS: list[str | bytes] = [
    *("a b", 'it\'s "quoted"', "$HOME `id` *", "back\\slash", "two\nlines\n", "!x", "-x", "é"),
    b"\xff\x1b[2J",
    "/root/a;touch /tmp/pwned",
]
ECHO = 'printf "%s\\0" "$KEY" "$HOME" "$PWD" "$(id -un)" "$@"; printf "\\0."'


@pytest.mark.parametrize(
    ("account", "ctid"),
    [
        ("root", DEBIAN),
        ("root", BUSYBOX),
        ("ops", DEBIAN),
        ("ops-zsh", DEBIAN),
        ("ops-fish", BUSYBOX),
        ("ops-tcsh", DEBIAN),
        ("ops-dash", BUSYBOX),
    ],
)
@pytest.mark.parametrize("user", ["root", "worker"])
def test_the_line_can_be_pasted_whatever_the_login_shell_of_the_host(
    lab: Lab, launchpad: Client, account: str, ctid: int, user: str
) -> None:
    secret = "s3cr3t 'x' \"y\" $z\nline 2"
    options = ["-e", "KEY", "-C", "~/", *([] if user == "root" else ["-u", user])]
    outcome = launchpad.succeed(
        *("run", "--dry-run", *options, f"{account}@pve1:{ctid}"),
        *("--", "sh", "-c", ECHO, "sh", *WORDS),
        env={"KEY": secret},
    )
    assert "s3cr3t" not in outcome.out
    assert outcome.out.splitlines()[0].isprintable()
    # All of the output: what is not the line is comment.
    subprocess.run(
        ["sh", "-c", outcome.stdout],
        env={**launchpad.environment, "KEY": secret},
        check=True,
        timeout=60,
    )
    found = re.search(r"exec 4>>(/var/lib/launchpad/sh-\w+\.log)", outcome.out)
    assert found
    log = found[1]
    written = wait_until(lambda: _written(lab, ctid, log), what="the job has written its words")
    home = "/root" if user == "root" else "/home/worker"
    wanted = [secret, home, home, user, *WORDS]
    assert written == [each if isinstance(each, bytes) else each.encode() for each in wanted]
    assert lab.run(ctid, "ls", "/tmp/pwned", check=False).returncode != 0
    assert lab.run(ctid, "rm", log).returncode == 0


def _written(lab: Lab, ctid: int, log: str) -> list[bytes]:
    data = lab.run(ctid, "cat", log, check=False).stdout
    return data.removesuffix(b"\0.").split(b"\0")[:-1] if data.endswith(b"\0.") else []


def test_a_container_that_is_named_is_looked_up(launchpad: Client) -> None:
    outcome = launchpad.succeed("run", "--dry-run", "pve1:trainer", "--", "true")
    assert "/usr/sbin/pct exec 101 -- " in outcome.out.splitlines()[0]
