"""What /etc/pve tells of a cluster's guests: where each lives, and which name it has. Pure.

/etc/pve is the same on every node of a cluster, so any node answers for all, without the quarter
of a second that a call of pct costs. Its files: ``.vmlist`` (guests and their nodes), ``.members``
(nodes and their addresses), ``nodes/NODE/lxc/CTID.conf`` (``hostname: NAME``).
"""

import re
from dataclasses import dataclass

from launchpad.command import to_text

# One simple command for any login shell. Every line of its output begins with the file's name.
READ_CLUSTER = (
    "grep",
    "-rHs",
    "--include=*.conf",
    "--include=.vmlist",
    "--include=.members",
    "-e",
    '"',
    "-e",
    "^hostname:",
    "/etc/pve/.vmlist",
    "/etc/pve/.members",
    "/etc/pve/nodes",
)

_VMLIST = "/etc/pve/.vmlist:"
_MEMBERS = "/etc/pve/.members:"
_NAME = re.compile(r"/etc/pve/nodes/([^/]+)/lxc/(\d+)\.conf:hostname:\s*(\S+)")


@dataclass(frozen=True, slots=True)
class Guest:
    """A container or virtual machine; ``name`` is None where no config told it."""

    number: int
    node: str
    is_container: bool
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """All guests by number, and the nodes' addresses."""

    guests: dict[int, Guest]
    addresses: dict[str, str]

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
    for line in to_text(output).splitlines():
        for file in lists:
            if line.startswith(file):
                lists[file] += line.removeprefix(file) + " "
        if match := _NAME.match(line):
            # Snapshots repeat the hostname further down in the same file: the first one counts.
            names.setdefault(int(match[2]), (match[1], match[3]))
    # Both files are JSON, laid out differently by different releases, and lose their braces-only
    # lines to grep: so their innermost objects are read, which are whole.
    guests = {
        int(number): Guest(int(number), _field(body, "node"), _field(body, "type") == "lxc")
        for number, body in re.findall(r'"(\d+)"\s*:\s*\{(?=([^{}]*))', lists[_VMLIST])
    }
    addresses = {
        node: address
        for node, body in re.findall(r'"([^"]+)"\s*:\s*\{(?=([^{}]*))', lists[_MEMBERS])
        if (address := _field(body, "ip"))
    }
    for number, (node, name) in names.items():
        known = guests.get(number)
        guests[number] = Guest(number, known.node if known else node, is_container=True, name=name)
    return Cluster(guests, addresses)


def parse_pct_list(output: bytes) -> dict[str, list[int]]:
    """Names and CTIDs from ``pct list`` (columns VMID, Status, Lock, Name; Lock may be empty)."""
    found: dict[str, list[int]] = {}
    for line in to_text(output).splitlines():
        words = line.split()
        if len(words) >= 3 and words[0].isdigit():  # noqa: PLR2004
            found.setdefault(words[-1], []).append(int(words[0]))
    return found
