"""What /etc/pve tells of a cluster's guests: where each lives, and which name it has. Pure.

/etc/pve is the same on every node of a cluster, so any node answers for all, without the quarter
of a second that a call of pct costs. Its files: ``.vmlist`` (guests and their nodes), ``.members``
(nodes and their addresses, and on which one it was read), ``nodes/NODE/lxc/CTID.conf``
(``hostname: NAME``), ``nodes/NODE/ssh_known_hosts`` and, of older releases, ``priv/known_hosts``
(the nodes' host keys). Files are for root; directories may be listed by everyone.
"""

import re
from dataclasses import dataclass, field

from launchpad.command import to_text

# One simple command for any login shell. Every line of its output begins with the file's name.
READ_CLUSTER = (
    "grep",
    "-rHs",
    "--include=*.conf",
    "--include=.vmlist",
    "--include=.members",
    "--include=known_hosts",
    "--include=ssh_known_hosts",
    "-e",
    '"',
    "-e",
    "^hostname:",
    "-e",
    "^[^#].* AAAA",
    "/etc/pve/.vmlist",
    "/etc/pve/.members",
    "/etc/pve/priv/known_hosts",
    "/etc/pve/nodes",
)

# The same for who may not read files: which guests there are, and where.
LIST_GUESTS = ("find", "/etc/pve/nodes", "-name", "*.conf")

_VMLIST = "/etc/pve/.vmlist:"
_MEMBERS = "/etc/pve/.members:"
_NAME = re.compile(r"/etc/pve/nodes/([^/]+)/lxc/([0-9]{1,9})\.conf:hostname:\s*(\S+)")
_CONFIG = re.compile(r"/etc/pve/nodes/([^/]+)/(lxc|qemu-server)/([0-9]{1,9})\.conf")
_KEY = re.compile(
    r"/etc/pve/(?:priv/known_hosts|nodes/[^/]+/ssh_known_hosts):"
    r"(\S+) ((?:ssh|ecdsa)-\S+ AAAA[A-Za-z0-9+/=]+)"
)


@dataclass(frozen=True, slots=True)
class Guest:
    """A container or virtual machine; ``name`` is None where no config told it."""

    number: int
    node: str
    is_container: bool
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """All guests by number, and the nodes' addresses.

    ``host_keys``: names (or their hash) as in known_hosts, and the key behind them. ``read_on``:
    the node that told all this, None where it did not tell.
    """

    guests: dict[int, Guest]
    addresses: dict[str, str] = field(default_factory=dict)
    host_keys: tuple[tuple[str, str], ...] = ()
    read_on: str | None = None

    def named(self, name: str) -> list[Guest]:
        """The containers of that name; a number order makes messages stable."""
        return sorted(
            (g for g in self.guests.values() if g.is_container and g.name == name),
            key=lambda guest: guest.number,
        )


def _field(text: str, key: str) -> str:
    match = re.search(rf'"{key}"\s*:\s*"([^"]*)"', text)
    return match[1] if match else ""


def parse_cluster(output: bytes) -> Cluster:
    """What :data:`READ_CLUSTER` printed. Lines that cannot be read are left out."""
    lists = {_VMLIST: "", _MEMBERS: ""}
    names: dict[int, tuple[str, str]] = {}
    keys: list[tuple[str, str]] = []
    for line in to_text(output).splitlines():
        for file in lists:
            if line.startswith(file):
                lists[file] += line.removeprefix(file) + " "
        if match := _KEY.match(line):
            keys.append((match[1], match[2]))
        if match := _NAME.match(line):
            # Snapshots repeat the hostname further down in the same file: the first one counts.
            names.setdefault(int(match[2]), (match[1], match[3]))
    # Both files are JSON, laid out differently by different releases, and lose their braces-only
    # lines to grep: so their innermost objects are read, which are whole.
    guests = {
        int(number): Guest(int(number), _field(body, "node"), _field(body, "type") == "lxc")
        for number, body in re.findall(r'"([0-9]{1,9})"\s*:\s*\{(?=([^{}]*))', lists[_VMLIST])
    }
    addresses = {
        node: address
        for node, body in re.findall(r'"([^"]+)"\s*:\s*\{(?=([^{}]*))', lists[_MEMBERS])
        if (address := _field(body, "ip"))
    }
    for number, (node, name) in names.items():
        known = guests.get(number)
        guests[number] = Guest(number, known.node if known else node, is_container=True, name=name)
    read_on = _field(lists[_MEMBERS], "nodename") or None
    return Cluster(guests, addresses, tuple(dict.fromkeys(keys)), read_on)


def parse_guest_list(output: bytes) -> Cluster:
    """What :data:`LIST_GUESTS` printed: guests without names, and nothing about the nodes."""
    found = _CONFIG.finditer(to_text(output))
    return Cluster({int(m[3]): Guest(int(m[3]), m[1], m[2] == "lxc") for m in found})


def parse_pct_list(output: bytes) -> dict[str, list[int]]:
    """Names and CTIDs from ``pct list`` (columns VMID, Status, Lock, Name; Lock may be empty)."""
    found: dict[str, list[int]] = {}
    for line in to_text(output).splitlines():
        words = line.split()
        if len(words) >= 3 and re.fullmatch(r"[0-9]{1,9}", words[0]):  # noqa: PLR2004
            found.setdefault(words[-1], []).append(int(words[0]))
    return found
