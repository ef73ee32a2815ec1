"""One open way into one container: the only place where the verbs meet transports.

A verb makes one :class:`Contact`, asks once (:meth:`Contact.ask`) or talks
(:meth:`Contact.start`), and closes it: one connection, one channel, one ``pct exec``.

A container that is not where it was looked for is found again here, for all verbs alike: pct
refuses before anything has run, so the same call can be made where the container lives now.
"""

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from launchpad.errors import (
    ContainerElsewhere,
    ContainerSilent,
    ContainerUnknown,
    HostKeyChanged,
    HostKeyUnknown,
    HostUnreachable,
    LaunchpadError,
    LoginRefused,
    NotAContainer,
    ShellError,
)
from launchpad.launcher.nodes import Nodes
from launchpad.launcher.redirect import FollowingChannel
from launchpad.proxmox import ANSWER_DEADLINE, explain, pct_words
from launchpad.scripts import RemoteCall, remote_call
from launchpad.state_directory import state_directory_for
from launchpad.target import RemoteContainer, Target, ThisMachine
from launchpad.transport.base import (
    Channel,
    Completed,
    ConnectOptions,
    Inner,
    Terminal,
    Transport,
    exchange,
)
from launchpad.whereabouts import Node

if TYPE_CHECKING:
    from launchpad.frames import Frame

# The host was not even entered: whatever was sent has certainly not been run.
NOT_ENTERED = (HostUnreachable, HostKeyUnknown, HostKeyChanged, LoginRefused)

# What ending a call that hangs may take; the node itself may be in trouble (seconds).
_RELEASE_DEADLINE = 3.0


