"""`doctor`: each layer between the keyboard and a job looked at, each fault with its fix.

It goes on past failures where it can, and changes nothing anywhere.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from launchpad import transport
from launchpad.errors import (
    ContainerError,
    ContainerSilent,
    LaunchpadError,
    Layer,
    LoginRefused,
    PctError,
    PctMissing,
    ShellError,
    SshError,
    SudoRefused,
)
from launchpad.examination import (
    Check,
    Facts,
    Report,
    clock_skew,
    fault,
    login_shell,
    read_facts,
    skipped,
)
from launchpad.frames import is_whole, parse_frames
from launchpad.inside import Inside
from launchpad.launcher.contact import Contact, enter
from launchpad.launcher.desk import Desk
from launchpad.launcher.nodes import Nodes
from launchpad.proxmox import ANSWER_DEADLINE, PCT
from launchpad.scripts import PROFILE_DEADLINE, remote_call
from launchpad.target import RemoteContainer, Target, ThisMachine
from launchpad.transport.base import Endpoint, Transport, exchange

# What the examination of a container may take, beside what its profile may (seconds).
_PATIENCE = ANSWER_DEADLINE + 25.0

T = TypeVar("T")


def examine(desk: Desk, target: Target, on_check: Callable[[Check], None]) -> Report:
    """Look at every layer; ``on_check`` is called for each check as it is made."""
    examination = _Examination(desk, target, on_check)
    try:
        examination.run()
    finally:
        examination.nodes.close()
    return examination.report()


@dataclass(slots=True)
class _Examination:
    desk: Desk
    target: Target
    on_check: Callable[[Check], None]
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    nodes: Nodes = field(init=False)
    link: Transport | None = None
    contact: Contact | None = None
    _trip: float = 0.0

    def __post_init__(self) -> None:
        options = self.desk.options_for(self.target)

        def note(line: str) -> None:
            self.notes.append(line)
            options.note(line)

        self.nodes = Nodes(self.target, replace(options, note=note))

    def report(self) -> Report:
        """What was found."""
        contact, link = self.contact, self.link
        return Report(
            str(self.target),
            tuple(self.checks),
            (link.name, link.reason) if link else None,
            contact.node if contact else None,
            contact.ctid if contact else None,
        )

    def run(self) -> None:
        """All checks that can be made."""
        if isinstance(self.target, ThisMachine):
            self._container({})
            return
        facts = self._host()
        if facts is not None and self._pct(facts):
            self._container(facts)
            return
        self._skip([("container", Layer.CONTAINER)], "there is no way to it")

    def _say(self, *checks: Check) -> None:
        for check in checks:
            self.checks.append(check)
            self.on_check(check)

    def _skip(self, names: list[tuple[str, Layer]], because: str) -> None:
        self._say(*skipped(names, because))

    def _host(self) -> Facts | None:
        """The way to the node, and what it tells; None where there is no way."""
        if isinstance(self.target, RemoteContainer) and not self._configuration(self.target):
            return None
        try:
            link, connecting = _timed(lambda: self.nodes.link(None))
            self.link = link
            # With the ssh program the connection is part of the first call.
            (noise, facts), first = _timed(lambda: self._ask_host(link))
            self._trip = self._measure(link, ())
            if link.name == "openssh":
                connecting = max(0.0, first - self._trip)
        except ShellError as error:
            self._say(fault("login shell", error))
            return None
        except (SshError, LoginRefused) as error:
            self._say(fault("ssh", error))
            self._skip([("pct", Layer.PCT)], "the host was not reached")
            return None
        if isinstance(self.target, RemoteContainer):
            chosen = Check("transport", Layer.SSH, "ok", f"{link.name}: {link.reason}")
            self._say(self._ssh(self.target, link, connecting), chosen, _sessions(link))
            self._say(login_shell(facts, noise, self._trip))
        return facts

    def _configuration(self, target: RemoteContainer) -> bool:
        """What ssh's configuration makes of the host; False where it cannot be read."""
        host, options = target.host, self.nodes.options
        try:
            config = transport.resolve(Endpoint(host.name, host.user, host.port), options)
        except LaunchpadError as error:
            self._say(fault("config", error))
            self._skip([("ssh", Layer.SSH), ("pct", Layer.PCT)], "ssh's configuration is wrong")
            return False
        way = ""
        if config.jumps:
            way = f" through {', '.join(jump.host for jump in config.jumps)}"
        elif config.proxy_command:
            way = " through a ProxyCommand"
        file = options.ssh_config or "~/.ssh/config"
        what = f"{host} = {config.address}{way}   ({file})"
        self._say(Check("config", Layer.CLIENT, "ok", what))
        return True

    def _ssh(self, target: RemoteContainer, link: Transport, milliseconds: float) -> Check:
        key, login = "known", f"logged in as {link.user}"
        for note in self.notes:
            if found := re.search(r"host key .*?(\S+ SHA256:\S+)", note):
                key = f"{found[1]} known"
            if found := re.search(r"logged in with (.+)", note):
                login = f"logged in with {found[1]}"
        what = f"{target.host}: host key {key}, {login}"
        return Check("ssh", Layer.SSH, "ok", what, milliseconds=milliseconds)

    def _ask_host(self, link: Transport) -> tuple[str, Facts]:
        """What is printed around every command there, and the facts."""
        container = getattr(self.target, "container", 0)
        number = str(container) if isinstance(container, int) else "0"
        call = remote_call((), ("common", "user", "host"), [number])
        done = exchange(link.open(call.words), call.data, deadline=ANSWER_DEADLINE)
        frames = parse_frames(call.marker, done.stdout)
        noise = done.stdout.split(b"\n" + call.marker)[0] + done.stderr
        words = noise.decode("utf-8", "replace").strip()
        if not is_whole(frames):
            raise ShellError(
                f"the login shell of {link.user} runs no commands",
                details=words[-500:],
                advice="is the account limited to one command, or its shell /usr/sbin/nologin?",
            )
        return words, read_facts(frames)

    def _pct(self, facts: Facts) -> bool:
        """Whether pct is there, and for a user who may not call it, sudo."""
        link = self.link
        if link is None:
            return False
        host = self.nodes.named
        if "pct" not in facts:
            error = PctMissing(
                f"there is no {PCT} on {host}: is it a Proxmox node?",
                advice=f"ssh {host} ls -l {PCT}",
            )
            self._say(fault("pct", error))
            return False
        if link.user != "root" and "sudo" not in facts:
            error_sudo = SudoRefused(
                f"{link.user} is not root on {host}, and there is no sudo",
                advice=f"log in as root: root@{host}, or install sudo there",
            )
            self._say(fault("sudo", error_sudo))
            return False
        return True

    def _container(self, facts: Facts) -> None:
        """Into the container, and all that can be told from inside."""
        frozen = facts.get("lxc_state", ("",))[0] == "FROZEN"
        try:
            self.contact = contact = enter(self.nodes, self.target)
            if frozen:
                raise self._is_frozen(contact)
            call = remote_call(
                contact.prefix,
                ("common", "user", "doctor"),
                [contact.state_directory, str(PROFILE_DEADLINE)],
            )
            deadline = _PATIENCE + PROFILE_DEADLINE
            began = time.time()
            frames, took = _timed(lambda: contact.exchange(call, deadline=deadline))
        except SudoRefused as error:
            self._say(fault("sudo", error))
            self._skip([("container", Layer.CONTAINER)], "sudo does not let us call pct")
            return
        except PctError as error:
            self._say(*self._sudo(), fault("pct", error))
            self._skip([("container", Layer.CONTAINER)], "pct failed")
            return
        except LaunchpadError as error:
            self._say(*self._sudo(), *self._front_end(facts, None), fault("container", error))
            self._skip([("shell", Layer.SHELL)], "the container was not entered")
            return
        found = read_facts(frames)
        entering = self._measure(contact.link, contact.prefix)
        self._say(*self._sudo(), *self._front_end(facts, max(0.0, entering - self._trip)))
        self._say(_entered(contact, found, max(0.0, took - entering)))
        skew = clock_skew(found, began, began + took / 1000)
        enter_words = f"{contact.ssh} pct exec {contact.ctid} --".strip() if contact.ctid else ""
        self._say(*Inside(found, contact.state_directory, enter_words, skew).checks())

    def _measure(self, link: Transport, prefix: tuple[str, ...]) -> float:
        """What it costs to do nothing on the node, or behind ``prefix`` (milliseconds)."""

        def do_nothing() -> None:
            exchange(link.open((*prefix, "true")), b"", deadline=ANSWER_DEADLINE)

        return _timed(do_nothing)[1]

    def _is_frozen(self, contact: Contact) -> ContainerError:
        return ContainerSilent(
            f"container {contact.ctid} on {contact.node or 'this node'} is frozen",
            details="nothing in it can answer",
            advice=f"{contact.ssh} lxc-unfreeze -n {contact.ctid}".strip(),
        )

    def _sudo(self) -> list[Check]:
        link = self.link
        if link is None or link.user == "root":
            return []
        return [Check("sudo", Layer.SUDO, "ok", f"{link.user} may run {PCT} without a password")]

    def _front_end(self, facts: Facts, milliseconds: float | None) -> list[Check]:
        if isinstance(self.target, ThisMachine):
            return []
        version = facts.get("version", ("version unknown",))[0]
        return [Check("pct", Layer.PCT, "ok", f"{PCT} ({version})", milliseconds=milliseconds)]


