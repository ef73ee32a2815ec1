"""The ssh configuration without an ssh program: paramiko's parser, and what it leaves out."""

import re
from collections.abc import Callable
from pathlib import Path

from launchpad.errors import ClientError
from launchpad.sshconfig import SshConfig, check_names, from_options

_FILES = (Path("~/.ssh/config"), Path("/etc/ssh/ssh_config"))

# What ssh does when nothing is configured, where that is not simply "no".
_DEFAULTS = {
    "userknownhostsfile": "~/.ssh/known_hosts ~/.ssh/known_hosts2",
    "globalknownhostsfile": "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2",
}
_IDENTITIES = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")

# Lines that paramiko's parser skips, misreads, or cannot evaluate here.
_UNREADABLE = re.compile(
    r"^\s*(?:(?P<include>Include)\b|(?P<match>Match)\b.*\b(?:exec|localnetwork|tagged|final|version)\b"
    r"|(?P<canonical>CanonicalizeHostname)\s*=?\s*\"?(?:yes|always))",
    re.IGNORECASE,
)


def read(
    host: str,
    user: str | None,
    port: int | None,
    config_file: Path | None,
    warn: Callable[[str], None],
) -> SshConfig:
    """What the configuration files say about ``host``, as far as paramiko can read them.

    ``warn`` receives a line for each thing that it cannot. Raises :class:`ClientError`.
    """
    check_names(host, user)
    texts = [_read(file, needed=False) for file in _FILES]
    if config_file is not None:
        texts = [] if str(config_file) == "none" else [_read(config_file, needed=True)]
    everything: dict[str, tuple[str, ...]] = {}
    # The first value of an option counts, and tokens in later ones take theirs from it.
    asked = "Host *\n"
    asked += f'  User "{user}"\n' if user is not None else ""
    asked += f"  Port {port}\n" if port is not None else ""
    texts = [f"{asked}{text}" for text in texts] or [asked]
    for text in texts:
        for name, values in _look_up(host, _readable(text, warn)).items():
            if name == "identityfile":
                everything[name] = (*everything.get(name, ()), *values)
            everything.setdefault(name, values)
    for name, value in _DEFAULTS.items():
        everything.setdefault(name, (value,))
    everything.setdefault("identityfile", tuple(f"~/.ssh/{name}" for name in _IDENTITIES))
    if not _is_set(everything, "proxyjump"):
        everything.pop("proxyjump", None)
    return from_options(host, everything)


def _is_set(everything: dict[str, tuple[str, ...]], name: str) -> bool:
    return everything.get(name, ("none",))[0].lower() != "none"


def _read(file: Path, *, needed: bool) -> str:
    try:
        return file.expanduser().read_text("utf-8", "surrogateescape")
    except OSError as error:
        if needed or not isinstance(error, FileNotFoundError):
            raise ClientError(f"{file} cannot be read", details=error.strerror or "") from error
        return ""


def _readable(text: str, warn: Callable[[str], None]) -> str:
    lines = []
    for line in text.splitlines():
        found = _UNREADABLE.match(line)
        if found is None:
            lines.append(line)
            continue
        warn(
            f"without an ssh program this line of the ssh configuration is ignored: {line.strip()}"
        )
        if found["match"]:
            # What follows belongs to nobody: a pattern that no host has.
            lines.append("Host \x01")
    return "\n".join(lines)


def _look_up(host: str, text: str) -> dict[str, tuple[str, ...]]:
    from launchpad.transport.paramiko import loading

    paramiko = loading.load()
    try:
        found = paramiko.SSHConfig.from_text(text).lookup(host)
    except (paramiko.SSHException, ValueError) as error:
        raise ClientError("the ssh configuration cannot be read", details=str(error)) from error
    return {
        name: tuple(value) if isinstance(value, list) else (str(value),)
        for name, value in found.items()
    }
