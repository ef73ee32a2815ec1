"""Names, addresses and places of one lab, all derived from a few environment variables."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from labtool.shell import LabError

DEFAULT_HOME = "/var/cache/launchpad-lab"
DEFAULT_NAME = "lplab"
NODE_NAMES = ("pve1", "pve2")


@dataclass(frozen=True, slots=True)
class Settings:
    """One lab; two labs with different names and homes run side by side."""

    name: str
    home: Path
    cache: Path
    net: str  # the first three numbers of a /24, such as 10.120.7
    debian_mirror: str | None

    @property
    def client_address(self) -> str:
        return f"{self.net}.1"

    @property
    def client_address6(self) -> str:
        return f"{self._prefix6}::1"

    @property
    def _prefix6(self) -> str:
        _, second, third = (int(number) for number in self.net.split("."))
        return f"fd4c:5044:{second:x}:{third:x}"

    @property
    def ssh(self) -> Path:
        return self.home / "ssh"

    @property
    def ssh_config(self) -> Path:
        return self.ssh / "config"

    @property
    def pve(self) -> Path:
        """What every node sees as /etc/pve."""
        return self.home / "pve"

    @property
    def pct(self) -> Path:
        """Switches of the pct stand-in: `delay`, `release`."""
        return self.home / "pct"

    @property
    def containers(self) -> Path:
        return self.home / "containers"

    @property
    def nodes(self) -> tuple[NodePlace, ...]:
        return tuple(NodePlace(self, name) for name in NODE_NAMES)

    def node(self, name: str) -> NodePlace:
        if name not in NODE_NAMES:
            raise LabError(f"no node {name!r}: the lab has {', '.join(NODE_NAMES)}")
        return NodePlace(self, name)


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where one node lives: its directories, its link, its addresses."""

    lab: Settings
    name: str

    @property
    def home(self) -> Path:
        return self.lab.home / "nodes" / self.name

    @property
    def log(self) -> Path:
        return self.home / "log"

    @property
    def link(self) -> str:
        """The client's end of the cable."""
        return f"{self.lab.name}-{self.name}"

    @property
    def nowhere(self) -> str:
        """The client's link into which what is meant for a node goes when its cable is cut."""
        return f"{self.lab.name}-off{NODE_NAMES.index(self.name) + 1}"

    @property
    def cgroup(self) -> str:
        return f"{self.lab.name}-{self.name}"

    @property
    def _number(self) -> int:
        return 11 + NODE_NAMES.index(self.name)

    @property
    def address(self) -> str:
        return f"{self.lab.net}.{self._number}"

    @property
    def address6(self) -> str:
        return f"{self.lab._prefix6}::{self._number}"

    @property
    def other(self) -> NodePlace:
        return NodePlace(self.lab, NODE_NAMES[1 - NODE_NAMES.index(self.name)])


def from_environment() -> Settings:
    """Read LAB_HOME, LAB_CACHE, LAB_NAME, LAB_NET, LAB_MIRROR; raise LabError for unusable ones."""
    home = os.environ.get("LAB_HOME", DEFAULT_HOME)
    cache = os.environ.get("LAB_CACHE", f"{home}/cache")
    for variable, path in (("LAB_HOME", home), ("LAB_CACHE", cache)):
        # Both end up in mount options and in an ssh_config, where these have a meaning.
        if not re.fullmatch(r"/[A-Za-z0-9_./+@-]*[A-Za-z0-9_+@-]", path):
            raise LabError(
                f"{variable}={path!r} must be an absolute path of letters, digits and _./+@-"
            )
    name = os.environ.get("LAB_NAME", _name_for(home))
    if not re.fullmatch(r"[a-z][a-z0-9]{0,8}", name):
        raise LabError(f"LAB_NAME={name!r} must be 1 to 9 of a-z and 0-9 (interfaces bear it)")
    net = os.environ.get("LAB_NET", _net_for(name))
    if not re.fullmatch(r"10(\.(25[0-5]|2[0-4]\d|1?\d?\d)){2}", net):
        raise LabError(f"LAB_NET={net!r} must look like 10.120.7, the first three of a /24")
    mirror = os.environ.get("LAB_MIRROR")
    return Settings(name=name, home=Path(home), cache=Path(cache), net=net, debian_mirror=mirror)


def _name_for(home: str) -> str:
    if home == DEFAULT_HOME:
        return DEFAULT_NAME
    return "lp" + hashlib.sha256(home.encode()).hexdigest()[:6]


def _net_for(name: str) -> str:
    digest = hashlib.sha256(name.encode()).digest()
    return f"10.{100 + digest[0] % 100}.{digest[1]}"
