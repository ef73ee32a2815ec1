"""The command line of the lab."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING

from labtool import access, guests, lifecycle, network, nodes, pve
from labtool.packages import ensure_root
from labtool.settings import NODE_NAMES, Settings, from_environment
from labtool.shell import LabError, locked

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str]) -> int:
    """Run one command; 0 done, 1 not possible, 2 wrong usage, or what the inner command gave."""
    os.umask(0o022)
    # argparse would swallow a "--" that belongs to the command.
    split = argv.index("--") if "--" in argv else len(argv)
    parser = _parser()
    arguments = parser.parse_args(argv[:split])
    command = list(argv[split + 1 :])
    if bool(command) != (arguments.verb in {"enter", "attach"}):
        parser.error("enter and attach take -- COMMAND [ARG...]; the others do not")
    try:
        return _dispatch(from_environment(), arguments, command)
    except (LabError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")
    verbs.add_parser("up", help="make everything run")
    verbs.add_parser("down", help="end everything, leave nothing but files under LAB_HOME")
    verbs.add_parser("status", help="what runs (exit code 0 only if all does)")
    verbs.add_parser("env", help='for eval "$(lab env)"')
    reset = verbs.add_parser("reset", help="fresh containers; without CTID the whole lab")
    reset.add_argument("ctid", type=int, nargs="*")
    for verb, text in (
        ("start", "start a container"),
        ("stop", "stop a container at once"),
        ("shutdown", "stop a container by asking its init"),
        ("freeze", "freeze a container"),
        ("thaw", "thaw a container"),
    ):
        verbs.add_parser(verb, help=text).add_argument("ctid", type=int)
    migrate = verbs.add_parser("migrate", help="move a container to another node")
    migrate.add_argument("ctid", type=int)
    migrate.add_argument("node", choices=NODE_NAMES)
    enter = verbs.add_parser("enter", help="run a command in a node, without ssh")
    enter.add_argument("node", choices=NODE_NAMES)
    attach = verbs.add_parser("attach", help="run a command in a container, without ssh and pct")
    attach.add_argument("ctid", type=int)
    pid = verbs.add_parser("pid", help="a container's first process, as this machine counts")
    pid.add_argument("ctid", type=int)
    for verb, text in (("cut", "pull the cable to a node"), ("heal", "plug it in again")):
        cable = verbs.add_parser(verb, help=text)
        cable.add_argument("node", choices=(*NODE_NAMES, "between"), help="between: the nodes")
    pct = verbs.add_parser("pct", help="put FILE in the place of /usr/sbin/pct; default: undo")
    pct.add_argument("file")
    return parser


def _dispatch(lab: Settings, arguments: argparse.Namespace, command: list[str]) -> int:
    match arguments.verb:
        case "env":
            return _env(lab)
        case "status":
            return _status(lab)
        case "enter":
            pid = nodes.require(lab.node(arguments.node))
            return _become(nodes.inside(pid, *command))
        case "pid":
            guest = guests.guest(arguments.ctid)
            print(guests.init_pid(nodes.require(lab.node(pve.node_of(lab, guest))), guest))
            return 0
        case "attach":
            return _attach(lab, arguments.ctid, command)
    ensure_root()
    with locked(lab.home / "lock"):
        _change(lab, arguments)
    return 0


def _change(lab: Settings, arguments: argparse.Namespace) -> None:
    match arguments.verb:
        case "up":
            lifecycle.up(lab)
        case "down":
            lifecycle.down(lab)
        case "reset":
            lifecycle.reset(lab, arguments.ctid)
        case "migrate":
            lifecycle.migrate(lab, guests.guest(arguments.ctid), arguments.node)
        case "pct":
            lifecycle.set_front_end(lab, arguments.file)
        case "cut" | "heal":
            state = "down" if arguments.verb == "cut" else "up"
            if arguments.node == "between":
                network.set_cable_between_nodes(nodes.require(lab.nodes[0]), state)
            else:
                network.set_client_cable(lab.node(arguments.node), state)
        case _:
            _change_container(lab, arguments)


def _change_container(lab: Settings, arguments: argparse.Namespace) -> None:
    guest = guests.guest(arguments.ctid)
    pid = nodes.require(lab.node(pve.node_of(lab, guest)))
    match arguments.verb:
        case "start":
            lifecycle.start_guests(lab, [guest])
        case "stop" | "shutdown":
            guests.stop(pid, guest.id, clean=arguments.verb == "shutdown")
        case "freeze":
            guests.freeze(pid, guest.id)
        case "thaw":
            guests.thaw(pid, guest.id)


def _attach(lab: Settings, ctid: int, command: list[str]) -> int:
    pid = nodes.require(lab.node(pve.node_of(lab, guests.guest(ctid))))
    words = ["lxc-attach", "-n", str(ctid), "--clear-env"]
    words += ["-v", "HOME=/root", "-v", "USER=root", "-v", f"PATH={nodes.NODE_PATH}"]
    return _become(nodes.inside(pid, *words, "--", *command))


def _become(words: list[str]) -> int:
    os.execvp(words[0], words)  # noqa: S606  # an argument vector, no shell


def _status(lab: Settings) -> int:
    complete = True
    for node in lab.nodes:
        pid = nodes.find(node)
        complete = complete and pid is not None
        state = "down" if pid is None else f"up, PID {pid}"
        print(f"{node.name}  {node.address}  {state}")
        alive = guests.running_ids(pid) if pid is not None else set()
        for guest in guests.GUESTS:
            if pve.node_of(lab, guest) != node.name:
                continue
            runs = guest.id in alive
            complete = complete and (runs or not guest.runs)
            print(f"  {guest.id} {guest.name:8} {'running' if runs else 'stopped'}")
    return 0 if complete else 1


def _env(lab: Settings) -> int:
    variables = {
        "LAB_HOME": str(lab.home),
        "LAB_CACHE": str(lab.cache),
        "LAB_NAME": lab.name,
        "LAB_NET": lab.net,
        "LAUNCHPAD_SSH_CONFIG": str(lab.ssh_config),
        "LAB_KEY": str(access.client_key(lab)),
        "LAB_KNOWN_HOSTS": str(lab.ssh / "known_hosts"),
        "LAB_PVE": str(lab.pve),
        "LAB_PCT_SWITCHES": str(lab.pct),
        "LAB_CLIENT_ADDRESS": lab.client_address,
    }
    complete = True
    for node in lab.nodes:
        prefix = f"LAB_{node.name.upper()}"
        pid = nodes.find(node)
        complete = complete and pid is not None
        variables |= {
            f"{prefix}_PID": "" if pid is None else str(pid),
            f"{prefix}_ADDRESS": node.address,
            f"{prefix}_ADDRESS6": node.address6,
            f"{prefix}_LOG": str(node.log),
            f"{prefix}_LINK": node.link,
        }
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    if not complete:
        print("lab: the lab is not up: run lab up", file=sys.stderr)
        return 1
    return 0
