"""--dry-run: the line that is shown, pasted, does in a real container what a launch does."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, Lab
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_container_on_another_node_is_reached_there(lab: Lab, launchpad: Client) -> None:
    path = f"/root/pasted-{launchpad.home.parent.name}"
    outcome = launchpad.succeed("run", "--dry-run", "pve1:worker", "--", "touch", path)
    assert " pve2 '/usr/sbin/pct exec 105 " in outcome.out.splitlines()[0]
    subprocess.run(["sh", "-c", outcome.stdout], env=launchpad.environment, check=True, timeout=60)
    wait_until(lambda: lab.run(105, "ls", path, check=False).returncode == 0, what="it has run")
    lab.sh(105, 'rm "$1"; rm -f /var/lib/launchpad/touch-*.log', path)


def test_a_node_that_ssh_does_not_know_is_reached_through_the_named_one(
    lab: Lab, launchpad: Client, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(lab.ssh_config.read_text().replace("Host pve2", "Host elsewhere"))
    path = f"/root/jumped-{launchpad.home.parent.name}"
    words = ("run", "--dry-run", "-F", str(config), "pve1:worker", "--", "touch", path)
    outcome = launchpad.succeed(*words)
    assert " -J pve1 -o HostKeyAlias=pve2 " in outcome.out.splitlines()[0]
    key = f"IdentityFile={lab.ssh_config.parent / 'id_ed25519'}"
    line = outcome.out.splitlines()[0].replace("ssh ", f"ssh -o {key} ", 1)
    subprocess.run(["sh", "-c", line], env=launchpad.environment, check=True, timeout=60)
    wait_until(lambda: lab.run(105, "ls", path, check=False).returncode == 0, what="it has run")
    lab.sh(105, 'rm "$1"; rm -f /var/lib/launchpad/touch-*.log', path)