def _timed(function: Callable[[], T]) -> tuple[T, float]:
    """What the function gives, and how long it took (milliseconds)."""
    began = time.monotonic()
    result = function()
    return result, (time.monotonic() - began) * 1000


def _sessions(link: Transport) -> Check:
    """Whether a second channel can be had while the first one is open (MaxSessions of sshd)."""
    name, layer = "sessions", Layer.SSH
    if link.name != "paramiko":
        return Check(name, layer, "ok", "each call has a connection of its own")
    first = link.open(("cat",))
    try:
        exchange(link.open(("true",)), b"", deadline=ANSWER_DEADLINE)
    except SshError as error:
        return Check(
            name,
            layer,
            "note",
            "one session at a time on a connection (MaxSessions 1): launchpad gets along",
            error.what,
        )
    finally:
        first.close_stdin()
        first.close()
    return Check(name, layer, "ok", "several sessions on one connection")


def _entered(contact: Contact, facts: Facts, milliseconds: float) -> Check:
    hostname = facts.get("hostname", ("?",))[0]
    if contact.ctid is None:
        return Check("container", Layer.CONTAINER, "ok", f'this machine, "{hostname}"')
    what = f'{contact.ctid} "{hostname}" runs on {contact.node or "this node"}'
    target = contact.target
    if isinstance(target, RemoteContainer) and contact.node != target.host.name:
        what += f", reached by way of {target.host}"
    return Check("container", Layer.CONTAINER, "ok", what, milliseconds=milliseconds)
