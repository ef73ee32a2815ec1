"""/etc/pve: the cluster's file system, one directory that both nodes see."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from labtool import access
from labtool.guests import GUESTS, Guest
from labtool.settings import NODE_NAMES

if TYPE_CHECKING:
    from labtool.settings import Settings

VM_ID, VM_NODE, VM_NAME = 200, "pve1", "desktop"


def write(lab: Settings) -> None:
    """Write /etc/pve as it is after a reset, in place: the nodes have it mounted."""
    lab.pve.mkdir(parents=True, exist_ok=True)
    for path in lab.pve.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    for node in NODE_NAMES:
        for kind in ("lxc", "qemu-server"):
            (lab.pve / "nodes" / node / kind).mkdir(parents=True)
    # Which node this is differs between the nodes: the links end in their own /run.
    (lab.pve / "local").symlink_to("/run/lab/pve/local")
    (lab.pve / "lxc").symlink_to("local/lxc")
    (lab.pve / "qemu-server").symlink_to("local/qemu-server")
    (lab.pve / ".members").symlink_to("/run/lab/pve/members")
    for guest in GUESTS:
        path = lab.pve / "nodes" / guest.node / "lxc" / f"{guest.id}.conf"
        path.write_text(_container_config(guest))
    (lab.pve / "nodes" / VM_NODE / "qemu-server" / f"{VM_ID}.conf").write_text(
        f"boot: order=scsi0\ncores: 2\nmemory: 2048\nname: {VM_NAME}\nostype: l26\n"
    )
    _write_known_hosts(lab)
    _close_to_others(lab)
    write_vmlist(lab)


def _write_known_hosts(lab: Settings) -> None:
    """The nodes' RSA keys: a file for each node (releases from 8.2 on), and one for all (older)."""
    lines = []
    for node in lab.nodes:
        public = access.host_keys(lab, node.name) / "ssh_host_rsa_key.pub"
        key = " ".join(public.read_text().split()[:2])
        (lab.pve / "nodes" / node.name / "ssh_known_hosts").write_text(f"{node.name} {key}\n")
        lines += [f"{node.name} {key}\n", f"{node.address} {key}\n"]
    (lab.pve / "priv").mkdir()
    (lab.pve / "priv/known_hosts").write_text("".join(lines))


def _close_to_others(lab: Settings) -> None:
    """As pmxcfs does it: others may list directories, and read no file."""
    for path in lab.pve.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o640)
    for path in (lab.pve / "priv", lab.pve / "priv/known_hosts"):
        path.chmod(0o700 if path.is_dir() else 0o600)


def write_vmlist(lab: Settings) -> None:
    """Write .vmlist from where the configuration files are."""
    ids: dict[str, dict[str, str | int]] = {}
    for kind, directory in (("lxc", "lxc"), ("qemu", "qemu-server")):
        for path in lab.pve.glob(f"nodes/*/{directory}/*.conf"):
            ids[path.stem] = {"node": path.parts[-3], "type": kind, "version": 5}
    new = lab.pve / ".vmlist.new"
    rows = ",\n".join(f'"{key}": {json.dumps(ids[key])}' for key in sorted(ids))
    new.write_text(f'{{\n"version": 8,\n"ids": {{\n{rows}}}\n\n}}\n')
    new.chmod(0o640)
    new.rename(lab.pve / ".vmlist")


def node_of(lab: Settings, guest: Guest) -> str:
    """The node on which the container is configured now."""
    for node in NODE_NAMES:
        if (lab.pve / "nodes" / node / "lxc" / f"{guest.id}.conf").exists():
            return node
    return guest.node


def move(lab: Settings, guest: Guest, node: str) -> None:
    """Move the configuration file to another node, which is what a migration is here."""
    source = lab.pve / "nodes" / node_of(lab, guest) / "lxc" / f"{guest.id}.conf"
    source.rename(lab.pve / "nodes" / node / "lxc" / source.name)
    write_vmlist(lab)


def _container_config(guest: Guest) -> str:
    lines = {
        "arch": "amd64",
        "cores": "2",
        "hostname": guest.name,
        "memory": str(guest.memory),
        "ostype": "debian" if "debian" in guest.base else "unmanaged",
        "rootfs": f"local:{guest.id}/vm-{guest.id}-disk-0.raw,size=8G",
        "swap": "0",
    }
    if guest.unprivileged:
        lines["unprivileged"] = "1"
    return "".join(f"{key}: {value}\n" for key, value in lines.items())
