"""The connections to the nodes of one cluster: to the one that was named, and to others.

Any node answers for all of them where a container lives (/etc/pve); but only the node on which it
lives can enter it.
"""

import threading
from typing import TYPE_CHECKING

from launchpad import transport
from launchpad.errors import ContainerUnknown, PctMissing, SudoRefused, UsageError
from launchpad.proxmox import ANSWER_DEADLINE, PCT, explain
from launchpad.target import RemoteContainer, Target
from launchpad.transport.base import ConnectOptions, Endpoint, Transport, exchange
from launchpad.whereabouts import Node, Whereabouts, node_in

if TYPE_CHECKING:
    from launchpad.cluster import Cluster


class Nodes:
    """Connections are made when they are first needed, and closed together.

    ``options`` says how. A node is None where the one that the target names is meant.
    """

    def __init__(self, target: Target, options: ConnectOptions) -> None:
        self._target = target
        self.options = options
        self.memory = Whereabouts()
        self._links: dict[str | None, Transport] = {}
        # Several containers may be asked at once.
        self._linking = threading.RLock()

    @property
    def named(self) -> str:
        """The node that was named, as its cluster is remembered under it."""
        if isinstance(self._target, RemoteContainer):
            host = self._target.host
            return f"{host}:{host.port}" if host.port else str(host)
        return "local"

    def link(self, node: Node | None) -> Transport:
        """The connection to a node. Raises as :func:`launchpad.transport.connect` does."""
        key = node.name if node else None
        with self._linking:
            if key not in self._links:
                self._links[key] = self._connect(node)
            return self._links[key]

    def drop(self, node: Node) -> None:
        """Close the connection to a node that is of no use."""
        link = self._links.pop(node.name, None)
        if link is not None:
            link.close()

    def close(self) -> None:
        """Close all of them; never raises."""
        # The later ones may lead through the earlier.
        for link in reversed(self._links.values()):
            link.close()
        self._links.clear()

    def _connect(self, node: Node | None) -> Transport:
        target = self._target
        if node is not None:
            return self._connect_to(node)
        if isinstance(target, RemoteContainer):
            host = target.host
            return transport.connect(Endpoint(host.name, host.user, host.port), self.options)
        return transport.this_machine()

    def _connect_to(self, node: Node) -> Transport:
        note = self.options.note
        host = self._target.host if isinstance(self._target, RemoteContainer) else None
        if host is None or transport.knows(node.name, self.options):
            note(f"going to {node.name} directly, as the ssh configuration has it")
            return transport.connect(Endpoint(node.name, host.user if host else None), self.options)
        inner = self.memory.inner(self.named, node)
        vouched = f"{host.name} vouches for its host key" if inner.known_hosts else "unvouched"
        note(f"going to {node.name} ({node.address}) through {host}; {vouched}")
        endpoint = Endpoint(host.name, host.user, host.port, inner)
        return transport.connect(endpoint, self.options, self.link(None))

    def cluster(self, link: Transport) -> "Cluster":
        """What the node at the other end tells of its cluster, as far as we may read it.

        Raises :class:`~launchpad.errors.SshError`.
        """
        # Late: most containers are where they are looked for.
        from launchpad.cluster import LIST_GUESTS, READ_CLUSTER, parse_cluster, parse_guest_list

        if link.user == "root":
            done = exchange(link.open(READ_CLUSTER), b"", deadline=ANSWER_DEADLINE)
            return parse_cluster(done.stdout)
        done = exchange(link.open(LIST_GUESTS), b"", deadline=ANSWER_DEADLINE)
        return parse_guest_list(done.stdout)

    def place(self, cluster: "Cluster", name: str) -> Node | None:
        """The node of that name; None where it is the one that the target names."""
        target = self._target
        is_named = isinstance(target, RemoteContainer) and name == target.host.name
        return None if is_named or name == self._own_name(cluster) else node_in(cluster, name)

    def _own_name(self, cluster: "Cluster") -> str | None:
        """How the node that was named calls itself, if the cluster was read there."""
        return cluster.read_on if set(self._links) <= {None} else None

    def find_by_name(self, name: str) -> tuple[int, Node | None]:
        """The CTID of the container called ``name``, and where it lives.

        /etc/pve tells root; others may only call pct, which knows its own node. Raises
        :class:`ContainerUnknown`, :class:`UsageError` where several have that name, or the error
        of the layer that failed.
        """
        from launchpad.cluster import parse_pct_list

        link = self.link(None)
        nodes: dict[int, Node | None] = {}
        details = ""
        if link.user == "root":
            cluster = self.cluster(link)
            for guest in cluster.named(name):
                own = guest.node == cluster.read_on
                nodes[guest.number] = None if own else node_in(cluster, guest.node)
        else:
            done = exchange(link.open(("sudo", "-n", PCT, "list")), b"", deadline=ANSWER_DEADLINE)
            nodes = dict.fromkeys(parse_pct_list(done.stdout).get(name, []))
            details = done.stderr[-500:].decode("utf-8", "replace").strip()
            refusal = explain(
                done, ctid=0, host=self.named, user=link.user, ssh=f"ssh {self.named}"
            )
            if isinstance(refusal, SudoRefused | PctMissing):
                raise refusal
        if not nodes:
            raise ContainerUnknown(
                f"no container is called {name} ({self._target})",
                details=details,
                advice="its CTID works too: HOST:CTID",
            )
        if len(nodes) > 1:
            places = (
                f"{ctid} on {node.name if node else self.named}" for ctid, node in nodes.items()
            )
            raise UsageError(
                f"several containers are called {name}: {', '.join(places)}",
                advice="name one by its CTID",
            )
        return next(iter(nodes.items()))
