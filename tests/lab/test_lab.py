"""The lab does what it says: these tests run in labs of their own, beside the shared one."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from labtool import nodes
from labtool.settings import from_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.lab

LAB = Path(__file__).resolve().parent / "lab"
DEBIAN, BUSYBOX, STOPPED, NO_PTY, ON_PVE2, SLEEPER = "101", "102", "103", "104", "105", "106"
AWKWARD = [
    "",
    " ",
    "it's",
    '"$HOME"',
    "$(touch /tmp/pwned)",
    "`id`",
    "a\nb",
    "\\",
    "*",
    "--",
    "-n",
    "!x",
    "é",
    os.fsdecode(b"\xff\xfe"),
]

Result = subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab of its own for a test module or a test."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        shared_cache = os.environ.get("LAB_CACHE", "/var/cache/launchpad-lab/cache")
        dropped = ("LAB_", "PYTHONDONTWRITEBYTECODE")
        plain = {key: text for key, text in os.environ.items() if not key.startswith(dropped)}
        return {
            **plain,
            "LAB_HOME": str(self.home),
            "LAB_CACHE": shared_cache,
            "PYTHONPYCACHEPREFIX": str(self.home / "bytecode"),
        }

    def start(self, *words: str, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(LAB), *words],
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )

    def run(self, *words: str, **more: str) -> Result:
        process = self.start(*words, **more)
        stdout, stderr = process.communicate(timeout=120)
        return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)

    def do(self, *words: str, **more: str) -> str:
        result = self.run(*words, **more)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def variables(self) -> dict[str, str]:
        words = (shlex.split(line)[1] for line in self.do("env").splitlines())
        return dict(word.split("=", 1) for word in words)

    def pct(self, *words: str) -> Result:
        return self.run("enter", "pve1", "--", "pct", *words)

    def ssh(self, destination: str, *words: str) -> Result:
        config = str(self.home / "ssh/config")
        return subprocess.run(
            ["ssh", "-F", config, "-o", "BatchMode=yes", destination, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


# One worker, and so one lab more: about six are as many as the kernel's inotify has room for.
pytestmark = pytest.mark.xdist_group("own lab")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    own = Lab(tmp_path_factory.mktemp("lab"))
    own.do("up")
    yield own
    own.do("down")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_a_node_buries_its_orphans(lab: Lab) -> None:
    # One that came from a container would keep the container's PID namespace from ever ending.
    lab.do("enter", "pve1", "--", "sh", "-c", "(exec sh -c 'sleep 0.1; exit 7' &)")
    states = "cat /proc/[0-9]*/stat 2>/dev/null | sed 's/.*) //'"

    def none_is_left() -> bool:
        return not re.search("^Z", lab.do("enter", "pve1", "--", "sh", "-c", states), re.MULTILINE)

    time.sleep(0.3)  # the orphan's life; what must not be there afterwards cannot be waited for
    wait_until(none_is_left, "no zombie on the node")


# --- up, down, status -----------------------------------------------------------------------


def test_a_second_up_leaves_everything_as_it_is(lab: Lab) -> None:
    before = lab.variables(), lab.do("pid", DEBIAN), lab.do("pid", ON_PVE2)
    assert lab.run("up").stderr == ""
    assert (lab.variables(), lab.do("pid", DEBIAN), lab.do("pid", ON_PVE2)) == before


def test_down_leaves_nothing_although_two_ups_raced_and_a_container_is_frozen(
    tmp_path: Path,
) -> None:
    own = Lab(tmp_path)
    before = _traces(own)
    racers = [own.start("up"), own.start("up")]
    try:
        for racer in racers:
            _, stderr = racer.communicate(timeout=120)
            assert racer.returncode == 0, stderr
        namespaces = _namespaces(own)
        assert _processes_in(namespaces)
        assert _traces(own) != before
        own.do("freeze", BUSYBOX)
    finally:
        own.do("down")
    assert _traces(own) == before
    assert _processes_in(namespaces) == []
    assert own.run("status").returncode == 1


def _traces(lab: Lab) -> list[str]:
    """Everything on this machine that bears the lab's name or home."""
    links = [line.split(":")[1] for line in _output("ip", "-o", "link").splitlines()]
    name = next(
        line.split("=")[1] for line in lab.run("env").stdout.splitlines() if "LAB_NAME=" in line
    )
    cgroups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{name}-*")]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted(
        [
            *(link for link in links if name in link),
            *cgroups,
            *(mount for mount in mounts if str(lab.home) in mount),
        ]
    )


