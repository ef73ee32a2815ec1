"""What is particular to a node's root file system: accounts, sshd, sudo, names."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labtool import access
from labtool.bases import SUBUID

if TYPE_CHECKING:
    from labtool.bases import Bases
    from labtool.settings import NodePlace, Settings

HERE = Path(__file__).resolve().parent

_SSHD_CONFIG = """\
Include /etc/ssh/sshd_config.d/*.conf
HostKey /etc/ssh/ssh_host_ed25519_key
HostKey /etc/ssh/ssh_host_ecdsa_key
HostKey /etc/ssh/ssh_host_rsa_key
PermitRootLogin yes
UsePAM no
AcceptEnv LANG LC_*
PrintMotd no
LogLevel VERBOSE
Subsystem sftp /usr/lib/openssh/sftp-server
"""

# The password of `guest` is "guest".
_GUEST_PASSWORD = (
    "$6$launchpadlab$"
    "g1Zb22gUgyXkEbuQ2MidhgnFdNLNFjQ7j2wPjsanyOfIXxh7GftY4Bph5ORf"
    "LCmuklhsVbpxaxM1cfi0v0.X7."
)


@dataclass(frozen=True, slots=True)
class Account:
    """Someone beside root who may log in; `sudo` is the tail of a sudoers rule."""

    name: str
    uid: int
    login_shell: str = "/bin/bash"
    password: str = "*"
    sudo: str | None = "NOPASSWD: /usr/sbin/pct"


ACCOUNTS = (
    Account("ops", 1001),
    Account("guest", 1002, password=_GUEST_PASSWORD, sudo=None),
    Account("ops-zsh", 1003, login_shell="/usr/bin/zsh"),
    Account("ops-fish", 1004, login_shell="/usr/bin/fish"),
    Account("ops-tcsh", 1005, login_shell="/usr/bin/tcsh"),
    Account("ops-dash", 1006, login_shell="/usr/bin/dash"),
    Account("ops-tty", 1007),
)
_SUDOERS_EXTRA = "Defaults:ops-tty requiretty\n"


def prepare(node: NodePlace, bases: Bases) -> None:
    """Make a node's upper layer anew: nothing that was changed in the node survives."""
    for name in ("upper", "work", "log"):
        shutil.rmtree(node.home / name, ignore_errors=True)
    for name in ("upper", "work", "root", "log"):
        (node.home / name).mkdir(parents=True, exist_ok=True)
    upper = node.home / "upper"
    for name in ("etc/ssh", "etc/sudoers.d", "etc/pve", "var/lib/lxc", "var/log", "usr/sbin"):
        (upper / name).mkdir(parents=True)
    (upper / "root").mkdir(mode=0o700)
    for name in (".bashrc", ".profile"):
        shutil.copy2(bases.debian / "root" / name, upper / "root")

    _write_accounts(node.lab, upper, bases)
    access.install_on_node(node.lab, node.name, upper)
    (upper / "etc/ssh/ssh_known_hosts").symlink_to("/etc/pve/priv/known_hosts")
    (upper / "etc/ssh/sshd_config").write_text(_SSHD_CONFIG)
    (upper / "etc/hostname").write_text(f"{node.name}\n")
    lines = [f"{each.address} {each.name}\n" for each in node.lab.nodes]
    (upper / "etc/hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
    (upper / "etc/resolv.conf").write_text("")
    for name in ("subuid", "subgid"):
        (upper / "etc" / name).write_text(f"root:{SUBUID}:65536\n")
    (node.home / "members").write_text(_members(node))

    share = upper / "usr/share/lab"
    share.mkdir(parents=True)
    for name in ("pct", "mount-rootfs.sh"):
        shutil.copy2(HERE / "node" / name, share)
    shutil.copy2(share / "pct", upper / "usr/sbin/pct")


def _write_accounts(lab: Settings, upper: Path, bases: Bases) -> None:
    etc = bases.node_layer / "etc"
    files = {name: (etc / name).read_text() for name in ("passwd", "shadow", "group")}
    rules = []
    authorized = access.client_key(lab).with_suffix(".pub").read_text()
    for account in ACCOUNTS:
        ids = f"{account.uid}:{account.uid}"
        home = f"/home/{account.name}"
        files["passwd"] += f"{account.name}:x:{ids}::{home}:{account.login_shell}\n"
        files["shadow"] += f"{account.name}:{account.password}:19000:0:99999:7:::\n"
        files["group"] += f"{account.name}:x:{account.uid}:\n"
        if account.sudo:
            rules.append(f"{account.name} ALL=(root) {account.sudo}\n")
        keys = upper / f"home/{account.name}/.ssh/authorized_keys"
        keys.parent.mkdir(parents=True, mode=0o700)
        keys.write_text(authorized)
        for path in (keys, keys.parent, keys.parent.parent):
            os.chown(path, account.uid, account.uid)
    for name, text in files.items():
        (upper / "etc" / name).write_text(text)
    (upper / "etc/shadow").chmod(0o640)
    sudoers = upper / "etc/sudoers.d/lab"
    sudoers.write_text("".join(rules) + _SUDOERS_EXTRA)
    sudoers.chmod(0o440)


def _members(node: NodePlace) -> str:
    """/etc/pve/.members as this node has it: it names the node it is read on."""
    members = {
        each.name: {"id": number, "online": 1, "ip": each.address}
        for number, each in enumerate(node.lab.nodes, 1)
    }
    cluster = {"name": "lab", "version": 2, "nodes": len(members), "quorate": 1}
    document = {"nodename": node.name, "version": 5, "cluster": cluster, "nodelist": members}
    return json.dumps(document, indent=1) + "\n"