@dataclass(slots=True)
class Contact:
    """A connection and the way from it into the container. Close it, or use it with ``with``."""

    target: Target
    ctid: int | None
    state_directory: str
    _nodes: Nodes
    _place: Node | None = None
    # The place is a memory that may be wrong.
    _remembered: bool = False
    # Where it lives now, once somebody has told; and why that was of no use.
    _told: Node | None = field(default=None)
    _moved: bool = False
    _verdict: LaunchpadError | None = None
    _stale: bytes = b""

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
        """Close the connections; never raises."""
        self._nodes.close()

    def open(self, *, remembered: bool) -> None:
        """Connect. ``remembered``: the place may be out of date."""
        self._remembered = remembered
        try:
            self._nodes.link(self._place)
        except LaunchpadError as error:
            if self._forget_place(error):
                self._nodes.link(None)
            elif self._place is not None:
                self._told = self._place
                raise self._no_entry(error) from error
            else:
                raise

    def beside(self, target: Target) -> "Contact":
        """The way into another container of the same host, over the same connections.

        Closing one of the two closes both. Raises as :func:`connect` does.
        """
        return enter(self._nodes, target)

    @property
    def link(self) -> Transport:
        """The connection to the node on which the container was last met."""
        return self._nodes.link(self._place)

    @property
    def prefix(self) -> tuple[str, ...]:
        """The words in front of what runs in the container: pct exec …, or none for ``local``."""
        return () if self.ctid is None else pct_words(self.ctid, sudo=self.link.user != "root")

    @property
    def inner(self) -> Inner | None:
        """The node on which the container was last met, where that is not the named one."""
        if self._place is None:
            return None
        return self._nodes.memory.inner(self._nodes.named, self._place)

    @property
    def node(self) -> str | None:
        """The node on which the container was last met; the named one as ssh knows it."""
        if self._place is not None:
            return self._place.name
        return self.target.host.name if isinstance(self.target, RemoteContainer) else None

    @property
    def host(self) -> str | None:
        """The node that was named, as ssh would take it; None for this machine."""
        return str(self.target.host) if isinstance(self.target, RemoteContainer) else None

    @property
    def ssh(self) -> str:
        """What to type in front of a command for that node; empty on the node itself."""
        front = f"ssh {self.host}" if self.host else ""
        return f"{front} ssh {self._place.name}".strip() if self._place else front

    def ask(
        self,
        names: Sequence[str],
        words: Iterable[str | bytes],
        rest: bytes = b"",
        *,
        deadline: float = ANSWER_DEADLINE,
        pause: float = math.inf,
    ) -> list["Frame"]:
        """Run ``remote/NAMES.sh`` with ``words`` and give back its whole reply.

        ``deadline``: seconds for all of it, ``pause``: for each piece of it.
        Raises a :class:`LaunchpadError` of the layer that failed where no whole reply came.
        """
        call = remote_call(self.prefix, names, words, rest)
        return self.exchange(call, deadline=deadline, pause=pause)

    def exchange(
        self, call: RemoteCall, *, deadline: float = ANSWER_DEADLINE, pause: float = math.inf
    ) -> list["Frame"]:
        """Send ``call`` and give back its whole reply. Raises as :meth:`ask` does."""
        # Late: a start reads its reply as a stream, once it has been sent.
        from launchpad.frames import is_whole, parse_frames

        while True:
            channel = self.link.open(call.words)
            try:
                first = min(ANSWER_DEADLINE, pause)
                done = exchange(channel, call.data, deadline=deadline, first=first, pause=pause)
                frames = parse_frames(call.marker, done.stdout)
                if is_whole(frames):
                    return frames
                error = self.explain(done, answered=bool(frames))
                if isinstance(error, ContainerSilent):
                    self.release(call)
            except LaunchpadError as failure:
                error = failure
            call = self.find_again(error, call)

    def release(self, call: RemoteCall) -> None:
        """End what ``call`` left on the node when its container did not answer; never raises.

        Closing the channel ends nothing there: lxc-attach does not look at its streams. Only root
        may end what pct has started.
        """
        if self.ctid is None or self.link.user != "root":
            return
        ender = remote_call((), ("common", "release"), [call.name])
        with contextlib.suppress(LaunchpadError):
            exchange(self.link.open(ender.words), ender.data, deadline=_RELEASE_DEADLINE)

    def start(self, call: RemoteCall, terminal: Terminal | None = None) -> Channel:
        """Open ``call`` as a conversation: its script and words are sent, stdin stays open."""
        return FollowingChannel(self, call, terminal)

    def find_again(self, error: LaunchpadError, call: RemoteCall, said: bytes = b"") -> RemoteCall:
        """``call`` for where the container is now; raises ``error`` where there is no such place.

        ``error`` must be why ``call`` did not get into the container; ``said``: what was heard of
        it until now, and which :meth:`explain` then leaves out.
        """
        before = self.prefix
        if not self._forget_place(error) and not self._move(error):
            raise self._verdict or error
        self._stale += said
        return replace(call, words=(*self.prefix, *call.words[len(before) :]))

    def _forget_place(self, error: LaunchpadError) -> bool:
        """The remembered node cannot be reached (any more): begin at the one that was named."""
        place, remembered = self._place, self._remembered
        self._remembered = False
        if place is None or not remembered or not isinstance(error, NOT_ENTERED):
            return False
        self._nodes.options.note(f"{place.name} is of no use: {error.what}")
        self._nodes.drop(place)
        self._note(None)
        self._place = None
        return True

    def _move(self, error: LaunchpadError) -> bool:
        """Go where the container lives now: one more trip, once."""
        if self._moved and isinstance(error, NOT_ENTERED):
            self._verdict = self._no_entry(error)
            return False
        if self._moved or not isinstance(error, ContainerElsewhere) or self.ctid is None:
            return False
        self._moved = True
        self._nodes.options.note(error.what)
        before, self._place = self._place, self._told
        try:
            self._nodes.link(self._place)
        except LaunchpadError as failure:
            self._verdict = self._no_entry(failure)
            self._place = before
            return False
        self._note(self._place)
        return True

    def _note(self, place: Node | None) -> None:
        if self.ctid is not None:
            self._nodes.memory.note(self._nodes.named, self.ctid, place)

    def _no_entry(self, failure: LaunchpadError) -> LaunchpadError:
        """The container lives on a node that does not let us in."""
        node = self._told.name if self._told else str(self.host)
        advice = failure.advice
        if isinstance(failure, HostKeyUnknown):
            advice = f"on {self.host}: pvecm updatecerts   tells every node the keys of the others"
        return ContainerElsewhere(
            f"container {self.ctid} lives on {node}, and there is no way in: {failure.what}",
            node=node,
            details=failure.details,
            advice=advice,
        )

    def explain(self, done: Completed, *, answered: bool = False) -> LaunchpadError:
        """Which layer failed, judging by a reply that never came (``answered``: broke off)."""
        where = str(self.target)
        if done.oversized and (answered or self.ctid is None):
            from launchpad.frames import too_large

            return too_large()
        if answered or self.ctid is None:
            if done.silent:
                return ShellError(
                    f"the shell in {where} did not finish its reply in time",
                    advice="is the container frozen, overloaded, or its disk not answering?",
                )
            return ShellError(
                f"the shell in {where} broke off its reply",
                details=done.stderr[-2000:].decode("utf-8", "replace").strip(),
                advice="was it killed, or is its disk or memory full?",
            )
        if self._verdict is not None:
            return self._verdict
        error = explain(
            replace(
                done,
                stdout=done.stdout.removeprefix(self._stale),
                stderr=done.stderr.removeprefix(self._stale),
            ),
            ctid=self.ctid,
            host=self.node or "this node",
            user=self.link.user,
            ssh=self.ssh,
        )
        return self._look_elsewhere(error) if isinstance(error, ContainerUnknown) else error

    def _look_elsewhere(self, error: ContainerUnknown) -> LaunchpadError:
        """The node does not have the container: does another one, or is it a virtual machine?"""
        try:
            cluster = self._nodes.cluster(self.link)
        except LaunchpadError:
            return error
        guest = cluster.guests.get(self.ctid or 0)
        if guest is None or guest.node == (cluster.read_on or self.node):
            if guest is not None and not guest.is_container:
                return _not_a_container(guest.number, guest.node)
            return error
        if not guest.is_container:
            return _not_a_container(guest.number, guest.node)
        self._told = self._nodes.place(cluster, guest.node)
        return ContainerElsewhere(
            f"container {self.ctid} is not on {self.node or 'this node'}: it lives on {guest.node}",
            node=guest.node,
            details=error.details,
            advice=f"{guest.node}:{self.ctid}, if your ssh knows that name",
        )


def _not_a_container(number: int, node: str) -> NotAContainer:
    return NotAContainer(
        f"{number} on {node} is a virtual machine, and launchpad enters containers only",
        advice="ssh into the machine itself, or use qm guest exec",
    )


def connect(target: Target, options: ConnectOptions) -> Contact:
    """Open the way to ``target``. Raises :class:`LaunchpadError` of the layer that failed."""
    nodes = Nodes(target, options)
    try:
        return enter(nodes, target)
    except BaseException:
        nodes.close()
        raise


def enter(nodes: Nodes, target: Target) -> Contact:
    """The contact with ``target`` over connections to its cluster."""
    if isinstance(target, ThisMachine):
        nodes.link(None)
        return Contact(target, None, state_directory_for(target), nodes)
    container = target.container if target.number is None else target.number
    if isinstance(container, int):
        place = nodes.memory.find(nodes.named, container)
        contact = Contact(target, container, state_directory_for(target), nodes, place)
        contact.open(remembered=place is not None)
    else:
        ctid, place = nodes.find_by_name(container)
        contact = Contact(target, ctid, state_directory_for(target), nodes, place)
        contact.open(remembered=False)
        nodes.memory.note(nodes.named, ctid, place)
    return contact
