"""Every failure that launchpad reports, and the layer it happened in.

Between the keyboard and the job lie eight layers. An error always names one of
them, says what happened there, and what to do next:

    LaunchpadError
    ├── UsageError           client     the words on the command line are wrong
    ├── ClientError          client     this machine: index, config, log files
    ├── SshError             ssh        the way to the host
    │   ├── HostUnreachable             no connection: name, port, time-out, no ssh there
    │   ├── HostKeyUnknown              known_hosts has no key for the host
    │   ├── HostKeyChanged              known_hosts has another key for the host
    │   └── LineLost                    the connection broke or went silent in mid-call
    ├── LoginRefused         login      the host refused every key and password offered
    ├── SudoRefused          sudo       sudo wants a password, a terminal, or has no rule
    ├── PctError             pct        the container front end of the host
    │   └── PctMissing                  there is no /usr/sbin/pct: not a Proxmox node
    ├── ContainerError       container
    │   ├── ContainerUnknown            no such container on that node
    │   ├── ContainerElsewhere          it lives on another node of the cluster
    │   ├── ContainerStopped            it does not run
    │   ├── ContainerSilent             it runs but does not answer (frozen?)
    │   └── NotAContainer               the number belongs to a virtual machine
    ├── ShellError           shell      no usable shell, or a profile that exits, execs, hangs
    └── JobError             job
        ├── JobRefused                  the job cannot start: directory, user, log, program
        │   └── NoSuchDirectory         its working directory is not there
        ├── JobUnknown                  no such job
        └── JobSurvived                 it was killed, and processes of it are left

Foreign exceptions (paramiko's, OSError, subprocess') are translated at the edge
of the transport that meets them, and nowhere else.
"""

from enum import StrEnum
from typing import ClassVar, Literal

# What launchpad exits with when it, or a layer below it, failed (as docker and env do).
LAUNCHPAD_FAILED = 125
CANNOT_EXECUTE = 126
NOT_FOUND = 127
TIMED_OUT = 124
INTERRUPTED = 130


class Layer(StrEnum):
    """Where something failed, seen from the keyboard downwards."""

    CLIENT = "client"
    SSH = "ssh"
    LOGIN = "login"
    SUDO = "sudo"
    PCT = "pct"
    CONTAINER = "container"
    SHELL = "shell"
    JOB = "job"


class LaunchpadError(Exception):
    """Something failed in a known layer.

    ``what``: one line, for the eyes. ``details``: what the layer itself said, if it
    said anything (data from elsewhere: escape it before showing it). ``advice``: what
    to do next, a command where there is one. ``exit_code``: for the process.

    Where a start failed, ``started`` is what whoever wants to try again must know, and
    ``job_id`` the id that was chosen; None for all other errors.
    """

    layer: ClassVar[Layer] = Layer.CLIENT
    started: Literal["yes", "no", "unknown"] | None = None
    job_id: str | None = None

    def __init__(
        self,
        what: str,
        *,
        details: str = "",
        advice: str = "",
        exit_code: int = LAUNCHPAD_FAILED,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.details = details
        self.advice = advice
        self.exit_code = exit_code

    def __str__(self) -> str:
        """All of it, for a traceback: what happened, what the layer said, what to do."""
        lines = [f"{self.what} [{self.layer}]", *self.details.splitlines()]
        lines += [f"help: {self.advice}"] if self.advice else []
        return "\n".join(map(_visible, lines))


def _visible(line: str) -> str:
    """Data from elsewhere may hold what a terminal acts on."""
    return "".join(c if c.isprintable() or c == "\t" else repr(c)[1:-1] for c in line)


class UsageError(LaunchpadError):
    """The command line cannot mean anything sensible; nothing was sent."""


class ClientError(LaunchpadError):
    """Something on this machine failed: its index, its configuration, its files."""


class SshError(LaunchpadError):
    """The way to the host failed."""

    layer = Layer.SSH


class HostUnreachable(SshError):
    """No connection: unknown name, closed or silent port, or no ssh server behind it."""


class HostKeyUnknown(SshError):
    """No known_hosts file has a key for the host, and none may be added unasked."""


class HostKeyChanged(SshError):
    """The host shows another key than the known one: never accepted."""


class LineLost(SshError):
    """The connection broke, or stayed silent past its deadline, in mid-call."""


class LoginRefused(LaunchpadError):
    """The host accepted none of the keys and passwords that were offered."""

    layer = Layer.LOGIN


class SudoRefused(LaunchpadError):
    """``sudo -n`` did not let us run pct."""

    layer = Layer.SUDO


class PctError(LaunchpadError):
    """pct failed in a way of its own."""

    layer = Layer.PCT


class PctMissing(PctError):
    """There is no pct on the host: it is not a Proxmox node."""


class ContainerError(LaunchpadError):
    """The container cannot be entered."""

    layer = Layer.CONTAINER


class ContainerUnknown(ContainerError):
    """No such container on the node, nor elsewhere in its cluster."""


class ContainerElsewhere(ContainerError):
    """The container lives on another node; ``node`` names it."""

    def __init__(self, what: str, *, node: str, details: str = "", advice: str = "") -> None:
        super().__init__(what, details=details, advice=advice)
        self.node = node


class ContainerStopped(ContainerError):
    """The container exists and does not run."""


class ContainerSilent(ContainerError):
    """The container runs, but nothing in it answered before the deadline."""


class NotAContainer(ContainerError):
    """The number belongs to a QEMU guest; pct cannot enter those."""


class ShellError(LaunchpadError):
    """The shell in the container, or a profile that it reads, did not do its part."""

    layer = Layer.SHELL


class JobError(LaunchpadError):
    """About the job itself."""

    layer = Layer.JOB


class JobRefused(JobError):
    """The job could not be started as asked: nothing runs, nothing was left behind."""


class NoSuchDirectory(JobRefused):
    """The working directory does not exist in the container, or the user may not enter it."""


class JobUnknown(JobError):
    """No such job in the index, or in the container that was asked."""


class JobSurvived(JobError):
    """It was killed, and some of it is left: in the kernel, or in a frozen container."""
