"""Cables: one from the client to each node, and one between the nodes.

The client's ends, LAB-pve1 and LAB-pve2, are the only links that the machine sees. The nodes
have no route to anywhere but to the client and to each other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from labtool.shell import LabError, attempt, run

if TYPE_CHECKING:
    from labtool.settings import NodePlace


def check_addresses(node: NodePlace) -> None:
    """LabError if this machine already uses the addresses that the lab would take."""
    routes = json.loads(run(["ip", "-json", "route", "show", "to", "match", node.address]))
    for route in routes:
        if route["dst"] != "default" and route.get("dev") not in {node.link, node.nowhere}:
            raise LabError(
                f"{node.lab.net}.0/24 is in use on this machine (route to {route['dst']} over "
                f"{route.get('dev')}); set LAB_NET to a free one, such as LAB_NET=10.77.7"
            )


def connect_client(node: NodePlace, pid: int) -> None:
    """Lay the cable from here into the network namespace of a process."""
    disconnect_client(node)
    lab, link = node.lab, node.link
    _batch(
        [],
        f"link add {link} type veth peer name eth0 netns {pid}",
        f"addr add {lab.client_address} peer {node.address} dev {link}",
        *_ipv6(f"addr add {lab.client_address6}/128 peer {node.address6} dev {link} nodad"),
        f"link set {link} up",
    )
    _lead_nowhere(node, pid)
    _batch(
        _inside(pid),
        f"addr add {node.address} peer {lab.client_address} dev eth0",
        *_ipv6(f"addr add {node.address6}/128 peer {lab.client_address6} dev eth0 nodad"),
        "link set eth0 up",
    )


def _lead_nowhere(node: NodePlace, pid: int) -> None:
    """A second way, for when the cable is cut: into a link that nobody listens to.

    Without it the machine's default route would take the packets, and who knows what answers there.
    """
    link = node.nowhere
    _batch(
        [],
        f"link add {link} type veth peer name nowhere netns {pid}",
        f"link set {link} arp off up",
        f"route add {node.address} dev {link} metric 4000",
        *_ipv6(f"route add {node.address6} dev {link} metric 4000"),
    )


def disconnect_client(node: NodePlace) -> None:
    for link in (node.link, node.nowhere):
        attempt(["ip", "link", "delete", link])


def connect_nodes(first: NodePlace, first_pid: int, second: NodePlace, second_pid: int) -> None:
    """Lay the cable between the nodes; on both ends it is eth1."""
    for pid in (first_pid, second_pid):
        attempt([*_inside(pid), "ip", "link", "delete", "eth1"])
    _batch(_inside(first_pid), f"link add eth1 type veth peer name eth1 netns {second_pid}")
    for near, near_pid, far in ((first, first_pid, second), (second, second_pid, first)):
        _batch(
            _inside(near_pid),
            f"addr add {near.address} peer {far.address} dev eth1",
            *_ipv6(f"addr add {near.address6}/128 peer {far.address6} dev eth1 nodad"),
            "link set eth1 up",
        )


def nodes_are_connected(pid: int) -> bool:
    return "eth1:" in Path(f"/proc/{pid}/net/dev").read_text()


def set_client_cable(node: NodePlace, state: str) -> None:
    run(["ip", "link", "set", node.link, state])


def set_cable_between_nodes(pid: int, state: str) -> None:
    run([*_inside(pid), "ip", "link", "set", "eth1", state])


def _ipv6(command: str) -> list[str]:
    """The command, if new interfaces of this machine have IPv6."""
    switch = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    return [command] if switch.exists() and switch.read_text().strip() == "0" else []


def _inside(pid: int) -> list[str]:
    return ["nsenter", "--target", str(pid), "--net"]


def _batch(prefix: list[str], *commands: str) -> None:
    run([*prefix, "ip", "-batch", "-"], stdin="\n".join(commands) + "\n")
