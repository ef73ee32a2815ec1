"""Proxmox: the entry into a container, and what pct's words mean.

pct(1) is a Perl program on the node. It replaces itself with ``lxc-attach``, so a command's own
exit code comes back through it; but 255 and 2 are also its own, and 255 is ssh's too. Its words
are therefore read only where no framed reply came (:func:`explain`), never its code alone.
"""

import re
from dataclasses import dataclass

from launchpad.command import to_text
from launchpad.errors import (
    ContainerError,
    ContainerSilent,
    ContainerStopped,
    ContainerUnknown,
    LaunchpadError,
    LineLost,
    PctError,
    PctMissing,
    ShellError,
    SudoRefused,
)
from launchpad.transport.base import Completed

PCT = "/usr/sbin/pct"

# A frozen container never answers; a healthy one does in well under a second (seconds).
ANSWER_DEADLINE = 20.0


def pct_words(ctid: int, *, sudo: bool) -> tuple[str, ...]:
    """The words in front of a container's command. pct is for root; others have sudo."""
    return (*(("sudo", "-n") if sudo else ()), PCT, "exec", str(ctid), "--")


def _last_lines(data: bytes, count: int = 3) -> str:
    lines = [line for line in to_text(data[-4096:]).splitlines() if line.strip()]
    return "\n".join(lines[-count:])


@dataclass(frozen=True, slots=True)
class _Words:
    """A rule: where ``pattern`` stands in what was said, ``error`` happened.

    All texts may use {ctid}, {host}, {user}, {ssh} and {pct}.
    """

    pattern: str
    error: type[LaunchpadError]
    what: str
    advice: str


_GRANT = "on {host}: echo '{user} ALL=(root) NOPASSWD: {pct}' >>/etc/sudoers.d/launchpad"
_TRY = "{ssh} pct exec {ctid} -- sh -c 'echo ok'"

# The first that fits counts. Before the container is entered:
_REFUSALS = (
    _Words(
        r"Configuration file '\S*lxc/{ctid}\.conf' does not exist",
        ContainerUnknown,
        "there is no container {ctid} on {host}",
        "{ssh} pct list",
    ),
    _Words(
        r"container '{ctid}' not running",
        ContainerStopped,
        "container {ctid} on {host} is stopped",
        "{ssh} pct start {ctid}",
    ),
    _Words(
        r"you must have a tty",
        SudoRefused,
        "sudo on {host} demands a terminal of {user} (requiretty)",
        "on {host}: echo 'Defaults:{user} !requiretty' >>/etc/sudoers.d/launchpad",
    ),
    _Words(
        r"^sudo: .*password", SudoRefused, "sudo on {host} wants a password from {user}", _GRANT
    ),
    _Words(
        r"is not in the sudoers file|may not run sudo|not allowed to execute",
        SudoRefused,
        "sudo on {host} does not let {user} run {pct}",
        _GRANT,
    ),
    _Words(
        r"sudo.*(?:not found|No such file)|Unknown command: sudo",
        SudoRefused,
        "{user} is not root on {host}, and there is no sudo",
        "log in as root: root@{host}",
    ),
    _Words(
        r"Unknown command: {pct}|{pct}.*(?:not found|No such file|Unknown command|does not exist"
        r"|Permission denied|not executable)",
        PctMissing,
        "there is no {pct} on {host} that {user} could run: is it a Proxmox node?",
        "{ssh} ls -l {pct}",
    ),
)

# At its door:
_ENTRANCE = (
    _Words(
        r"lxc-attach: .*Failed to exec|exec: .*not found",
        ShellError,
        "container {ctid} on {host} has no usable shell (sh or env is missing)",
        _TRY,
    ),
    _Words(r"lxc[-_]attach", ContainerError, "container {ctid} on {host} cannot be entered", _TRY),
)


def explain(done: Completed, *, ctid: int, host: str, user: str, ssh: str) -> LaunchpadError:
    """Why a call into container ``ctid`` brought no framed reply.

    ``host``: the node's name; ``user``: who we are there; ``ssh``: what to type in front of a
    command on the node (``ssh root@pve1``), empty on the node itself.
    """
    said = to_text(done.stderr[-16384:]) + to_text(done.stdout[-4096:])
    names = {"ctid": ctid, "host": host, "user": user, "ssh": ssh, "pct": PCT}
    rule = _fitting(_REFUSALS, said, ctid) or _by_manner(done) or _fitting(_ENTRANCE, said, ctid)
    rule = rule or _without_words(done)
    return rule.error(
        rule.what.format(**names, code=done.exit_code),
        details=_last_lines(done.stderr) or _last_lines(done.stdout),
        advice=rule.advice.format(**names).strip(),
    )


def _fitting(rules: tuple[_Words, ...], said: str, ctid: int) -> _Words | None:
    for rule in rules:
        pattern = rule.pattern.replace("{ctid}", str(ctid)).replace("{pct}", PCT)
        if re.search(pattern, said, re.MULTILINE):
            return rule
    return None


def _by_manner(done: Completed) -> _Words | None:
    """What is judged by how the call ended, whatever was said."""
    if done.silent:
        return _Words(
            "",
            ContainerSilent,
            "container {ctid} on {host} did not answer",
            "is it frozen, or {host} overloaded? {ssh} pct status {ctid}",
        )
    if done.oversized:
        return _Words(
            "",
            ShellError,
            "container {ctid} on {host} said more than any reply can be",
            "something in it floods the output of every command",
        )
    return None


def _without_words(done: Completed) -> _Words:
    if done.exit_code is None:
        return _Words(
            "",
            LineLost,
            "the line to {host} ended in mid-call, without an exit status",
            "was the host's shell or sshd killed?",
        )
    return _Words(
        "", PctError, "pct on {host} ended with {code} and no reply from container {ctid}", _TRY
    )
