"""Proxmox: the entry into a container, and what pct's words mean.

pct(1) is a Perl program on the node. It replaces itself with ``lxc-attach``, so a command's own
exit code comes back through it; but 255 and 2 are also its own, and 255 is ssh's too. Its words
are therefore read only where no framed reply came (:func:`explain`), never its code alone.
"""

import re

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


def explain(done: Completed, *, ctid: int, host: str, user: str, ssh: str) -> LaunchpadError:
    """Why a call into container ``ctid`` brought no framed reply.

    ``host``: the node's name; ``user``: who we are there; ``ssh``: what to type in front of a
    command on the node (``ssh root@pve1``), empty on the node itself.
    """
    words = to_text(done.stderr[-16384:]) + to_text(done.stdout[-4096:])
    details = _last_lines(done.stderr) or _last_lines(done.stdout)
    if re.search(rf"Configuration file '\S*lxc/{ctid}\.conf' does not exist", words):
        return ContainerUnknown(
            f"there is no container {ctid} on {host}",
            details=details,
            advice=f"{ssh} pct list",
        )
    if re.search(rf"container '{ctid}' not running", words):
        return ContainerStopped(
            f"container {ctid} on {host} is stopped",
            details=details,
            advice=f"{ssh} pct start {ctid}",
        )
    sudo_line = f"{user} ALL=(root) NOPASSWD: {PCT}"
    if "you must have a tty" in words:
        return SudoRefused(
            f"sudo on {host} demands a terminal of {user} (requiretty)",
            details=details,
            advice=f"on {host}: echo 'Defaults:{user} !requiretty' >>/etc/sudoers.d/launchpad",
        )
    if re.search(r"^sudo: .*password", words, re.MULTILINE):
        return SudoRefused(
            f"sudo on {host} wants a password from {user}",
            details=details,
            advice=f"on {host}: echo '{sudo_line}' >>/etc/sudoers.d/launchpad",
        )
    if re.search(r"is not in the sudoers file|may not run sudo|not allowed to execute", words):
        return SudoRefused(
            f"sudo on {host} does not let {user} run {PCT}",
            details=details,
            advice=f"on {host}: echo '{sudo_line}' >>/etc/sudoers.d/launchpad",
        )
    if re.search(r"sudo.*(not found|No such file|Unknown command)", words):
        return SudoRefused(
            f"{user} is not root on {host}, and there is no sudo",
            details=details,
            advice=f"log in as root: root@{host}",
        )
    if re.search(rf"{PCT}.*(not found|No such file|Unknown command|does not exist)", words) or (
        re.search(rf"{PCT}.*(Permission denied|not executable)", words)
    ):
        return PctMissing(
            f"there is no {PCT} on {host} that {user} could run: is it a Proxmox node?",
            details=details,
            advice=f"{ssh} ls -l {PCT}",
        )
    if done.silent:
        return ContainerSilent(
            f"container {ctid} on {host} did not answer",
            details=details,
            advice=f"is it frozen, or {host} overloaded? {ssh} pct status {ctid}",
        )
    if done.oversized:
        return ShellError(
            f"container {ctid} on {host} said more than any reply can be",
            advice="something in it floods the output of every command",
        )
    if re.search(r"lxc-attach: .*Failed to exec|exec: .*not found", words):
        return ShellError(
            f"container {ctid} on {host} has no usable shell (sh or env is missing)",
            details=details,
            advice=f"{ssh} pct exec {ctid} -- sh -c 'echo ok'",
        )
    if "lxc-attach" in words or "lxc_attach" in words:
        return ContainerError(f"container {ctid} on {host} cannot be entered", details=details)
    if done.exit_code is None:
        return LineLost(
            f"the line to {host} ended in mid-call, without an exit status",
            details=details,
            advice="was the host's shell or sshd killed?",
        )
    return PctError(
        f"pct on {host} ended with {done.exit_code} and no reply from container {ctid}",
        details=details,
        advice=f"{ssh} pct exec {ctid} -- sh -c 'echo ok'",
    )