def _output(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def _namespaces(lab: Lab) -> set[str]:
    variables = lab.variables()
    kinds = ("mnt", "net", "uts", "ipc", "pid")
    own = {str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in kinds}
    found = {
        str(Path(f"/proc/{variables[f'LAB_{node}_PID']}/ns/{kind}").readlink())
        for node in ("PVE1", "PVE2")
        for kind in kinds
    }
    assert len(found) == 2 * len(kinds)
    assert not found & own
    return found


def _processes_in(namespaces: set[str]) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/ns/*"):
        try:
            if str(path.readlink()) in namespaces:
                found.append(str(path))
        except OSError:  # it has ended meanwhile
            continue
    return found


def test_up_repairs_what_killed_nodes_listeners_and_ups_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Lab(tmp_path)
    monkeypatch.setenv("LAB_HOME", str(tmp_path))
    node = from_environment().node("pve1")
    try:
        interrupted = own.start("up")
        wait_until(lambda: _holders(own) > 0, "the first node is being started")
        interrupted.kill()
        interrupted.communicate()
        own.do("up")
        assert _holders(own) == 2
        # as if it had been killed just before it noted the node that it had started
        (own.home / "nodes/pve1/pid").unlink()
        own.do("up")
        assert _holders(own) == 2
        first = own.variables()
        own.do("enter", "pve2", "--", "sh", "-c", 'kill "$(cat /run/sshd.pid)"')
        os.kill(int(first["LAB_PVE1_PID"]), signal.SIGKILL)
        assert nodes.find(node) is None, "a node that takes a moment to die counts as running"
        own.do("up")
        second = own.variables()
        assert second["LAB_PVE1_PID"] != first["LAB_PVE1_PID"]
        assert second["LAB_PVE2_PID"] == first["LAB_PVE2_PID"]
        assert own.ssh("pve1", "pct", "exec", DEBIAN, "--", "hostname").stdout == "trainer\n"
        assert own.ssh("pve1", "ssh", "pve2", "hostname").stdout == "pve2\n"
    finally:
        own.do("down")


def _holders(lab: Lab) -> int:
    """How many processes hold namespaces for nodes of this lab."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has ended meanwhile
            continue
        home = os.fsencode(lab.home / "nodes")
        count += words[0] == b"unshare" and any(word.startswith(home) for word in words)
    return count


def test_without_root_it_says_so(tmp_path: Path) -> None:
    # It may read all, as the project may lie in a directory of root's.
    reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"]
    words = ["setpriv", *nobody, *reads, str(LAB), "up"]
    environment = {**os.environ, "LAB_HOME": str(tmp_path / "lab")}
    result = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == (
        "lab: the lab needs root (namespaces, mounts, LXC): run it with sudo\n"
    )


def test_addresses_in_use_are_refused_before_anything_is_started(lab: Lab, tmp_path: Path) -> None:
    own = Lab(tmp_path)
    result = own.run("up", LAB_NET=lab.variables()["LAB_NET"])
    try:
        assert result.returncode == 1
        assert "set LAB_NET" in result.stderr
        assert own.run("status").returncode == 1
    finally:
        own.do("down")


def test_status_tells_what_runs(lab: Lab) -> None:
    lines = lab.do("status").splitlines()
    assert lines[1:7] == [
        "  101 trainer  running",
        "  102 alpine   running",
        "  103 spare    stopped",
        "  104 nopty    running",
        "  106 sleeper  running",
        f"pve2  {lab.variables()['LAB_PVE2_ADDRESS']}  up, PID {lab.variables()['LAB_PVE2_PID']}",
    ]


# --- nodes and accounts -----------------------------------------------------------------------


def test_nothing_of_the_machine_is_seen_or_touched_from_a_node(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the machine")
    assert lab.run("enter", "pve1", "--", "cat", str(tmp_path / "secret")).returncode == 1
    mark = f"/tmp/{tmp_path.name}-mark"
    lab.do("enter", "pve1", "--", "touch", mark)
    assert not Path(mark).exists()


def test_nodes_have_names_and_host_keys_of_their_own_and_share_etc_pve(lab: Lab) -> None:
    for node in ("pve1", "pve2"):
        assert lab.ssh(node, "hostname; id -un; pwd").stdout == f"{node}\nroot\n/root\n"
        members = json.loads(lab.ssh(node, "cat", "/etc/pve/.members").stdout)
        assert members["nodename"] == node
        assert sorted(members["nodelist"]) == ["pve1", "pve2"]
    variables = lab.variables()
    addresses = [variables["LAB_PVE1_ADDRESS"], variables["LAB_PVE2_ADDRESS"]]
    keys = _output("ssh-keyscan", "-t", "ed25519,ecdsa,rsa", *addresses).splitlines()
    known = Path(variables["LAB_KNOWN_HOSTS"]).read_text().splitlines()
    assert sorted(line.split()[1:] for line in keys) == sorted(line.split()[1:] for line in known)
    assert len({line.split()[2] for line in keys}) == 6
    vmlist = json.loads(lab.ssh("pve2", "cat", "/etc/pve/.vmlist").stdout)["ids"]
    assert {key: (row["node"], row["type"]) for key, row in vmlist.items()} == {
        **dict.fromkeys((DEBIAN, BUSYBOX, STOPPED, NO_PTY, SLEEPER), ("pve1", "lxc")),
        ON_PVE2: ("pve2", "lxc"),
        "200": ("pve1", "qemu"),
    }
    name = lab.ssh("pve2", "grep", "hostname", "/etc/pve/nodes/pve1/lxc/101.conf")
    assert name.stdout == "hostname: trainer\n"


def test_nodes_reach_each_other_and_serve_as_jump_hosts(lab: Lab) -> None:
    assert lab.ssh("pve1", "ssh", "pve2", "hostname").stdout == "pve2\n"
    assert lab.ssh("pve2", "-J", "pve1", "hostname").stdout == "pve2\n"


@pytest.mark.parametrize(
    ("account", "shell"),
    [
        ("ops", "/bin/bash"),
        ("ops-zsh", "/usr/bin/zsh"),
        ("ops-fish", "/usr/bin/fish"),
        ("ops-tcsh", "/usr/bin/tcsh"),
        ("ops-dash", "/usr/bin/dash"),
    ],
)
def test_accounts_may_call_pct_and_nothing_else(lab: Lab, account: str, shell: str) -> None:
    calls = ["echo $SHELL", f"sudo -n /usr/sbin/pct exec {DEBIAN} -- id -u", "sudo -n id"]
    result = lab.ssh(f"{account}@pve1", "; ".join([*calls, f"/usr/sbin/pct status {DEBIAN}"]))
    assert result.stdout == f"{shell}\n0\n"
    assert result.returncode == 255
    refusals = ["sudo: a password is required", "please run as root"]
    assert [line for line in result.stderr.splitlines() if line in refusals] == refusals


def test_sudo_that_does_not_work_says_why(lab: Lab) -> None:
    call = f"sudo -n /usr/sbin/pct status {DEBIAN}"
    assert lab.ssh("guest@pve1", call).stderr == "sudo: a password is required\n"
    assert lab.ssh("ops-tty@pve1", call).stderr == (
        "sudo: sorry, you must have a tty to run sudo\n"
    )


# --- pct --------------------------------------------------------------------------------------

_EXEC_USAGE = "pct exec <vmid> [<extra-args>] [OPTIONS]\n"
_BAD_FORMAT = "vmid: invalid format - value does not look like a valid VM ID"
_BAD_PARAMETER = "400 Parameter verification failed.\n"


@pytest.mark.parametrize(
    ("words", "code", "stdout", "stderr"),
    [
        (["exec", DEBIAN, "--", "sh", "-c", "echo out; echo err >&2"], 0, "out\n", "err\n"),
        (["exec", DEBIAN, "--", "sh", "-c", "exit 37"], 37, "", ""),
        (["exec", DEBIAN, "--", "sh", "-c", "kill -9 $$"], 137, "", ""),
        (
            ["exec", ON_PVE2, "--", "true"],
            2,
            "",
            "Configuration file 'nodes/pve1/lxc/105.conf' does not exist\n",
        ),
        (["exec", STOPPED, "--", "true"], 255, "", "container '103' not running!\n"),
        (
            ["exec", "abc", "--", "true"],
            2,
            "",
            f"{_BAD_PARAMETER}vmid: type check ('integer') failed - got 'abc'\n{_EXEC_USAGE}",
        ),
        (
            ["exec", "99", "--", "true"],
            2,
            "",
            f"{_BAD_PARAMETER}{_BAD_FORMAT}\n{_EXEC_USAGE}",
        ),
        (
            ["exec", DEBIAN, "ls", "-u"],
            2,
            "",
            f"Unknown option: u\n400 unable to parse option\n{_EXEC_USAGE}",
        ),
        (["status", DEBIAN], 0, "status: running\n", ""),
        (["status", STOPPED], 0, "status: stopped\n", ""),
        (["start", DEBIAN], 255, "", "CT 101 already running\n"),
        (["stop", STOPPED], 255, "", "CT 103 not running\n"),
    ],
)
def test_pct_answers_as_proxmox_does(
    lab: Lab, words: list[str], code: int, stdout: str, stderr: str
) -> None:
    result = lab.pct(*words)
    assert (result.returncode, result.stdout, result.stderr) == (code, stdout, stderr)


def test_pct_names_a_missing_command_and_a_missing_program(lab: Lab) -> None:
    no_command = lab.pct("exec", DEBIAN)
    assert no_command.returncode == 255
    assert no_command.stderr.startswith("missing command at ")
    no_program = lab.pct("exec", DEBIAN, "--", "/no/such")
    assert no_program.returncode == 127
    assert no_program.stderr.endswith('No such file or directory - Failed to exec "/no/such"\n')


def test_pct_lists_the_containers_of_its_node(lab: Lab) -> None:
    line = "{:<10} {:<10} {:<12} {:<20}\n".format
    assert lab.ssh("pve2", "pct", "list").stdout == (
        line("VMID", "Status", "Lock", "Name") + line(ON_PVE2, "running", "", "worker")
    )
    assert "hostname: worker\n" in lab.ssh("pve2", "pct", "config", ON_PVE2).stdout


@pytest.mark.parametrize("container", [DEBIAN, BUSYBOX])
def test_arguments_arrive_unchanged_and_are_recorded(lab: Lab, container: str) -> None:
    result = lab.pct("exec", container, "--", "printf", "%s\\0", *AWKWARD)
    assert result.stdout.split("\0")[:-1] == AWKWARD
    log = Path(lab.variables()["LAB_PVE1_LOG"], "pct.log").read_text().splitlines()
    recorded = [os.fsencode(word) for word in json.loads(log[-1])["argv"]]
    assert recorded[5:] == [os.fsencode(word) for word in AWKWARD]


def test_the_hosts_environment_is_kept_unless_told_otherwise(lab: Lab) -> None:
    kept = lab.ssh("pve1", f"MARK=1 pct exec {DEBIAN} -- env").stdout.splitlines()
    assert "MARK=1" in kept
    assert "PATH=/sbin:/bin:/usr/sbin:/usr/bin" in kept
    assert any(line.startswith("SSH_CONNECTION=") for line in kept)
    command = f"MARK=1 pct exec {DEBIAN} --keep-env 0 -- env"
    cleared = lab.ssh("pve1", command).stdout.splitlines()
    assert {line.split("=")[0] for line in cleared} == {"PATH", "container"}


def test_switches_act_at_the_next_call_and_reset_turns_them_off(lab: Lab) -> None:
    switches = Path(lab.variables()["LAB_PCT_SWITCHES"])
    (switches / "release").write_text("old\n")
    refused = lab.pct("exec", DEBIAN, "--keep-env", "0", "--", "true")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, "Unknown option: keep-env")
    (switches / "delay").write_text("1.5\n")
    begin = time.monotonic()
    assert lab.pct("status", DEBIAN).returncode == 0
    assert time.monotonic() - begin >= 1.5
    (switches / "release").unlink()
    (switches / "delay").unlink()
    assert lab.pct("exec", DEBIAN, "--keep-env", "0", "--", "true").returncode == 0


def test_another_front_end_takes_the_place_of_pct_until_it_is_undone(
    lab: Lab, tmp_path: Path
) -> None:
    front_end = tmp_path / "pct"
    front_end.write_text('#!/bin/sh\n/usr/share/lab/pct "$@"\nexit 0\n')
    lab.do("pct", str(front_end))
    try:
        assert lab.ssh("pve1", "/usr/sbin/pct", "exec", DEBIAN, "--", "false").returncode == 0
        assert lab.ssh("pve2", "/usr/sbin/pct", "exec", ON_PVE2, "--", "false").returncode == 0
    finally:
        lab.do("pct", "default")
    assert lab.ssh("pve1", "/usr/sbin/pct", "exec", DEBIAN, "--", "false").returncode == 1


def test_connections_and_sessions_can_be_counted(lab: Lab) -> None:
    log = Path(lab.variables()["LAB_PVE1_LOG"], "sshd.log")
    port = lab.ssh("pve1", "echo $SSH_CONNECTION").stdout.split()[1]
    lines = [line for line in log.read_text().splitlines() if f" port {port}" in line]
    assert len([line for line in lines if line.startswith("Connection from ")]) == 1
    assert len([line for line in lines if line.startswith("Starting session: command ")]) == 1


# --- containers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "name", "init", "unprivileged", "bash"),
    [
        (DEBIAN, "trainer", "systemd", True, True),
        (BUSYBOX, "alpine", "init", True, False),
        (NO_PTY, "nopty", "systemd", False, True),
        (ON_PVE2, "worker", "systemd", True, True),
        (SLEEPER, "sleeper", "sleep", False, True),
    ],
)
def test_containers_are_what_their_numbers_say(
    lab: Lab, container: str, name: str, init: str, *, unprivileged: bool, bash: bool
) -> None:
    script = "hostname; cat /proc/1/comm; cat /proc/self/uid_map; command -v bash || echo none"
    lines = lab.do("attach", container, "--", "sh", "-c", script).splitlines()
    assert lines[:2] == [name, init]
    assert (lines[2].split()[1] != "0") == unprivileged
    assert (lines[3] != "none") == bash
    assert lab.do("attach", container, "--", "id", "-u", "worker") == "1000\n"


def test_tmux_works_in_101_and_finds_no_pty_in_104(lab: Lab) -> None:
    session = ["sh", "-c", "tmux -L lab new-session -d 'sleep 60' && tmux -L lab kill-server"]
    assert lab.run("attach", DEBIAN, "--", *session).returncode == 0
    failed = lab.run("attach", NO_PTY, "--", *session)
    assert (failed.returncode, failed.stderr) == (
        1,
        "create window failed: fork failed: No such file or directory\n",
    )
    config = str(lab.home / "ssh/config")
    words = ["ssh", "-F", config, "-tt", "pve1", "pct", "exec", NO_PTY, "--", "tty"]
    tty = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert tty.stdout.strip() == "not a tty"


def test_uptime_is_virtual_in_101(lab: Lab) -> None:
    uptime = float(lab.do("attach", DEBIAN, "--", "cat", "/proc/uptime").split()[0])
    assert uptime < float(Path("/proc/uptime").read_text().split()[0]) - 1
    elapsed = int(lab.do("attach", DEBIAN, "--", "ps", "-o", "etimes=", "-p", "1"))
    assert elapsed > 1_000_000_000


def test_106_kills_what_takes_too_much_memory_and_lives_on(lab: Lab) -> None:
    def kills() -> int:
        script = "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events"
        text = lab.run("attach", SLEEPER, "--", "sh", "-c", script).stdout
        return next(
            int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")
        )

    before = kills()
    greedy = lab.run("attach", SLEEPER, "--", "python3", "-c", "bytearray(300 << 20)")
    assert greedy.returncode == 137
    assert kills() == before + 1


@pytest.mark.parametrize(("container", "reaps"), [(BUSYBOX, True), (SLEEPER, False)])
def test_orphans_are_reaped_in_102_and_stay_zombies_in_106(
    lab: Lab, container: str, *, reaps: bool
) -> None:
    pid = lab.do("attach", container, "--", "sh", "-c", "(sleep 0.1 & echo $!)").strip()
    read = f"cat /proc/{pid}/stat 2>/dev/null | cut -d' ' -f3"

    def state() -> str:
        return lab.do("attach", container, "--", "sh", "-c", read).strip()

    wait_until(lambda: state() in {"", "Z"}, f"{pid} has ended")
    if reaps:
        wait_until(lambda: state() == "", f"{pid} has been reaped")
    else:
        assert state() == "Z"


def test_reset_gives_a_container_an_empty_layer(lab: Lab) -> None:
    lab.do("attach", BUSYBOX, "--", "sh", "-c", "mkdir /var/lib/x; rm /etc/profile")
    lab.do("freeze", BUSYBOX)
    lab.do("reset", BUSYBOX)
    assert lab.run("attach", BUSYBOX, "--", "ls", "/var/lib/x").returncode == 1
    assert lab.run("attach", BUSYBOX, "--", "cat", "/etc/profile").returncode == 0


def test_a_frozen_container_does_not_answer_until_it_is_thawed(lab: Lab) -> None:
    lab.do("freeze", BUSYBOX)
    waiting = lab.start("attach", BUSYBOX, "--", "echo", "alive")
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.communicate(timeout=1)
    finally:
        lab.do("thaw", BUSYBOX)
    assert waiting.communicate(timeout=20)[0] == "alive\n"


def test_a_clean_stop_sends_term_and_a_hard_one_does_not(lab: Lab) -> None:
    script = "trap 'echo term >/root/how; exit' TERM; : >/root/ready; while :; do sleep 0.1; done"

    def trap_is_set() -> bool:
        return lab.run("attach", DEBIAN, "--", "test", "-e", "/root/ready").returncode == 0

    for verb, expected in (("shutdown", "term\n"), ("stop", "")):
        lab.do("attach", DEBIAN, "--", "rm", "-f", "/root/how", "/root/ready")
        process = lab.start("attach", DEBIAN, "--", "sh", "-c", script)
        wait_until(trap_is_set, "the trap is set")
        lab.do(verb, DEBIAN)
        process.communicate(timeout=20)
        assert lab.pct("status", DEBIAN).stdout == "status: stopped\n"
        lab.do("start", DEBIAN)
        assert lab.run("attach", DEBIAN, "--", "cat", "/root/how").stdout == expected


# --- faults -----------------------------------------------------------------------------------


def test_a_cut_cable_is_silent_and_leaves_the_way_round(lab: Lab) -> None:
    lab.do("cut", "pve2")
    try:
        direct = lab.ssh("pve2", "-o", "ConnectTimeout=1", "hostname")
        assert (direct.returncode, "timed out" in direct.stderr) == (255, True)
        # Nothing of it leaves by another way that the machine has.
        way = _output("ip", "route", "get", lab.variables()["LAB_PVE2_ADDRESS"])
        assert f"{lab.variables()['LAB_NAME']}-off2 " in way
        assert lab.ssh("pve2", "-J", "pve1", "hostname").stdout == "pve2\n"
        lab.do("cut", "between")
        around = lab.ssh("pve1", "ssh", "-o", "ConnectTimeout=1", "pve2", "hostname")
        assert around.returncode == 255
    finally:
        lab.do("heal", "pve2")
        lab.do("heal", "between")
    assert lab.ssh("pve2", "hostname").stdout == "pve2\n"
    assert lab.ssh("pve1", "ssh", "pve2", "hostname").stdout == "pve2\n"


def test_a_migrated_container_is_found_on_its_new_node_with_its_files(lab: Lab) -> None:
    lab.do("attach", ON_PVE2, "--", "touch", "/root/kept")
    lab.do("migrate", ON_PVE2, "pve1")
    try:
        found = lab.pct("exec", ON_PVE2, "--", "ls", "/root/kept")
        assert found.stdout == "/root/kept\n"
        assert lab.ssh("pve2", "pct", "status", ON_PVE2).returncode == 2
        assert lab.run("enter", "pve2", "--", "lxc-info", "-n", ON_PVE2).returncode == 1
        vmlist = json.loads(lab.ssh("pve2", "cat", "/etc/pve/.vmlist").stdout)
        assert vmlist["ids"][ON_PVE2]["node"] == "pve1"
    finally:
        lab.do("reset", ON_PVE2)
    assert lab.ssh("pve2", "pct", "exec", ON_PVE2, "--", "ls", "/root/kept").returncode == 2
    assert lab.ssh("pve2", "pct", "status", ON_PVE2).stdout == "status: running\n"


def test_reset_of_the_whole_lab_undoes_everything(lab: Lab, tmp_path: Path) -> None:
    front_end = tmp_path / "pct"
    front_end.write_text("#!/bin/sh\nexit 7\n")
    lab.do("pct", str(front_end))
    lab.do("cut", "pve1")
    lab.do("start", STOPPED)
    lab.do("stop", SLEEPER)
    variables = lab.variables()
    Path(variables["LAB_PCT_SWITCHES"], "delay").write_text("9\n")
    Path(variables["LAB_PVE"], "nodes/pve1/lxc/106.conf").unlink()
    assert lab.run("status").returncode == 1
    lab.do("reset")
    assert lab.run("status").returncode == 0
    assert lab.ssh("pve1", "pct", "status", STOPPED).stdout == "status: stopped\n"
    assert lab.ssh("pve1", "pct", "exec", SLEEPER, "--", "hostname").stdout == "sleeper\n"
