"""What the machine itself must have; everything else lives in the lab's own root file systems."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from labtool.shell import LabError, attempt, say

# program it is known by -> Debian package
_NEEDED = {
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}


def ensure_packages() -> None:
    """Install what is missing; LabError that says what to install where this cannot be done."""
    missing = sorted({package for program, package in _NEEDED.items() if not shutil.which(program)})
    if not missing:
        return
    command = f"apt-get install -y --no-install-recommends {' '.join(missing)}"
    if not shutil.which("apt-get"):
        raise LabError(f"the lab needs Debian; on this system install: {' '.join(missing)}")
    say(f"installing {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["apt-get", "update"], command.split()):
        result = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        if result.returncode != 0:
            raise LabError(f"{' '.join(words)} failed:\n{result.stderr.strip()[-2000:]}")


def ensure_root() -> None:
    if os.geteuid() != 0:
        raise LabError("the lab needs root (namespaces, mounts, LXC): run it with sudo")


def ensure_namespaces() -> None:
    """LabError if this machine does not give root what LXC needs."""
    result = attempt(["unshare", "--mount", "--net", "--pid", "--fork", "true"])
    if result.returncode != 0:
        raise LabError(
            "this machine does not let root make namespaces (a container without privileges?): "
            + result.stderr.strip()
        )
    if not Path("/sys/fs/cgroup").is_dir() or not _cgroups_are_mounted():
        raise LabError("no cgroups are mounted under /sys/fs/cgroup; LXC cannot work without")


def _cgroups_are_mounted() -> bool:
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return any(line.split()[1].startswith("/sys/fs/cgroup") for line in mounts)
