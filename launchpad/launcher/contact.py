"""One open way into one container: the only place where the verbs meet transports.

A verb makes one :class:`Contact`, asks once (:meth:`Contact.ask`) or talks
(:meth:`Contact.start`), and closes it: one connection, one channel, one ``pct exec``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, assert_never

from launchpad import transport
from launchpad.cluster import READ_CLUSTER, parse_cluster, parse_pct_list
from launchpad.errors import (
    ContainerElsewhere,
    ContainerUnknown,
    LaunchpadError,
    NotAContainer,
    ShellError,
    UsageError,
)
from launchpad.frames import Frame, is_whole, parse_frames
from launchpad.proxmox import ANSWER_DEADLINE, PCT, explain, pct_words
from launchpad.scripts import RemoteCall, remote_call
from launchpad.state_directory import state_directory_for
from launchpad.target import LocalContainer, RemoteContainer, Target, ThisMachine
from launchpad.transport.base import (
    REPLY_LIMIT,
    Channel,
    Completed,
    ConnectOptions,
    Endpoint,
    Transport,
    exchange,
)


@dataclass(slots=True)
class Contact:
    """A connection and the way from it into the container. Close it, or use it with ``with``."""

    target: Target
    link: Transport
    ctid: int | None
    state_directory: str
    _prefix: tuple[str, ...] = field(default=())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; never raises."""
        self.link.close()

    def beside(self, target: Target) -> "Contact":
        """The way into another container of the same host, over the same connection.

        Closing one of the two closes both. Raises as :func:`connect` does.
        """
        return _enter(self.link, target)

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words in front of what runs in the container: pct exec …, or none for ``local``."""
        return self._prefix

    @property
    def node(self) -> str | None:
        """The node that was asked, by the name that ssh knows it under."""
        return self.target.host.name if isinstance(self.target, RemoteContainer) else None

    @property
    def host(self) -> str | None:
        """The node as ssh would take it; None for this machine."""
        return str(self.target.host) if isinstance(self.target, RemoteContainer) else None

    def ask(
        self,
        names: Sequence[str],
        words: Iterable[str | bytes],
        rest: bytes = b"",
        *,
        deadline: float = ANSWER_DEADLINE,
    ) -> list[Frame]:
        """Run ``remote/NAMES.sh`` with ``words`` and give back its whole reply.

        Raises a :class:`LaunchpadError` of the layer that failed where no whole reply came.
        """
        call = remote_call(self._prefix, names, words, rest)
        return self.exchange(call, deadline=deadline)

    def exchange(self, call: RemoteCall, *, deadline: float = ANSWER_DEADLINE) -> list[Frame]:
        """Send ``call`` and give back its whole reply. Raises as :meth:`ask` does."""
        channel = self.link.open(call.words)
        done = exchange(channel, call.data, deadline=deadline, limit=REPLY_LIMIT)
        frames = parse_frames(call.marker, done.stdout)
        if not is_whole(frames):
            raise self.explain(done, answered=bool(frames))
        return frames

    def start(self, call: RemoteCall) -> Channel:
        """Open ``call`` as a conversation: its script and words are sent, stdin stays open."""
        channel = self.link.open(call.words)
        channel.send(call.data)
        return channel

    def explain(self, done: Completed, *, answered: bool = False) -> LaunchpadError:
        """Which layer failed, judging by a reply that never came (``answered``: broke off)."""
        where = str(self.target)
        if answered or self.ctid is None:
            return ShellError(
                f"the shell in {where} broke off its reply",
                details=done.stderr[-2000:].decode("utf-8", "replace").strip(),
                advice="was it killed, or is its disk or memory full?",
            )
        error = explain(
            done,
            ctid=self.ctid,
            host=self.node or "this node",
            user=self.link.user,
            ssh=f"ssh {self.host}" if self.host else "",
        )
        if isinstance(error, ContainerUnknown) and self.link.user == "root":
            return self._look_elsewhere(error, self.ctid)
        return error

    def _look_elsewhere(self, error: ContainerUnknown, ctid: int) -> LaunchpadError:
        """The node does not have the container: does another one, or is it a virtual machine?"""
        try:
            done = exchange(self.link.open(READ_CLUSTER), b"", deadline=ANSWER_DEADLINE)
        except LaunchpadError:
            return error
        guest = parse_cluster(done.stdout).guests.get(ctid)
        if guest is None:
            return error
        if not guest.is_container:
            return NotAContainer(
                f"{ctid} on {guest.node} is a virtual machine, and launchpad enters containers only",
                advice="ssh into the machine itself, or use qm guest exec",
            )
        return ContainerElsewhere(
            f"container {ctid} is not on {self.node or 'this node'}: it lives on {guest.node}",
            node=guest.node,
            details=error.details,
            advice=f"{guest.node}:{ctid}, if your ssh knows that name",
        )


def connect(target: Target, options: ConnectOptions) -> Contact:
    """Open the way to ``target``. Raises :class:`LaunchpadError` of the layer that failed."""
    match target:
        case ThisMachine() | LocalContainer():
            link = transport.this_machine()
        case RemoteContainer(host, _container):
            link = transport.connect(Endpoint(host.name, host.user, host.port), options)
        case _:
            assert_never(target)
    try:
        return _enter(link, target)
    except BaseException:
        link.close()
        raise


def _enter(link: Transport, target: Target) -> Contact:
    """The contact with ``target`` over a connection to its host."""
    if isinstance(target, ThisMachine):
        return Contact(target, link, None, state_directory_for(target))
    container = target.container
    ctid = container if isinstance(container, int) else find_by_name(link, container, target)
    prefix = pct_words(ctid, sudo=link.user != "root")
    return Contact(target, link, ctid, state_directory_for(target), prefix)


def find_by_name(link: Transport, name: str, target: Target) -> int:
    """The CTID of the container called ``name``, wherever in the cluster it lives.

    /etc/pve tells root; others may only call pct, which knows its own node. Raises
    :class:`ContainerUnknown`, or :class:`UsageError` where several have that name.
    """
    if link.user == "root":
        done = exchange(link.open(READ_CLUSTER), b"", deadline=ANSWER_DEADLINE)
        found = [guest.number for guest in parse_cluster(done.stdout).named(name)]
    else:
        done = exchange(link.open(("sudo", "-n", PCT, "list")), b"", deadline=ANSWER_DEADLINE)
        found = parse_pct_list(done.stdout).get(name, [])
    match found:
        case [ctid]:
            return ctid
        case []:
            raise ContainerUnknown(
                f"no container is called {name} ({target})",
                details=done.stderr[-500:].decode("utf-8", "replace").strip(),
                advice="its CTID works too: HOST:CTID",
            )
        case _:
            numbers = ", ".join(map(str, found))
            raise UsageError(
                f"several containers are called {name}: {numbers}", advice="name one by its CTID"
            )
