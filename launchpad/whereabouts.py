"""Which node of a cluster a container was last met on: remembered, and never the truth.

Without it, each call for a container that lives on another node than the one that was named would
first have to find that out. A wrong memory costs one more trip, once, and is then mended.

What is remembered of a node is enough to go there at once: its address and its host keys, which
the node in front has vouched for: it read them from files that only root of the cluster can write.
"""

import os
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchpad.state_directory import own_state_directory
from launchpad.transport.base import Inner

if TYPE_CHECKING:
    from launchpad.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Node:
    """Another node than the one that was named.

    ``address``: as the other nodes see it. ``keys``: its public host keys, ``TYPE BASE64`` each;
    none where nobody told them.
    """

    name: str
    address: str
    keys: tuple[str, ...] = ()


def node_in(cluster: "Cluster", name: str) -> Node:
    """What the cluster tells about its node of that name."""
    address = cluster.addresses.get(name, name)
    keys = (
        key
        for names, key in cluster.host_keys
        if _is_named(names, name.lower()) or _is_named(names, address.lower())
    )
    return Node(name, address, tuple(dict.fromkeys(keys)))


def _is_named(names: str, name: str) -> bool:
    from launchpad.transport.paramiko.knownhosts import matches

    try:
        return matches(names.encode("utf-8", "surrogateescape"), name)
    except ValueError:
        return False


class Whereabouts:
    """The memory, in a directory of this user's state. It is a convenience: no method raises."""

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or own_state_directory() / "clusters"

    def find(self, host: str, ctid: int) -> Node | None:
        """Where a container of that host's cluster was met, if not on the host itself."""
        known = self._read(host).get(str(ctid))
        try:
            return Node(known["name"], known["address"], tuple(known["keys"])) if known else None
        except (KeyError, TypeError):
            return None

    def note(self, host: str, ctid: int, node: Node | None) -> None:
        """Remember it; None: it is on the host itself."""
        known = self._read(host)
        before = dict(known)
        if node is None:
            known.pop(str(ctid), None)
        else:
            known[str(ctid)] = asdict(node) | {"keys": list(node.keys)}
        if known != before:
            import json

            with suppress(OSError):
                self._write(self._file(host, "json"), json.dumps(known, indent=1))

    def inner(self, host: str, node: Node) -> Inner:
        """The node as a transport wants it: with a file that alone vouches for its keys."""
        if not node.keys:
            return Inner(node.name, node.address)
        file = self._file(f"{host} {node.name}", "known_hosts")
        text = "".join(f"{node.name.lower()} {key}\n" for key in node.keys)
        try:
            if not file.exists() or file.read_text("utf-8") != text:
                self._write(file, text)
        except OSError:
            return Inner(node.name, node.address)
        return Inner(node.name, node.address, file)

    def _file(self, what: str, kind: str) -> Path:
        from hashlib import sha256

        digest = sha256(what.encode("utf-8", "surrogateescape")).hexdigest()[:24]
        return self._directory / f"{digest}.{kind}"

    def _read(self, host: str) -> dict[str, Any]:
        # Late: whoever has met no cluster has no memory to read.
        if not self._directory.exists():
            return {}
        import json

        try:
            known = json.loads(self._file(host, "json").read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}

    def _write(self, file: Path, text: str) -> None:
        """Replace a file as a whole: others may be reading it."""
        for directory in (self._directory.parent, self._directory):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        new.replace(file)
