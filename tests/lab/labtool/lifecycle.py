"""Bringing the whole lab up, down, and back to its first state."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from labtool import access, guests, network, nodefiles, nodes, pve
from labtool.bases import Bases, ensure_bases
from labtool.packages import ensure_namespaces, ensure_packages
from labtool.shell import LabError, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from labtool.guests import Guest
    from labtool.settings import Settings


def up(lab: Settings) -> None:
    """Make everything run that should; touch nothing that does."""
    if any(nodes.find(node) is None for node in lab.nodes):
        ensure_namespaces()
        ensure_packages()
        access.ensure_access(lab)
    bases = _bases(lab)
    if not (lab.pve / ".vmlist").exists():
        pve.write(lab)
    apply_pct_settings(lab)
    _start_missing_nodes(lab, bases)
    running = {node.name: nodes.require(node) for node in lab.nodes}
    for node in lab.nodes:
        nodes.ensure_sshd(node, running[node.name])
    if front_end := os.environ.get("LAB_PCT"):
        set_front_end(lab, front_end)
    _start_missing_guests(lab, bases, running)


def _bases(lab: Settings) -> Bases:
    lab.cache.mkdir(parents=True, exist_ok=True)
    return ensure_bases(lab.cache, lab.debian_mirror)


def _start_missing_nodes(lab: Settings, bases: Bases) -> None:
    started = False
    for node in lab.nodes:
        if nodes.find(node) is not None:
            continue
        say(f"starting {node.name} ({node.address})")
        nodes.stop(node)  # what a killed node has left
        nodefiles.prepare(node, bases)
        lab.containers.mkdir(exist_ok=True)
        nodes.start(node, bases)
        started = True
    first, second = lab.nodes
    first_pid, second_pid = nodes.require(first), nodes.require(second)
    if started or not network.nodes_are_connected(first_pid):
        network.connect_nodes(first, first_pid, second, second_pid)


def _start_missing_guests(lab: Settings, bases: Bases, running: dict[str, int]) -> None:
    alive = {name: guests.running_ids(pid) for name, pid in running.items()}
    missing = []
    for guest in guests.GUESTS:
        node = pve.node_of(lab, guest)
        if guest.id not in alive[node]:
            guests.prepare_layers(lab, guest, bases, clean=False)
            guests.configure(lab, guest, node, running[node])
            if guest.runs:
                missing.append(guest)
    start_guests(lab, missing)


def start_guests(lab: Settings, wanted: Iterable[Guest]) -> None:
    """Start several at once and wait until all are ready."""
    wanted = tuple(wanted)
    if not wanted:
        return
    say(f"starting {', '.join(f'{guest.id} {guest.name}' for guest in wanted)}")

    def start(guest: Guest) -> None:
        pid = nodes.require(lab.node(pve.node_of(lab, guest)))
        guests.start(pid, guest)
        guests.wait_ready(pid, guest)

    _in_parallel(start, wanted)


def _in_parallel(action: Callable[[Guest], None], wanted: Iterable[Guest]) -> None:
    from concurrent.futures import ThreadPoolExecutor  # slow to load, and an idle `up` needs none

    with ThreadPoolExecutor() as pool:
        for _ in pool.map(action, wanted):
            pass


def down(lab: Settings) -> None:
    """End everything; what containers wrote stays for the next `up`."""
    for node in lab.nodes:
        if nodes.find(node) is not None:
            say(f"ending {node.name}")
        nodes.stop(node)


def reset(lab: Settings, container_ids: Iterable[int]) -> None:
    """Give containers an empty layer and their first state; with none named, the whole lab."""
    chosen = tuple(guests.guest(each) for each in container_ids)
    everything = not chosen
    if everything:
        up(lab)
    bases = _bases(lab)

    def clean(guest: Guest) -> None:
        for node in lab.nodes:
            pid = nodes.require(node)
            if guest.id in guests.running_ids(pid):
                guests.stop(pid, guest.id)
        guests.prepare_layers(lab, guest, bases, clean=True)

    _in_parallel(clean, chosen or guests.GUESTS)
    if everything:
        pve.write(lab)
        shutil.rmtree(lab.pct)
        set_front_end(lab, "default")
        heal(lab)
    apply_pct_settings(lab)
    for guest in chosen or guests.GUESTS:
        if not everything and pve.node_of(lab, guest) != guest.node:
            pve.move(lab, guest, guest.node)
        _place(lab, guest, guest.node)
    start_guests(lab, (guest for guest in chosen or guests.GUESTS if guest.runs))


def heal(lab: Settings) -> None:
    for node in lab.nodes:
        network.set_client_cable(node, "up")
        network.set_cable_between_nodes(nodes.require(node), "up")


def migrate(lab: Settings, guest: Guest, target: str) -> None:
    """Stop it here, start it there, as Proxmox migrates a running container."""
    source = pve.node_of(lab, guest)
    if source == lab.node(target).name:
        raise LabError(f"{guest.id} is on {target} already")
    source_pid = nodes.require(lab.node(source))
    was_running = guest.id in guests.running_ids(source_pid)
    if was_running:
        guests.stop(source_pid, guest.id)
    pve.move(lab, guest, target)
    _place(lab, guest, target)
    if was_running:
        start_guests(lab, [guest])


def _place(lab: Settings, guest: Guest, node: str) -> None:
    guests.configure(lab, guest, node, nodes.require(lab.node(node)))
    other = lab.node(node).other
    guests.forget(guest, nodes.require(other))


def apply_pct_settings(lab: Settings) -> None:
    """LAB_PCT_DELAY and LAB_PCT_RELEASE, if set, go where the stand-in reads them."""
    lab.pct.mkdir(parents=True, exist_ok=True)
    for variable, name in (("LAB_PCT_DELAY", "delay"), ("LAB_PCT_RELEASE", "release")):
        if (value := os.environ.get(variable)) is not None:
            (lab.pct / name).write_text(f"{value}\n")


def set_front_end(lab: Settings, file: str) -> None:
    """Put a program in the place of /usr/sbin/pct on both nodes, atomically."""
    for node in lab.nodes:
        root = nodes.root(nodes.require(node))
        source = root / "usr/share/lab/pct" if file == "default" else Path(file)
        if not source.is_file():
            raise LabError(f"{file}: no such file")
        new = root / "usr/sbin/pct.new"
        shutil.copyfile(source, new)
        new.chmod(0o755)
        new.rename(root / "usr/sbin/pct")
