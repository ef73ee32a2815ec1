"""How one would reach a container by hand: for ``--dry-run``. Connects only to look up a name."""

import os

from launchpad import transport
from launchpad.command import to_text
from launchpad.dryrun import Way
from launchpad.launcher.contact import connect
from launchpad.launcher.desk import Desk
from launchpad.proxmox import pct_words
from launchpad.state_directory import state_directory_for
from launchpad.target import LocalContainer, RemoteContainer, Target, ThisMachine
from launchpad.transport.base import Endpoint, Inner


def way_to(desk: Desk, target: Target) -> Way:
    """The words of ssh and pct that lead to ``target``.

    ssh's own configuration is asked who logs in (``ssh -G``, no connection); only a container
    given by its name has to be looked up on the node. Raises :class:`LaunchpadError` where that
    fails.
    """
    directory = state_directory_for(target)
    match target:
        case ThisMachine():
            return Way((), (), "this machine", "this machine", directory)
        case LocalContainer(container):
            enter, _place = _enter(desk, target, container, is_root=os.geteuid() == 0)
            return Way((), enter, "this machine", f"container {container}", directory)
        case RemoteContainer(host, container):
            options = desk.options_for(target)
            config = transport.resolve(Endpoint(host.name, host.user, host.port), options)
            words = ["ssh"]
            if options.ssh_config is not None:
                words += ["-F", to_text(os.fsencode(options.ssh_config.absolute()))]
            enter, place = _enter(desk, target, container, is_root=config.user == "root")
            login = f"{host.user}@{host.name}" if host.user else host.name
            if place is not None and transport.knows(place.name, options):
                words.append(f"{host.user}@{place.name}" if host.user else place.name)
            elif place is not None:
                jump = f"{login}:{host.port}" if host.port is not None else login
                words += ["-J", jump, "-o", f"HostKeyAlias={place.name}"]
                if place.known_hosts is not None:
                    words += ["-o", f"UserKnownHostsFile={place.known_hosts}"]
                words.append(f"{config.user}@{place.address}")
            else:
                words += [] if host.port is None else ["-p", str(host.port)]
                words.append(login)
            where = f"{config.user} on {place.name if place else host.name}"
            return Way(tuple(words), enter, where, f"container {container}", directory)


def _enter(
    desk: Desk, target: Target, container: int | str, *, is_root: bool
) -> tuple[tuple[str, ...], Inner | None]:
    """The words of pct, and the node where the container lives if that is not the named one."""
    if isinstance(container, int):
        return pct_words(container, sudo=not is_root), None
    with connect(target, desk.options_for(target)) as contact:
        return contact.prefix, contact.inner
