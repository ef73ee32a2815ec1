"""`doctor`: every check is made to fail, its printed fix is run, and it is well again."""

from __future__ import annotations

import re
import shlex
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from support.lab import BUSYBOX, DEBIAN, NO_PTY, SLEEPER, STOPPED, Lab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.client import Client

TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])

LAYERS = {"client", "ssh", "login", "sudo", "pct", "container", "shell"}


def examine(client: Client, target: str, *options: str, code: int) -> dict[str, dict[str, Any]]:
    """The checks by name; what one sees and the JSON say the same."""
    outcome = client("doctor", "--json", *options, target)
    assert outcome.code == code, str(outcome)
    document = outcome.json()
    assert document["schema"] == 1
    assert document["ok"] is (code == 0)
    for check in document["checks"]:
        assert check["layer"] in LAYERS
        # A fault without a fix is of no help.
        assert check["fix"] or check["verdict"] != "fault", check
    return {check["name"]: check for check in document["checks"]}


def verdict(checks: dict[str, dict[str, Any]], name: str) -> tuple[str, str]:
    return checks[name]["verdict"], checks[name]["what"]


def run_fix(lab: Lab, fix: str, node: str = "pve1") -> None:
    """Do what doctor said, as it is printed: on this machine, or ``on NODE:``."""
    if match := re.fullmatch(r"on (\w+): (.*)", fix):
        lab.on_node(match[1], "sh", "-c", match[2])
        return
    words = shlex.split(fix)
    assert words[0] == "ssh", fix
    subprocess.run(
        ["ssh", "-F", str(lab.ssh_config), *words[1:]],
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


@contextmanager
def without(lab: Lab, ctid: int, path: str) -> Iterator[None]:
    """A container has no such file meanwhile."""
    lab.sh(ctid, 'mv "$1" "$1.away"', path)
    try:
        yield
    finally:
        lab.sh(ctid, 'mv "$1.away" "$1"', path)


@contextmanager
def small_disk(lab: Lab, ctid: int, options: str) -> Iterator[None]:
    """Another file system over the state directory."""
    lab.sh(ctid, "umask 077; mkdir -p /var/lib/launchpad")
    lab.sh(ctid, 'mount -t tmpfs -o "$1" none /var/lib/launchpad', options)
    try:
        yield
    finally:
        lab.sh(ctid, "umount /var/lib/launchpad")


@TRANSPORTS
@pytest.mark.parametrize(
    "target", ["pve1:101", "pve1:102", "pve1:104", "pve1:106", "pve1:worker", "ops@pve1:101"]
)
def test_where_a_job_can_start_it_says_so(launchpad: Client, transport: str, target: str) -> None:
    checks = examine(launchpad, target, "--transport", transport, code=0)
    assert {check["verdict"] for check in checks.values()} <= {"ok", "note"}
    for name in ("config", "ssh", "login shell", "pct", "container", "state", "profile"):
        assert checks[name]["verdict"] == "ok", checks[name]
    assert re.search("host key .*SHA256:.* known, logged in with ", checks["ssh"]["what"])
    assert checks["transport"]["what"].startswith(transport)
    for name in ("ssh", "login shell", "pct", "container"):
        assert checks[name]["ms"] is not None
    assert launchpad("run", "--transport", transport, target, "--", "true").code == 0


def test_the_screen(launchpad: Client) -> None:
    outcome = launchpad.succeed("doctor", "pve1:101")
    lines = outcome.out.splitlines()
    assert re.fullmatch(r"  ok      config       pve1 = root@\S+:22 .*", lines[0])
    assert any(re.fullmatch(r"  ok      pct          /usr/sbin/pct .* \d+ ms", x) for x in lines)
    assert any('101 "trainer" runs on pve1' in line for line in lines)
    assert "  note    GPU          none visible in the container" in lines
    assert outcome.err == "a job can start here: launchpad run pve1:101 -- COMMAND\n"
    bad = launchpad("doctor", "pve1:103")
    assert bad.code == 125
    assert "fix: ssh pve1 pct start 103" in bad.out


@pytest.mark.exclusive
def test_nothing_is_left_behind(lab: Lab, launchpad: Client) -> None:
    look = "find / -xdev -newer /tmp/before ! -path '/proc/*' ! -path '/sys/*' ! -path '/dev/*'"
    for ctid in (DEBIAN, BUSYBOX):
        lab.sh(ctid, "rm -rf /var/lib/launchpad; : >/tmp/before; sleep 1")
        examine(launchpad, f"pve1:{ctid}", code=0)
        changed = lab.sh(ctid, f"{look} -type f 2>/dev/null", check=False).split()
        ours = [path for path in changed if not path.startswith(("/var/log/", "/run/"))]
        assert ours in ([], ["/tmp/before"])
        assert lab.sh(ctid, "ls -d /var/lib/launchpad 2>/dev/null", check=False) == ""
    assert not (launchpad.home / "state/launchpad/index.sqlite3").exists()


@pytest.mark.exclusive
def test_a_stopped_container(lab: Lab, launchpad: Client) -> None:
    checks = examine(launchpad, f"pve1:{STOPPED}", code=125)
    assert verdict(checks, "container") == ("fault", "container 103 on pve1 is stopped")
    assert checks["ssh"]["verdict"] == checks["pct"]["verdict"] == "ok"
    try:
        run_fix(lab, checks["container"]["fix"])
        assert examine(launchpad, f"pve1:{STOPPED}", code=0)["container"]["verdict"] == "ok"
    finally:
        lab.command("stop", str(STOPPED))


@pytest.mark.exclusive
def test_a_frozen_container(lab: Lab, launchpad: Client) -> None:
    with lab.frozen(SLEEPER):
        checks = examine(launchpad, f"pve1:{SLEEPER}", code=125)
        assert verdict(checks, "container") == ("fault", "container 106 on pve1 is frozen")
        run_fix(lab, checks["container"]["fix"])
        assert examine(launchpad, f"pve1:{SLEEPER}", code=0)["container"]["verdict"] == "ok"


@pytest.mark.parametrize(
    ("target", "words"),
    [("pve1:777", "there is no container 777"), ("pve1:200", "200 on pve1 is a virtual machine")],
)
def test_what_is_no_container(launchpad: Client, target: str, words: str) -> None:
    checks = examine(launchpad, target, code=125)
    assert checks["container"]["verdict"] == "fault"
    assert words in checks["container"]["what"]


@pytest.mark.exclusive
@pytest.mark.parametrize(
    ("user", "words"), [("guest", "wants a password"), ("ops-tty", "demands a terminal")]
)
def test_sudo(lab: Lab, launchpad: Client, user: str, words: str) -> None:
    checks = examine(launchpad, f"{user}@pve1:101", code=125)
    assert checks["sudo"]["verdict"] == "fault"
    assert words in checks["sudo"]["what"]
    assert checks["ssh"]["verdict"] == "ok"
    assert checks["container"]["verdict"] == "skipped"
    try:
        run_fix(lab, checks["sudo"]["fix"])
        assert examine(launchpad, f"{user}@pve1:101", code=0)["sudo"]["verdict"] == "ok"
    finally:
        lab.on_node("pve1", "rm", "-f", "/etc/sudoers.d/launchpad")


@pytest.mark.exclusive
def test_a_host_without_pct(lab: Lab, launchpad: Client) -> None:
    pct = lab.node_root("pve1") / "usr/sbin/pct"
    pct.rename(pct.with_name("pct.away"))
    try:
        checks = examine(launchpad, "pve1:101", code=125)
        assert checks["pct"]["verdict"] == "fault"
        assert "is it a Proxmox node?" in checks["pct"]["what"]
        assert checks["container"]["verdict"] == "skipped"
    finally:
        pct.with_name("pct.away").rename(pct)
    assert examine(launchpad, "pve1:101", code=0)["pct"]["verdict"] == "ok"


@TRANSPORTS
def test_a_host_key_that_has_changed(
    lab: Lab, launchpad: Client, transport: str, tmp_path: Path
) -> None:
    known = tmp_path / "known"
    lines = (lab.settings.ssh / "known_hosts").read_text().splitlines(keepends=True)
    address = lab.settings.node("pve1").address
    right = [line for line in lines if line.startswith("pve1,")]
    other = [line.replace(line.split()[0], address) for line in lines if line.startswith("pve2,")]
    known.write_text("".join(other))
    config = tmp_path / "config"
    text = lab.ssh_config.read_text()
    config.write_text(text.replace(str(lab.settings.ssh / "known_hosts"), str(known)))
    options = ("-F", str(config), "--transport", transport)
    checks = examine(launchpad, "pve1:101", *options, code=125)
    assert checks["ssh"]["verdict"] == "fault"
    assert "has changed" in checks["ssh"]["what"]
    assert checks["config"]["verdict"] == "ok"
    command = re.search(r"ssh-keygen .*", checks["ssh"]["fix"])
    assert command
    subprocess.run(shlex.split(command[0]), check=True, capture_output=True)
    # The old key is forgotten; the new one must be learnt, from somebody who knows it.
    checks = examine(launchpad, "pve1:101", *options, code=125)
    assert "is not known" in checks["ssh"]["what"]
    known.write_text("".join(right))
    assert examine(launchpad, "pve1:101", *options, code=0)["ssh"]["verdict"] == "ok"


@TRANSPORTS
def test_a_login_that_is_refused(
    lab: Lab, launchpad: Client, transport: str, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    config = tmp_path / "config"
    text = lab.ssh_config.read_text()
    config.write_text(text.replace(str(lab.settings.ssh / "id_ed25519"), str(key)))
    options = ("-F", str(config), "--transport", transport)
    checks = examine(launchpad, "pve1:101", *options, code=125)
    assert (checks["ssh"]["verdict"], checks["ssh"]["layer"]) == ("fault", "login")
    assert "refused the login" in checks["ssh"]["what"]
    assert checks["pct"]["verdict"] == "skipped"


@TRANSPORTS
def test_a_dead_host(lab: Lab, launchpad: Client, transport: str, tmp_path: Path) -> None:
    config = tmp_path / "config"
    text = lab.ssh_config.read_text().replace("Port 22\n", "Port 9\n")
    config.write_text(text)
    options = ("-F", str(config), "--transport", transport)
    checks = examine(launchpad, "pve1:101", *options, code=125)
    assert checks["ssh"]["verdict"] == "fault"
    assert "refused" in checks["ssh"]["what"]
    assert checks["config"]["verdict"] == "ok"


def test_a_configuration_that_ssh_cannot_read(launchpad: Client, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("Host pve1\n  NoSuchOption yes\n")
    checks = examine(launchpad, "pve1:101", "-F", str(config), code=125)
    assert checks["config"]["verdict"] == "fault"


@pytest.mark.exclusive
def test_a_login_shell_that_talks_and_one_that_refuses(lab: Lab, launchpad: Client) -> None:
    with lab.file_on("pve1", "/root/.bashrc", "echo Welcome to pve1\n"):
        checks = examine(launchpad, "pve1:101", code=0)
        assert checks["login shell"]["verdict"] == "note"
        assert "Welcome to pve1" in checks["login shell"]["details"]
    assert examine(launchpad, "pve1:101", code=0)["login shell"]["verdict"] == "ok"
    passwd = lab.node_root("pve1") / "etc/passwd"
    before = passwd.read_text()
    passwd.write_text(before.replace("/home/ops:/bin/bash", "/home/ops:/usr/sbin/nologin"))
    try:
        checks = examine(launchpad, "ops@pve1:101", code=125)
        assert checks["login shell"]["verdict"] == "fault"
        assert "nologin" in checks["login shell"]["fix"]
    finally:
        passwd.write_text(before)
    assert examine(launchpad, "ops@pve1:101", code=0)["login shell"]["verdict"] == "ok"


@pytest.mark.exclusive
def test_one_session_on_a_connection(lab: Lab, launchpad: Client, tmp_path: Path) -> None:
    with lab.other_sshd(tmp_path, "MaxSessions=1") as config:
        checks = examine(launchpad, "pve1:101", "-F", str(config), code=0)
    assert checks["sessions"]["verdict"] == "note"
    assert "MaxSessions 1" in checks["sessions"]["what"]
    assert examine(launchpad, "pve1:101", code=0)["sessions"]["verdict"] == "ok"


@pytest.mark.exclusive
def test_a_state_directory_of_somebody_else(lab: Lab, launchpad: Client) -> None:
    lab.sh(DEBIAN, "umask 077; mkdir -p /var/lib/launchpad/jobs; chown worker /var/lib/launchpad")
    try:
        checks = examine(launchpad, "pve1:101", code=125)
        assert "belongs to somebody else" in checks["state"]["what"]
        # What is true of doctor is true of run.
        assert launchpad("run", "pve1:101", "--", "true").code == 125
        run_fix(lab, checks["state"]["fix"])
        assert examine(launchpad, "pve1:101", code=0)["state"]["verdict"] == "ok"
    finally:
        lab.sh(DEBIAN, "chown root /var/lib/launchpad")
    assert launchpad("run", "pve1:101", "--", "true").code == 0


@pytest.mark.exclusive
def test_a_state_directory_that_is_a_link(lab: Lab, launchpad: Client) -> None:
    lab.sh(DEBIAN, "umask 077; mkdir -p /var/lib/launchpad")
    with without(lab, DEBIAN, "/var/lib/launchpad"):
        lab.sh(DEBIAN, "ln -s /tmp /var/lib/launchpad")
        checks = examine(launchpad, "pve1:101", code=125)
        assert "is a link" in checks["state"]["what"]
        run_fix(lab, checks["state"]["fix"])
        assert examine(launchpad, "pve1:101", code=0)["state"]["verdict"] == "ok"


@pytest.mark.exclusive
def test_a_state_directory_that_is_read_only(lab: Lab, launchpad: Client) -> None:
    with small_disk(lab, SLEEPER, "ro,size=1m"):
        checks = examine(launchpad, f"pve1:{SLEEPER}", code=125)
        assert "cannot be written" in checks["state"]["what"]
        run_fix(lab, checks["state"]["fix"])
        assert examine(launchpad, f"pve1:{SLEEPER}", code=0)["state"]["verdict"] in ("ok", "note")


@pytest.mark.exclusive
def test_a_full_disk(lab: Lab, launchpad: Client) -> None:
    with small_disk(lab, SLEEPER, "size=200k"):
        fill = "dd if=/dev/zero of=/var/lib/launchpad/fill bs=1k 2>/dev/null"
        lab.sh(SLEEPER, fill, check=False)
        checks = examine(launchpad, f"pve1:{SLEEPER}", code=125)
        assert checks["state"]["what"] == "0 KiB free in /var/lib/launchpad"
        lab.sh(SLEEPER, "rm /var/lib/launchpad/fill")
        assert examine(launchpad, f"pve1:{SLEEPER}", code=0)["state"]["verdict"] == "note"


@pytest.mark.exclusive
@pytest.mark.parametrize(
    ("text", "words"), [("exit 0\n", "exits"), ("exec true\n", "exits"), ("sleep 1000\n", "hangs")]
)
def test_a_profile_that_never_ends(lab: Lab, launchpad: Client, text: str, words: str) -> None:
    with lab.file_in(DEBIAN, "/root/.bash_profile", text):
        checks = examine(launchpad, "pve1:101", code=125)
        assert checks["profile"]["verdict"] == "fault"
        assert words in checks["profile"]["what"]
        assert "--no-login" in checks["profile"]["fix"]
        # What is true of doctor is true of run.
        assert launchpad("run", "pve1:101", "--", "true").code == 125
        assert launchpad("run", "--no-login", "pve1:101", "--", "true").code == 0
    assert examine(launchpad, "pve1:101", code=0)["profile"]["verdict"] == "ok"


@pytest.mark.exclusive
def test_missing_tools(lab: Lab, launchpad: Client) -> None:
    with without(lab, DEBIAN, "/usr/bin/mkfifo"):
        checks = examine(launchpad, "pve1:101", code=125)
        assert verdict(checks, "tools") == ("fault", "missing: mkfifo")
        assert "pct exec 101 -- apt-get install -y coreutils" in checks["tools"]["fix"]
    with without(lab, DEBIAN, "/usr/bin/setsid"):
        checks = examine(launchpad, "pve1:101", code=0)
        assert verdict(checks, "setsid") == ("note", "no setsid: python3's is used")
    with without(lab, DEBIAN, "/usr/bin/tmux"):
        checks = examine(launchpad, "pve1:101", code=0)
        assert checks["terminal"]["verdict"] == "note"
        assert "apt-get install -y tmux" in checks["terminal"]["fix"]
    checks = examine(launchpad, "pve1:101", code=0)
    for name in ("tools", "setsid", "terminal"):
        assert checks[name]["verdict"] == "ok"


def test_what_is_worth_knowing_of_other_containers(launchpad: Client) -> None:
    checks = examine(launchpad, f"pve1:{NO_PTY}", code=0)
    assert checks["terminal"]["verdict"] == "note"
    assert "no PTY can be had" in checks["terminal"]["what"]
    checks = examine(launchpad, f"pve1:{BUSYBOX}", code=0)
    assert "no bash" in checks["shell"]["what"]
    assert "no tmux" in checks["terminal"]["what"]


@pytest.mark.exclusive
def test_a_clock_that_is_wrong(lab: Lab, launchpad: Client) -> None:
    # Its own clock cannot be set: a container has that of its node.
    script = (
        '#!/bin/sh\n[ "$*" = +%s ] || exec /usr/bin/date "$@"\n'
        "echo $(($(/usr/bin/date +%s) + 3600))\n"
    )
    with lab.file_in(DEBIAN, "/usr/local/bin/date", script, "755"):
        checks = examine(launchpad, "pve1:101", code=0)
        assert checks["clock"]["verdict"] == "note"
        assert re.search(r"3[56]\d\d s ahead of", checks["clock"]["what"])
    assert examine(launchpad, "pve1:101", code=0)["clock"]["verdict"] == "ok"


@pytest.mark.exclusive
@pytest.mark.parametrize(
    ("script", "expected", "words"),
    [
        ("echo '0, NVIDIA A100, 81920'", "ok", "0 NVIDIA A100 80 GiB"),
        ("sleep 100", "note", "hangs"),
        ("echo no driver; exit 9", "note", "fails"),
    ],
)
def test_a_gpu(lab: Lab, launchpad: Client, script: str, expected: str, words: str) -> None:
    path = "/usr/local/bin/nvidia-smi"
    with lab.file_in(DEBIAN, path, f"#!/bin/sh\nexec 2>&1\n{script}\n", "755"):
        checks = examine(launchpad, "pve1:101", code=0)
        assert checks["GPU"]["verdict"] == expected
        assert words in checks["GPU"]["what"]


def test_this_machine(launchpad: Client) -> None:
    checks = examine(launchpad, "local", code=0)
    assert checks["container"]["what"].startswith("this machine")
    assert "ssh" not in checks
