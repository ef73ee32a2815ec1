"""The root file systems that nodes and containers stand on, built once and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from labtool.shell import LabError, locked, run, run_logged, say

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).resolve().parent
SUBUID = 100_000  # where an unprivileged container's root is, as on Proxmox
WORKER_UID = 1000

_DEBIAN_PACKAGES = ("procps", "systemd-sysv", "python3", "tmux", "iproute2")
_NODE_PACKAGES = (
    "lxc",
    "lxcfs",
    "openssh-server",
    "busybox-static",
    "uidmap",
    "sudo",
    "zsh",
    "fish",
    "tcsh",
    "nftables",
)
# Units that cannot work in a container, or would wake up in the middle of a measurement.
_MASKED_UNITS = (
    "sys-kernel-debug.mount",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "fstrim.timer",
)
_RECIPE = 1  # count up when what is built changes


@dataclass(frozen=True, slots=True)
class Bases:
    """Read-only directories that serve as lower layers of overlays."""

    debian: Path
    debian_unprivileged: Path
    busybox_unprivileged: Path
    node_layer: Path


def ensure_bases(cache: Path, mirror: str | None) -> Bases:
    """Build what is not in the cache yet (about a minute); a second caller waits for the first."""
    recipe = repr((_RECIPE, _DEBIAN_PACKAGES, _NODE_PACKAGES, _MASKED_UNITS, SUBUID))
    key = hashlib.sha256(recipe.encode()).hexdigest()[:8]
    bases = Bases(
        debian=cache / f"debian-{key}",
        debian_unprivileged=cache / f"debian-unprivileged-{key}",
        busybox_unprivileged=cache / f"busybox-unprivileged-{key}",
        node_layer=cache / f"node-{key}",
    )
    if bases.busybox_unprivileged.is_dir():  # the last one built
        return bases
    with locked(cache / "lock"):
        log = cache / "build.log"
        _build_once(bases.debian, partial(_build_debian, mirror=mirror, log=log))
        _build_once(bases.debian_unprivileged, partial(_build_shifted, base=bases.debian, log=log))
        _build_once(bases.node_layer, partial(_build_node, base=bases.debian, log=log))
        _build_once(
            bases.busybox_unprivileged,
            partial(_build_busybox, node_layer=bases.node_layer, log=log),
        )
    return bases


def _build_once(target: Path, build: Callable[[Path], None]) -> None:
    if target.is_dir():
        return
    unfinished = target.with_name(f"unfinished-{target.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    build(unfinished)
    unfinished.rename(target)


def _build_debian(target: Path, *, mirror: str | None, log: Path) -> None:
    say("building the Debian base (about half a minute, once)")
    run_logged(
        [
            "mmdebstrap",
            "--variant=minbase",
            f"--include={','.join(_DEBIAN_PACKAGES)}",
            "--dpkgopt=force-unsafe-io",
            "bookworm",
            str(target),
            mirror or _mirror_of_this_machine(),
        ],
        log,
    )
    for unit in _MASKED_UNITS:
        (target / "etc/systemd/system" / unit).symlink_to("/dev/null")
    (target / "etc/resolv.conf").write_text("")
    _add_line(target / "etc/passwd", f"worker:x:{WORKER_UID}:{WORKER_UID}::/home/worker:/bin/bash")
    _add_line(target / "etc/shadow", "worker:*:19000:0:99999:7:::")
    _add_line(target / "etc/group", f"worker:x:{WORKER_UID}:")
    _make_home(target / "home/worker", target / "etc/skel")


def _mirror_of_this_machine() -> str:
    """Where this machine itself takes Debian's packages from."""
    listed = run(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)"])
    for line in listed.splitlines():
        match line.split():
            case [site, "bookworm" | "trixie" | "forky" | "sid", "main"]:
                return site
            case _:
                pass
    raise LabError("apt knows no Debian mirror here: name one, LAB_MIRROR=URL")


def _build_node(target: Path, *, base: Path, log: Path) -> None:
    say("installing sshd, LXC and the login shells of the nodes (a quarter of a minute, once)")
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    script = str(HERE / "node/build-node.sh")
    run_logged([*namespaces, "sh", script, str(base), str(target), *_NODE_PACKAGES], log)


def _build_shifted(target: Path, *, base: Path, log: Path) -> None:
    """Copy a root file system to where the ids of unprivileged containers are."""
    say("copying it for unprivileged containers")
    run_logged(["cp", "-a", str(base), str(target)], log)
    _shift(target)


def _shift(root: Path) -> None:
    for directory, names, files in os.walk(root):
        for name in (".", *names, *files):
            path = Path(directory, name)
            status = path.lstat()
            if status.st_uid >= SUBUID:
                continue
            os.lchown(path, status.st_uid + SUBUID, status.st_gid + SUBUID)
            # chown drops the setuid and setgid bits
            if status.st_mode & (stat.S_ISUID | stat.S_ISGID) and not path.is_symlink():
                path.chmod(stat.S_IMODE(status.st_mode))


def _build_busybox(target: Path, *, node_layer: Path, log: Path) -> None:
    """A container without bash: busybox, its links, and the few files it reads."""
    say("building the busybox base")
    for name in ("bin", "sbin", "usr/bin", "usr/sbin", "dev", "proc", "sys", "run", "var/lib"):
        (target / name).mkdir(parents=True)
    for name, mode in (("tmp", 0o1777), ("var/tmp", 0o1777), ("root", 0o700)):
        (target / name).mkdir()
        (target / name).chmod(mode)
    busybox = target / "bin/busybox"
    shutil.copy2(node_layer / "usr/bin/busybox", busybox)
    run_logged(["chroot", str(target), "/bin/busybox", "--install", "-s"], log)
    busybox.chmod(0o4755)  # su is a link to it

    etc = target / "etc"
    etc.mkdir()
    (etc / "passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\n"
        f"worker:x:{WORKER_UID}:{WORKER_UID}::/home/worker:/bin/sh\n"
        "nobody:x:65534:65534:nobody:/:/bin/false\n"
    )
    (etc / "group").write_text(f"root:x:0:\ntty:x:5:\nworker:x:{WORKER_UID}:\nnogroup:x:65534:\n")
    (etc / "shadow").write_text("root:*:19000::::::\nworker:*:19000::::::\n")
    (etc / "shadow").chmod(0o640)
    (etc / "profile").write_text("export PATH=/usr/local/sbin:/usr/local/bin:$PATH\n")
    (etc / "inittab").write_text("::sysinit:/bin/true\n::shutdown:/bin/true\n")
    (etc / "os-release").write_text('ID=busybox\nPRETTY_NAME="BusyBox 1.35"\n')
    _make_home(target / "home/worker", None)
    _shift(target)


def _add_line(path: Path, line: str) -> None:
    with path.open("a") as file:
        file.write(line + "\n")


def _make_home(home: Path, skeleton: Path | None) -> None:
    home.mkdir(parents=True)
    if skeleton:
        for source in skeleton.iterdir():
            shutil.copy2(source, home / source.name)
    for path in (home, *home.iterdir()):
        os.lchown(path, WORKER_UID, WORKER_UID)
    home.chmod(0o700)
