"""A connection master of our own: the ssh program keeps one connection open for later calls."""

import os
import stat
import time
from pathlib import Path

from launchpad.errors import ClientError
from launchpad.sshconfig import SshConfig
from launchpad.transport.base import ConnectOptions

# How long an idle master stays (seconds).
_PERSIST = 600

# Between two looks at a socket (seconds).
_GLANCE = 0.02

# sun_path holds 104 bytes on the BSDs and 108 on Linux; ssh binds a name 17 bytes longer first.
_PATH_LIMIT = 104 - 17 - 1


def settings(path: Path) -> list[str]:
    """The ``-o`` settings that share a connection through a socket."""
    return ["ControlMaster=auto", f"ControlPersist={_PERSIST}", f"ControlPath={path}"]


def is_gone(path: Path | None, patience: float) -> bool:
    """Whether no master listens at ``path`` any more, after ``patience`` seconds at most."""
    # Late: only a connection that broke is looked at.
    import socket

    ends = time.monotonic() + patience
    while path is not None:
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(str(path))
        except OSError:
            return True
        if time.monotonic() >= ends:
            return False
        time.sleep(_GLANCE)
    return True


def socket_path(config: SshConfig, options: ConnectOptions) -> Path:
    """Where the master of this very way to the host listens.

    ssh's own ``%C`` leaves out jump hosts and the configuration file; hosts behind different jump
    hosts may share an address.
    """
    way = repr(
        (
            config.user,
            config.hostname,
            config.port,
            config.jumps,
            config.proxy_command,
            config.host_key_alias,
            config.bind_address,
            options.ssh_config.absolute() if options.ssh_config else None,
            config.identity_files,
        )
    )
    # Late: this loads OpenSSL, which nobody else needs who has the ssh program connect.
    from hashlib import sha256

    digest = sha256(way.encode("utf-8", "surrogateescape")).hexdigest()[:20]
    for directory in _directories():
        path = directory / digest
        if len(os.fsencode(path)) <= _PATH_LIMIT and _make_private(directory):
            return path
    raise ClientError(
        "no private directory with a short path for ssh's control socket",
        advice="set XDG_RUNTIME_DIR, or share_connection = false",
    )


def _directories() -> list[Path]:
    directories = []
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_absolute():
        directories.append(Path(runtime) / "launchpad")
    directories.append(Path.home() / ".ssh" / "launchpad")
    directories.append(Path(f"/tmp/launchpad-{os.getuid()}"))  # noqa: S108 (checked below)
    return directories


def _make_private(directory: Path) -> bool:
    """Whether ``directory`` is there, a directory, ours, and closed to others."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
    except OSError:
        return False
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return private and found.st_uid == os.getuid()
