"""Which transport `auto` takes for a host, and why."""

import os
from pathlib import Path

from launchpad.sshconfig import SshConfig


class NeedsSshProgram(Exception):
    """Found out on the way: the host asks for something that only the ssh program can do."""


def only_openssh(config: SshConfig) -> str | None:
    """What the host's configuration asks for that only the ssh program can do; None: nothing."""
    if config.control_path is not None and (config.control_master or config.control_path.exists()):
        return "its configuration shares connections (ControlPath)"
    for option, what in (
        ("pkcs11provider", "a PKCS#11 token (PKCS11Provider)"),
        ("knownhostscommand", "KnownHostsCommand"),
        ("bindinterface", "BindInterface"),
    ):
        if config.option(option) is not None:
            return f"its configuration asks for {what}"
    for option, what in (
        ("proxyusefdpass", "ProxyUseFdpass"),
        ("hostbasedauthentication", "HostbasedAuthentication"),
        ("verifyhostkeydns", "VerifyHostKeyDNS"),
    ):
        if config.enabled(option):
            return f"its configuration asks for {what}"
    if config.enabled("gssapiauthentication") and _has_ticket():
        return "there is a Kerberos ticket, and its configuration allows GSSAPI"
    for path in config.identity_files:
        if _is_security_key(path):
            return f"{path} is a security key"
    return None


def _has_ticket() -> bool:
    """Debian allows GSSAPI for every host; that alone says nothing."""
    return "KRB5CCNAME" in os.environ or Path(f"/tmp/krb5cc_{os.getuid()}").exists()  # noqa: S108


def _is_security_key(path: Path) -> bool:
    try:
        return path.with_name(f"{path.name}.pub").read_bytes().startswith(b"sk-")
    except OSError:
        return False
