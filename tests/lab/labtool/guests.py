"""The containers of the lab, their configuration, and their life."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from labtool import nodes
from labtool.bases import SUBUID, Bases
from labtool.shell import LabError, attempt, run, wait_until

if TYPE_CHECKING:
    from labtool.settings import Settings

Base = Literal["debian", "debian_unprivileged", "busybox_unprivileged"]


@dataclass(frozen=True, slots=True)
class Guest:
    """A container as it is after a reset."""

    id: int
    name: str
    node: str
    base: Base
    runs: bool = True
    systemd: bool = False
    memory: int = 2048
    extra: str = ""

    @property
    def unprivileged(self) -> bool:
        return self.base != "debian"


_BUSYBOX = "lxc.init.cmd = /sbin/init\nlxc.signal.halt = SIGUSR1\nlxc.signal.reboot = SIGTERM\n"
_NO_PTY = "lxc.pty.max = 0\n"
_SLEEPER = (
    "lxc.init.cmd = /bin/sleep 1000000\n"
    "lxc.mount.auto =\n"
    "lxc.mount.auto = proc:mixed sys:mixed cgroup:ro:force\n"
    "lxc.cgroup.memory.limit_in_bytes = 96M\n"
    "lxc.cgroup2.memory.max = 96M\n"
)

GUESTS = (
    Guest(101, "trainer", "pve1", "debian_unprivileged", systemd=True),
    Guest(102, "alpine", "pve1", "busybox_unprivileged", memory=256, extra=_BUSYBOX),
    Guest(103, "spare", "pve1", "busybox_unprivileged", runs=False, memory=256, extra=_BUSYBOX),
    Guest(104, "nopty", "pve1", "debian", systemd=True, extra=_NO_PTY),
    Guest(105, "worker", "pve2", "debian_unprivileged", systemd=True),
    Guest(106, "sleeper", "pve1", "debian", memory=96, extra=_SLEEPER),
)


def guest(container_id: int) -> Guest:
    for each in GUESTS:
        if each.id == container_id:
            return each
    raise LabError(f"no container {container_id}: {', '.join(str(each.id) for each in GUESTS)}")


def prepare_layers(lab: Settings, each: Guest, bases: Bases, *, clean: bool) -> None:
    """Make the container's own layer, or a fresh one."""
    place = lab.containers / str(each.id)
    if clean:
        shutil.rmtree(place, ignore_errors=True)
    (place / "work").mkdir(parents=True, exist_ok=True)
    (place / "base").write_text(getattr(bases, each.base).name + "\n")
    owner = SUBUID if each.unprivileged else 0
    for name in ("upper", "upper/etc"):
        (place / name).mkdir(exist_ok=True)
        os.chown(place / name, owner, owner)
    # The base has the name of the machine it was built on, and the file wins over LXC's setting.
    for name, text in (
        ("hostname", f"{each.name}\n"),
        ("hosts", f"127.0.0.1 localhost\n127.0.1.1 {each.name}\n"),
    ):
        file = place / "upper/etc" / name
        if not file.exists():
            file.write_text(text)
            os.chown(file, owner, owner)


def lxc_config(lab: Settings, each: Guest, node: str) -> str:
    lines = [
        "lxc.include = /usr/share/lxc/config/common.conf",
        *(["lxc.include = /usr/share/lxc/config/userns.conf"] if each.unprivileged else []),
        f"lxc.uts.name = {each.name}",
        f"lxc.rootfs.path = dir:/var/lib/lxc/{each.id}/rootfs",
        "lxc.hook.pre-start = /usr/share/lab/mount-rootfs.sh",
        "lxc.monitor.unshare = 1",
        *(
            [f"lxc.idmap = {kind} 0 {SUBUID} 65536" for kind in ("u", "g")]
            if each.unprivileged
            else []
        ),
        "lxc.net.0.type = empty",
        f"lxc.cgroup.dir = {lab.node(node).cgroup}/{each.id}",
        f"lxc.log.file = /var/log/lxc-{each.id}.log",
        # WARN writes a line for every attach
        "lxc.log.level = ERROR",
        "lxc.apparmor.profile = unconfined",
    ]
    return "\n".join(lines) + "\n" + each.extra


def configure(lab: Settings, each: Guest, node: str, node_pid: int) -> None:
    """Let a node know the container."""
    directory = nodes.root(node_pid) / f"var/lib/lxc/{each.id}"
    (directory / "rootfs").mkdir(parents=True, exist_ok=True)
    (directory / "config").write_text(lxc_config(lab, each, node))


def forget(each: Guest, node_pid: int) -> None:
    """Let a node know the container no longer."""
    (nodes.root(node_pid) / f"var/lib/lxc/{each.id}/config").unlink(missing_ok=True)


def running_ids(node_pid: int) -> set[int]:
    """The containers of a node whose monitor listens on its command socket."""
    found = set()
    for line in Path(f"/proc/{node_pid}/net/unix").read_text().splitlines():
        words = line.split()[-1].split("/")
        if words[:-2] == ["@", "var", "lib", "lxc"] and words[-1] == "command":
            found.add(int(words[-2]))
    return found


def init_pid(node_pid: int, each: Guest) -> int:
    """The PID of the container's first process in the machine's own PID namespace."""
    inner = run(nodes.inside(node_pid, "lxc-info", "-n", str(each.id), "-p", "-H")).strip()
    if not inner:
        raise LabError(f"container {each.id} does not run")
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = status.read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            continue
        numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
        # as seen from the machine, from the node, from the container
        if numbers[1:] == [inner, "1"] and _same_pid_namespace(int(numbers[0]), node_pid, inner):
            return int(numbers[0])
    raise LabError(f"container {each.id} has just ended")


def _same_pid_namespace(pid: int, node_pid: int, inner: str) -> bool:
    theirs = nodes.root(node_pid) / "proc" / inner / "ns/pid"
    return Path(f"/proc/{pid}/ns/pid").readlink() == theirs.readlink()


def start(node_pid: int, each: Guest) -> None:
    """Start it and wait until it takes commands."""
    result = attempt(nodes.inside(node_pid, "lxc-start", "-n", str(each.id)))
    if result.returncode != 0:
        log = nodes.root(node_pid) / f"var/log/lxc-{each.id}.log"
        said = log.read_text(errors="replace")[-2000:] if log.exists() else result.stderr
        raise LabError(f"container {each.id} does not start:\n{said}")


def wait_ready(node_pid: int, each: Guest) -> None:
    """Wait until its init has finished booting: systemd empties /tmp and /run on the way."""
    if not each.systemd:
        return
    question = ["lxc-attach", "-n", str(each.id), "--", "systemctl", "is-system-running", "--wait"]
    wait_until(
        lambda: (
            attempt(nodes.inside(node_pid, *question)).stdout.strip() in {"running", "degraded"}
        ),
        seconds=30,
        what=f"systemd in container {each.id} has booted",
    )


def freeze(node_pid: int, container_id: int) -> None:
    run(nodes.inside(node_pid, "lxc-freeze", "-n", str(container_id)))


def thaw(node_pid: int, container_id: int) -> None:
    """Thaw it; nothing if it is not frozen."""
    attempt(nodes.inside(node_pid, "lxc-unfreeze", "-n", str(container_id)))


def stop(node_pid: int, container_id: int, *, clean: bool = False) -> None:
    """Stop it at once, or by asking its init (20 s at most)."""
    thaw(node_pid, container_id)
    how = ["--timeout", "20"] if clean else ["--kill"]
    run(nodes.inside(node_pid, "lxc-stop", "-n", str(container_id), *how))
