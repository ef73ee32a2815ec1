"""The only I/O towards hosts: paramiko, the ssh program, or this machine itself."""

from launchpad.sshconfig import Jump, Question, SshConfig, ssh_program
from launchpad.transport.base import ConnectOptions, Endpoint, Transport
from launchpad.transport.choice import only_openssh


def connect(endpoint: Endpoint, options: ConnectOptions) -> Transport:
    """A transport to a host, by the choice in ``options``.

    With paramiko the host is logged in to when this returns. The ssh program connects with the
    first command; what goes wrong then is raised by its channel's ``receive``.

    Raises :class:`~launchpad.errors.SshError`, :class:`~launchpad.errors.LoginRefused`,
    :class:`~launchpad.errors.ClientError` (the ssh configuration), and
    :class:`~launchpad.errors.UsageError` (no name of a host).
    """
    config = resolve(endpoint, options)
    if options.choice == "openssh":
        return _openssh(endpoint, options, config, "asked for")
    reason = "nothing in the ssh configuration of the host needs the ssh program"
    if options.choice == "paramiko":
        reason = "asked for"
    elif ssh_program() is None:
        reason = "there is no ssh program on this machine"
    else:
        why = "a connection is to be shared" if options.share else only_openssh(config)
        if why is not None:
            return _openssh(endpoint, options, config, why)
    from launchpad.transport import paramiko

    def hop(jump: Jump) -> SshConfig:
        return resolve(Endpoint(jump.host, jump.user, jump.port), options)

    return paramiko.connect(config, options, hop, reason)


def resolve(endpoint: Endpoint, options: ConnectOptions) -> SshConfig:
    """What ssh itself would do for a host.

    Raises :class:`~launchpad.errors.ClientError`, :class:`~launchpad.errors.UsageError`.
    """
    program = ssh_program()
    if program is None:
        from launchpad.sshconfig_parser import read

        return read(endpoint.host, endpoint.user, endpoint.port, options.ssh_config, options.warn)
    question = Question(program, endpoint.host, endpoint.user, endpoint.port, options.ssh_config)
    return question.answer(options.timeout)


def local() -> Transport:
    """This machine, without ssh."""
    from launchpad.transport.local import LocalTransport

    return LocalTransport()


def _openssh(
    endpoint: Endpoint, options: ConnectOptions, config: SshConfig, reason: str
) -> Transport:
    from launchpad.transport.openssh import OpenSshTransport

    return OpenSshTransport(endpoint, options, config, reason)
