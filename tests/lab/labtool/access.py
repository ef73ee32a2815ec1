"""Keys, host keys, known_hosts and the ssh_config with which the nodes are reached."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from labtool.shell import run

if TYPE_CHECKING:
    from pathlib import Path

    from labtool.settings import Settings

KEY_TYPES = ("ed25519", "ecdsa", "rsa")


def ensure_access(lab: Settings) -> None:
    """Make the keys once; write the files that name addresses every time."""
    lab.ssh.mkdir(parents=True, exist_ok=True)
    lab.ssh.chmod(0o700)
    _ensure_key(client_key(lab), "ed25519", "launchpad lab client")
    _ensure_key(node_key(lab), "ed25519", "launchpad lab node")
    for node in lab.nodes:
        host_keys(lab, node.name).mkdir(exist_ok=True)
        for kind in KEY_TYPES:
            _ensure_key(host_keys(lab, node.name) / f"ssh_host_{kind}_key", kind, node.name)
    (lab.ssh / "known_hosts").write_text(known_hosts(lab))
    lab.ssh_config.write_text(_ssh_config(lab))


def client_key(lab: Settings) -> Path:
    return lab.ssh / "id_ed25519"


def node_key(lab: Settings) -> Path:
    """The key with which root of one node reaches the other."""
    return lab.ssh / "node_ed25519"


def host_keys(lab: Settings, node: str) -> Path:
    return lab.ssh / f"host-{node}"


def known_hosts(lab: Settings) -> str:
    lines = []
    for node in lab.nodes:
        for kind in KEY_TYPES:
            public = (host_keys(lab, node.name) / f"ssh_host_{kind}_key.pub").read_text().split()
            lines.append(f"{node.name},{node.address},{node.address6} {public[0]} {public[1]}\n")
    return "".join(lines)


def _ensure_key(path: Path, kind: str, comment: str) -> None:
    if path.exists() and path.with_name(path.name + ".pub").exists():
        return
    path.unlink(missing_ok=True)
    size = ["-b", "2048"] if kind == "rsa" else []  # larger ones take seconds to make
    run(["ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-C", comment, "-f", str(path)])


def _ssh_config(lab: Settings) -> str:
    return "".join(
        f"Host {node.name}\n"
        f"  HostName {node.address}\n"
        "  Port 22\n"
        "  User root\n"
        f"  IdentityFile {client_key(lab)}\n"
        "  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {lab.ssh / 'known_hosts'}\n"
        "  GlobalKnownHostsFile /dev/null\n"
        "  StrictHostKeyChecking yes\n"
        for node in lab.nodes
    )


def install_on_node(lab: Settings, node: str, upper: Path) -> None:
    """Put host keys, root's own key and the authorized keys into a node's /etc/ssh and /root."""
    for kind in KEY_TYPES:
        source = host_keys(lab, node) / f"ssh_host_{kind}_key"
        for suffix in ("", ".pub"):
            shutil.copy2(f"{source}{suffix}", upper / "etc/ssh")
    dot_ssh = upper / "root/.ssh"
    dot_ssh.mkdir(mode=0o700, parents=True)
    shutil.copy2(node_key(lab), dot_ssh / "id_ed25519")
    (dot_ssh / "known_hosts").write_text(known_hosts(lab))
    authorized = "".join(
        key.with_name(key.name + ".pub").read_text() for key in (client_key(lab), node_key(lab))
    )
    (dot_ssh / "authorized_keys").write_text(authorized)
    (dot_ssh / "authorized_keys").chmod(0o600)
