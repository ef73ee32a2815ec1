"""The faults: each breaks one layer, and mends it again."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from faults.step import Fault
from faults.truth import Truth, kill_all

from labtool import guests, network
from support.lines import family_of
from support.tracing import listener

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from faults.step import Step

    from support.lab import Lab

_DROP = "table inet faults { chain c { type filter hook input priority 0; tcp dport 22 drop; }; }"
_RESET = (
    "table inet faults { chain c { type filter hook input priority 0;"
    " tcp dport 22 reject with tcp reset; }; }"
)
# A container cannot set its clock: what the scripts see of it is date(1).
_CLOCK = """\
mkdir -p /var/tmp/faults
date=$(readlink -f "$(command -v date)")
cp "$date" /var/tmp/faults/date.real
printf '#!/bin/sh\\n[ "$1" = +%%s ] || exec /var/tmp/faults/date.real "$@"\\n' >/var/tmp/faults/date
printf 'now=$(/var/tmp/faults/date.real +%%s); echo $((now + %s))\\n' "$1" >>/var/tmp/faults/date
chmod 755 /var/tmp/faults/date
mount -o bind /var/tmp/faults/date "$date"
"""
_STATE = "/var/lib/launchpad"


@contextmanager
def armed(lab: Lab, step: Step) -> Iterator[None]:
    """What a fault needs around the whole step: a small disk that can be filled."""
    if step.fault is not Fault.FULL:
        yield
        return
    lab.sh(step.ctid, f"mkdir -p {_STATE}; mount -t tmpfs -o size=1m,mode=755 none {_STATE}")
    try:
        yield
    finally:
        # Jobs on it would write to a disk that nobody sees any more.
        truth = Truth(lab, step.ctid)
        device = (truth.root / _STATE.lstrip("/")).stat().st_dev
        for each in truth.processes():
            with suppress(OSError):
                if Path(f"/proc/{each.pid}/fd/1").stat().st_dev == device:
                    each.end()
        lab.sh(step.ctid, f"umount -l {_STATE}")


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is broken: ``mending`` holds what has to be done to end it."""

    lab: Lab
    step: Step
    client: subprocess.Popen[bytes] | None
    mending: ExitStack

    @property
    def node(self) -> str:
        return self.lab.node_of(self.step.ctid)

    @property
    def truth(self) -> Truth:
        return Truth(self.lab, self.step.ctid)

    def inside(self, line: str, *arguments: str, check: bool = True) -> None:
        self.lab.sh(self.step.ctid, line, *arguments, check=check)

    def inside_at_the_end(self, line: str) -> None:
        self.mending.callback(self.lab.sh, self.step.ctid, line)


def _cut(scene: _Scene) -> None:
    place = scene.lab.settings.node(scene.node)
    scene.mending.callback(network.set_client_cable, place, "up")
    network.set_client_cable(place, "down")


def _filter(scene: _Scene, rules: str) -> None:
    node = scene.node
    scene.mending.callback(scene.lab.on_node, node, "nft", "delete", "table", "inet", "faults")
    scene.lab.on_node(node, "nft", rules)


def _freeze(scene: _Scene) -> None:
    node = scene.lab.node_pid(scene.node)
    scene.mending.callback(guests.thaw, node, scene.step.ctid)
    guests.freeze(node, scene.step.ctid)


def _stop(scene: _Scene, *, clean: bool) -> None:
    node = scene.lab.node_pid(scene.node)
    each = guests.guest(scene.step.ctid)
    scene.mending.callback(guests.wait_ready, node, each)
    scene.mending.callback(guests.start, node, each)
    # PID 1 of some containers takes no wish to stop.
    guests.stop(node, each.id, clean=clean and each.systemd)


def _kill_inside(scene: _Scene) -> None:
    inside = [each for each in scene.truth.processes() if each.attached]
    dice = random.Random(scene.step.number)  # noqa: S311
    for each in inside and [dice.choice(inside)]:
        each.end()


def _kill_supervisors(scene: _Scene) -> None:
    for each in scene.truth.processes():
        if each.is_supervisor:
            each.end()


def _fill(scene: _Scene) -> None:
    scene.inside_at_the_end(f"rm -f {_STATE}/filler")
    scene.inside(f"cat /dev/zero >{_STATE}/filler", check=False)


def _read_only(scene: _Scene) -> None:
    scene.inside_at_the_end(f"umount -l {_STATE}")
    # A file that was opened for writing between the two mounts keeps the second from happening.
    scene.inside(
        f"mkdir -p {_STATE}; tries=0; while [ $tries -lt 50 ]; do tries=$((tries + 1));"
        f" mount -o bind {_STATE} {_STATE};"
        f" mount -o remount,bind,ro {_STATE} 2>/dev/null && exit; umount -l {_STATE}; done; exit 1"
    )


def _set_clock(scene: _Scene) -> None:
    scene.inside_at_the_end('umount "$(readlink -f "$(command -v date)")"')
    scene.inside(_CLOCK, str(86_400 if scene.step.number % 2 else -86_400))


def _kill_client(scene: _Scene) -> None:
    if scene.client is not None:
        with suppress(ProcessLookupError):
            os.killpg(scene.client.pid, signal.SIGKILL)


_HOG = 'python3 -c "bytearray(300 << 20)" 2>/dev/null'
_BLOWS: dict[Fault, Callable[[_Scene], None]] = {
    Fault.NONE: lambda _scene: None,
    Fault.SSHD_KILLED: lambda scene: kill_all(_sessions(scene.lab, scene.node)),
    Fault.CUT: _cut,
    Fault.DROPPED: lambda scene: _filter(scene, _DROP),
    Fault.RESET: lambda scene: _filter(scene, _RESET),
    Fault.PCT_KILLED: lambda scene: kill_all(scene.truth.on_node("lxc-attach ")),
    Fault.FROZEN: _freeze,
    Fault.STOPPED: lambda scene: _stop(scene, clean=False),
    Fault.RESTARTED: lambda scene: _stop(scene, clean=True),
    Fault.INSIDE_KILLED: _kill_inside,
    Fault.SUPERVISOR_KILLED: _kill_supervisors,
    Fault.OUT_OF_MEMORY: lambda scene: scene.inside(_HOG, check=False),
    Fault.FULL: _fill,
    Fault.READ_ONLY: _read_only,
    Fault.CLOCK: _set_clock,
    Fault.CLIENT_KILLED: _kill_client,
}


@contextmanager
def broken(lab: Lab, step: Step, client: subprocess.Popen[bytes] | None) -> Iterator[None]:
    """Break it for as long as the block lasts."""
    with ExitStack() as mending:
        _BLOWS[step.fault](_Scene(lab, step, client, mending))
        yield


def last(step: Step) -> None:
    """Let a fault last that is not over with its blow."""
    if step.fault in {
        Fault.CUT,
        Fault.DROPPED,
        Fault.RESET,
        Fault.FROZEN,
        Fault.STOPPED,
        Fault.FULL,
        Fault.READ_ONLY,
        Fault.CLOCK,
    }:
        time.sleep(step.length)


def _sessions(lab: Lab, node: str) -> list[int]:
    """sshd's processes on a node, its listener apart."""
    found = []
    for pid in family_of(listener(lab, node))[1:]:
        with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            if file.read().startswith(b"sshd:"):
                found.append(pid)
    return found
