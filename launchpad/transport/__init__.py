"""The only I/O towards hosts: paramiko, the ssh program, or this machine itself."""

from collections.abc import Callable

from launchpad.sshconfig import Jump, Question, SshConfig, ssh_program
from launchpad.transport import inner
from launchpad.transport.base import ConnectOptions, Endpoint, Transport
from launchpad.transport.choice import NeedsSshProgram, only_openssh

# A name that no configuration mentions, to tell what holds for every host.
_NOBODY = "launchpad-nobody.invalid"


def connect(
    endpoint: Endpoint, options: ConnectOptions, through: Transport | None = None
) -> Transport:
    """A transport to a host, by the choice in ``options``; from their pool, where they have one.

    ``through``: a transport to the host in front of ``endpoint.inner``, whose connection is used
    where it can be.

    With paramiko the host is logged in to when this returns. The ssh program connects with the
    first command; what goes wrong then is raised by its channel's ``receive``. A host with an
    inner one is only the way to that.

    Raises :class:`~launchpad.errors.SshError`, :class:`~launchpad.errors.LoginRefused`,
    :class:`~launchpad.errors.ClientError` (the ssh configuration), and
    :class:`~launchpad.errors.UsageError` (no name of a host).
    """
    if options.pool is None:
        return _dial(endpoint, options, through)
    from launchpad.transport.pool import unpooled

    if endpoint.inner is not None:
        return _dial(endpoint, options, unpooled(through))
    return options.pool.lease(endpoint, options, lambda: _dial(endpoint, options, None))


def _dial(endpoint: Endpoint, options: ConnectOptions, through: Transport | None) -> Transport:
    answer = _ask(endpoint, options)
    # What is needed then is loaded while ssh -G is at work.
    shares = options.choice == "auto" and options.share and ssh_program() is not None
    if shares or options.choice == "openssh":
        from launchpad.transport import openssh  # noqa: F401

        why = "a connection is to be shared" if shares else "asked for"
        return _openssh(endpoint, options, answer(), why)
    from launchpad.transport import paramiko

    config = asked = answer()
    reason = "nothing in the ssh configuration of the host needs the ssh program"
    if options.choice == "paramiko":
        reason = "asked for"
    elif ssh_program() is None:
        reason = "there is no ssh program on this machine"
    elif (need := only_openssh(config)) is not None:
        return _openssh(endpoint, options, config, need)

    def hop(jump: Jump) -> SshConfig:
        return resolve(Endpoint(jump.host, jump.user, jump.port), options)

    if endpoint.inner is not None:
        config = inner.behind(config, endpoint, endpoint.inner)
        if isinstance(through, paramiko.ParamikoTransport):
            return through.behind(config, options, reason)
    try:
        return paramiko.connect(config, options, hop, reason)
    except NeedsSshProgram as needs:
        return _openssh(endpoint, options, asked, str(needs))


def this_machine() -> Transport:
    """Commands on this machine itself, without ssh."""
    from launchpad.transport.local import LocalTransport

    return LocalTransport()


def resolve(endpoint: Endpoint, options: ConnectOptions) -> SshConfig:
    """What ssh itself would do for a host.

    Raises :class:`~launchpad.errors.ClientError`, :class:`~launchpad.errors.UsageError`.
    """
    config = _ask(endpoint, options)()
    return inner.behind(config, endpoint, endpoint.inner) if endpoint.inner else config


def knows(host: str, options: ConnectOptions) -> bool:
    """Whether the ssh configuration says how to reach ``host``. Raises as :func:`resolve` does."""
    stranger = _ask(Endpoint(_NOBODY), options)
    return inner.has_a_way(resolve(Endpoint(host), options), stranger())


def _ask(endpoint: Endpoint, options: ConnectOptions) -> Callable[[], SshConfig]:
    """Start to look the host up in the ssh configuration; what is returned waits for the answer."""
    host, user, port = endpoint.host, endpoint.user, endpoint.port
    program = ssh_program()
    if program is not None:
        ahead = options.ahead and options.ahead.take((host, user, port, options.ssh_config))
        question = ahead or Question(program, host, user, port, options.ssh_config)
        return lambda: question.answer(options.timeout)
    from launchpad import sshconfig_parser

    return lambda: sshconfig_parser.read(host, user, port, options.ssh_config, options.warn)


def _openssh(
    endpoint: Endpoint, options: ConnectOptions, config: SshConfig, reason: str
) -> Transport:
    from launchpad.transport.openssh import OpenSshTransport

    if endpoint.inner is not None:
        config = inner.behind(config, endpoint, endpoint.inner)
    return OpenSshTransport(endpoint, options, config, reason)
