"""Starting, finding, entering and ending a node: a set of namespaces with a PID 1 in it."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from labtool import cgroups, network
from labtool.shell import LabError, run, wait_until

if TYPE_CHECKING:
    from labtool.bases import Bases
    from labtool.settings import NodePlace

HERE = Path(__file__).resolve().parent
# What outlives the lab command must not keep the cgroup of its caller busy.
_LEAVE_CGROUPS = (
    "for procs in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do"
    ' if [ -e "$procs" ]; then echo $$ >"$procs" || :; fi; done'
)
NODE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def start(node: NodePlace, bases: Bases) -> int:
    """Start a prepared node; return the PID of its first process as seen from the machine."""
    network.check_addresses(node)
    errors = node.home / "init.log"
    lower = f"{bases.node_layer}:{bases.debian}"
    lab = node.lab
    namespaces = ["--mount", "--net", "--uts", "--ipc", "--pid"]
    with errors.open("wb") as stderr:
        holder = subprocess.Popen(
            [
                *("unshare", *namespaces, "--fork", "--kill-child", "--propagation", "private"),
                *("sh", str(HERE / "node/node-init.sh")),
                *(node.name, str(node.home), str(lab.home), str(lab.cache), lower),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd="/",
            env={"PATH": NODE_PATH},
            start_new_session=True,
        )
    assert holder.stdout
    if holder.stdout.readline() != b"ready\n":
        holder.kill()
        holder.wait()
        raise LabError(f"{node.name} did not start: {errors.read_text(errors='replace').strip()}")
    holder.stdout.close()
    pid = _children(holder.pid)[0]
    (node.home / "pid").write_text(f"{pid} {_start_ticks(pid)}\n")
    network.connect_client(node, pid)
    return pid


def find(node: NodePlace) -> int | None:
    """The PID of the node's first process, or None if the node does not run, or is just dying."""
    pid = _first_process(node)
    return pid if pid is not None and not _is_dying(pid) else None


def _first_process(node: NodePlace) -> int | None:
    try:
        pid, ticks = (node.home / "pid").read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return int(pid) if _start_ticks(int(pid)) == ticks else None


def require(node: NodePlace) -> int:
    pid = find(node)
    if pid is None:
        raise LabError(f"{node.name} is not up: run lab up")
    return pid


def stop(node: NodePlace) -> None:
    """End the node and all that is in it; safe if it does not run, or only in part."""
    cgroups.thaw(node.cgroup)
    wait_until(lambda: _is_gone(node), seconds=10, what=f"{node.name} has ended")
    (node.home / "pid").unlink(missing_ok=True)
    network.disconnect_client(node)
    cgroups.remove(node.cgroup)


def _is_gone(node: NodePlace) -> bool:
    """Kill what is left; the end of a node's first process is the end of all in it."""
    everything = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    holders = [pid for pid in everything if _holds(pid, node)]
    firsts = [child for holder in holders for child in _children(holder)]
    pid = _first_process(node)
    left = {*(firsts or holders), *([pid] if pid else [])}
    for each in left:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    return not left


def inside(pid: int, *command: str) -> list[str]:
    """The argument vector that runs a command in a node, as root, with a plain environment."""
    return [
        *("nsenter", "--target", str(pid), "--mount", "--net", "--uts", "--ipc", "--pid", "--"),
        *("env", "-i", f"PATH={NODE_PATH}", "HOME=/root", "USER=root", "LANG=C.UTF-8", *command),
    ]


def root(pid: int) -> Path:
    """The node's root directory, as a path that works from outside."""
    return Path(f"/proc/{pid}/root")


def ensure_sshd(node: NodePlace, pid: int) -> None:
    """Start the listener if a test has ended it, and wait until it answers."""
    if not _sshd_listens(pid):
        run(inside(pid, "sh", "-c", f"{_LEAVE_CGROUPS}; exec /usr/sbin/sshd -E /var/log/sshd.log"))
    wait_until(lambda: _sshd_listens(pid), seconds=5, what=f"sshd of {node.name} listens")


def _sshd_listens(pid: int) -> bool:
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    # local address 0.0.0.0:22, state 0A = LISTEN
    return any(line.split()[1:4:2] == ["00000000:0016", "0A"] for line in lines)


def _start_ticks(pid: int) -> str | None:
    """What tells this process from a later one with its PID; None if it has ended."""
    fields = _stat(pid)
    return None if fields[:1] in ([], ["Z"]) else fields[19]


def _is_dying(pid: int) -> bool:
    """Whether it was killed, but waits for the end of all others in its PID namespace."""
    fields = _stat(pid)
    if not fields:
        return True
    exiting = int(fields[6]) & 0x4  # PF_EXITING of the kernel's flags
    killed = int(fields[28]) & 1 << (signal.SIGKILL - 1)  # pending signals
    return bool(exiting or killed)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state (field 3) on; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _holds(pid: int, node: NodePlace) -> bool:
    """Whether this is the unshare that waits for the node's first process."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return words[0] == b"unshare" and str(node.home).encode() in words


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
