"""What else one would start a program in a container with: Ansible, pyinfra, Fabric, nq.

All go the same way to the same container, with the same key, in an environment that only the
benchmarks see, in the versions named here. Of the package `ansible` only the collection is unpacked
that has the connection plugin for pct (all of them are half a gigabyte). nq is a program of Debian
that runs in the container: its package is put in for the benchmarks, and taken out again.
"""

from __future__ import annotations

import itertools
import os
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.environment import cache, environment, run, say
from benchmarks.ways import SLEEP, Call, one_liner
from support.lab import DEBIAN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from benchmarks.ways import Ways
    from support.lab import Lab

REQUIREMENTS = ("ansible-core==2.19.14", "pyinfra==3.10.0", "fabric==3.2.3")
COLLECTIONS = "ansible==12.3.0"
NQ = "nq"

_CONFIG = """\
[defaults]
inventory = {place}/inventory
collections_path = {collections}
deprecation_warnings = False

[connection]
pipelining = True

[paramiko_connection]
look_for_keys = False
"""

_INVENTORY = """\
[containers]
trainer ansible_host={address} proxmox_vmid={ctid}

[containers:vars]
ansible_connection=community.proxmox.proxmox_pct_remote
ansible_user=root
ansible_private_key_file={key}
ansible_python_interpreter=/usr/bin/python3
"""

# One start, and one question whether it has ended.
_PLAY = """\
- hosts: trainer
  gather_facts: false
  tasks:
    - ansible.builtin.command: {program}
      async: 3600
      poll: 0
      register: job
    - ansible.builtin.async_status:
        jid: "{{{{ job.ansible_job_id }}}}"
"""


@dataclass(slots=True)
class Peers:
    """Starts of the same program by others, by name. Use :meth:`close` at the end."""

    ways: Ways
    place: Path
    _tools: Path = field(init=False)
    _environment: Mapping[str, str] = field(init=False)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self._tools = environment("peers", REQUIREMENTS).parent
        self._environment = _configure(self.lab, self.place)
        _put_nq_in(self.lab)

    @property
    def lab(self) -> Lab:
        """Where all of it happens."""
        return self.ways.lab

    def close(self) -> None:
        """Take out of the container what they left there."""
        self.lab.run(DEBIAN, "dpkg", "--purge", NQ)
        self.lab.sh(DEBIAN, "rm -rf /root/.ansible /root/.ansible_async /tmp/bench-nq.*")

    def ansible_start(self, program: str = SLEEP) -> Call:
        """An asynchronous task, and no question about it."""
        task = ["-B", "3600", "-P", "0", "-m", "ansible.builtin.command", "-a", program]
        return self._call("ansible", "trainer", *task)

    def ansible_start_and_status(self) -> Call:
        """An asynchronous task and one ``async_status``, in one play."""
        return self._call("ansible-playbook", "play.yml")

    def pyinfra(self, program: str = SLEEP) -> Call:
        """The typed line, by pyinfra."""
        how = ("-y", "--data", f"ssh_config_file={self.lab.ssh_config}")
        return self._call("pyinfra", *how, "@ssh/pve1", "exec", "--", one_liner(program))

    def fabric(self, program: str = SLEEP) -> Call:
        """The typed line, by Fabric."""
        where = ("-S", str(self.lab.ssh_config), "-H", "pve1")
        return self._call("fab", *where, "--", one_liner(program))

    def nq(self, program: str = SLEEP) -> Call:
        """The typed line with nq, which is in the container and does the detaching."""
        # A queue of its own: two in one queue would wait for each other.
        queue = f"NQDIR=/tmp/bench-nq.{next(self._numbers)}"
        pct = ("/usr/sbin/pct", "exec", str(DEBIAN), "--")
        return self.ways.ssh("pve1", *pct, "env", queue, NQ, *program.split())

    def _call(self, tool: str, *words: str) -> Call:
        return Call([str(self._tools / tool), *words], self._environment, self.place)


def _configure(lab: Lab, place: Path) -> Mapping[str, str]:
    """Files and environment that all of them need."""
    known = place / "home/.ssh/known_hosts"
    known.parent.mkdir(parents=True)
    known.write_bytes((lab.settings.ssh / "known_hosts").read_bytes())
    collections = _collections()
    (place / "ansible.cfg").write_text(_CONFIG.format(place=place, collections=collections))
    address, key = lab.settings.node("pve1").address, lab.settings.ssh / "id_ed25519"
    inventory = _INVENTORY.format(address=address, ctid=DEBIAN, key=key)
    (place / "inventory").write_text(inventory)
    (place / "play.yml").write_text(_PLAY.format(program=SLEEP))
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(place / "home"),
        "LANG": "C.UTF-8",
        "ANSIBLE_CONFIG": str(place / "ansible.cfg"),
    }


def _collections() -> Path:
    """Where the collection is unpacked that can reach a container through pct."""
    place = cache() / COLLECTIONS
    if not place.exists():
        say(f"unpacking the collection community.proxmox of {COLLECTIONS} (once)")
        wheels = cache() / "wheels"
        pip = [str(cache() / "peers/bin/python"), "-m", "pip", "download", "--quiet"]
        run([*pip, "--disable-pip-version-check", "--no-deps", "-d", str(wheels), COLLECTIONS])
        (wheel,) = wheels.glob("ansible-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            part = "ansible_collections/community/proxmox/"
            names = [name for name in archive.namelist() if name.startswith(part)]
            new = cache() / "new"
            archive.extractall(new, names)
        wheel.unlink()
        new.rename(place)
    return place


def _put_nq_in(lab: Lab) -> None:
    packages = cache() / "packages"
    packages.mkdir(exist_ok=True)
    if not list(packages.glob("nq_*.deb")):
        say("fetching the package nq (once)")
        run(["apt-get", "update", "-qq"])
        run(["apt-get", "download", "-qq", NQ], cwd=packages)
    (package,) = packages.glob("nq_*.deb")
    install = "cat >/tmp/bench-nq.deb && dpkg --install /tmp/bench-nq.deb && rm /tmp/bench-nq.deb"
    lab.run(DEBIAN, "sh", "-c", install, stdin=package.read_bytes())
