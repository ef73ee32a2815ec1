"""A job: its id, what was asked, what is known of it. Pure: no I/O.

The truth about a job is its directory in the container. :class:`JobPaths` alone knows the names
of the files in it; :mod:`launchpad.replies` turns what was found there into the types here.
"""

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import PurePosixPath

from launchpad.command import Argv, Command, Secret, check_length, to_bytes
from launchpad.errors import UsageError

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
_ID_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"  # RFC 4648 base32, in lower case
_ID = rf"(?P<name>{_NAME})-(?P<tail>[a-z0-9]{{6}})"
ENVIRONMENT_NAME = r"[A-Za-z_][A-Za-z0-9_]*"

STATE_DIRECTORY = "/var/lib/launchpad"

# Linux's USER_HZ: the unit of start ticks in /proc/PID/stat, the same on every platform that
# Proxmox runs on (proc(5), sysconf(_SC_CLK_TCK)).
TICKS_PER_SECOND = 100

# A job of which no more is known than its directory is "starting" for this long (seconds).
STARTING_LIMIT = 30


@dataclass(frozen=True, slots=True)
class JobId:
    """``NAME-xxxxxx``: chosen by the client before anything is sent, unique for ever."""

    text: str

    def __post_init__(self) -> None:
        if not re.fullmatch(_ID, self.text):
            raise UsageError(f"{self.text!r} is not a job id", advice="ids look like train-k3f9ab")

    @property
    def name(self) -> str:
        """The job's name: the id without its random tail."""
        return self.text[:-7]

    def __str__(self) -> str:
        return self.text


def is_job_id(text: str) -> bool:
    """Whether ``text`` has the form of a job id."""
    return re.fullmatch(_ID, text) is not None


def new_job_id(name: str) -> JobId:
    """A fresh id for a job of that name: 30 random bits from the system's source."""
    tail = "".join(_ID_ALPHABET[byte % len(_ID_ALPHABET)] for byte in os.urandom(6))
    return JobId(f"{name}-{tail}")


def check_job_name(name: str) -> str:
    """``name`` itself; raises :class:`UsageError` where it cannot be a job's name."""
    if not re.fullmatch(_NAME, name):
        raise UsageError(
            f"{name!r} cannot be a job's name",
            advice="1 to 40 of A-Z a-z 0-9 . _ - , beginning with a letter or digit",
        )
    return name


_INTERPRETER = r"(?:python|pypy|perl|ruby|node|bash|sh|dash|zsh)[0-9.]*"
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed", "uv", "env", "nice", "time"})


def derive_job_name(command: Command) -> str:
    """A name for a job that was given none: what a person would call the command.

    ``python3 -u /w/train.py --lr 1`` is ``train``; ``sleep 60`` is ``sleep``.
    """
    words = command.words if isinstance(command, Argv) else tuple(command.text.split())
    program = PurePosixPath(words[0]).name
    chosen = program
    if re.fullmatch(_INTERPRETER, program) or program in _LAUNCHERS:
        for previous, word in pairwise(words):
            if previous == "-m":
                chosen = word.rpartition(".")[2]
                break
            if previous == "-c":
                break
            script = PurePosixPath(word).name
            if not word.startswith("-") and re.search(r"\.(py|sh|pl|rb|js)$", script):
                chosen = script
                break
    chosen = re.sub(r"\.(py|sh|pl|rb|js)$", "", chosen)
    chosen = re.sub(r"[^A-Za-z0-9._-]+", "-", chosen).strip("-._")[:40].rstrip("-._")
    return chosen or "job"


class Launcher(StrEnum):
    """How the job was detached."""

    SETSID = "setsid"
    TMUX = "tmux"
    NOHUP = "nohup"


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What was asked for: everything that a start needs.

    ``cwd``, ``log``: paths in the container, absolute or below ``~`` (its user's home); None: the
    home, the job directory. ``user``: None for whoever pct makes us (root). ``environment``: values
    are sent on stdin and stored nowhere. Raises :class:`UsageError` where it cannot mean anything.
    """

    id: JobId
    command: Command
    cwd: str | None = None
    environment: tuple[tuple[str, Secret], ...] = ()
    user: str | None = None
    log: str | None = None
    append: bool = False
    login: bool = True
    launcher: Launcher = Launcher.SETSID
    time_limit: float | None = None
    on_exit: str | None = None
    idempotency_key: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.environment:
            check_environment_name(name)
            size = len(name) + 1 + len(to_bytes(value.reveal()))
            check_length(f"the environment variable {name}", size)
        for option, path in (("-C", self.cwd), ("--log", self.log)):
            if path is not None:
                check_container_path(option, path)
        if self.user is not None and not re.fullmatch(
            r"[A-Za-z0-9_][A-Za-z0-9._@-]*\$?", self.user
        ):
            raise UsageError(f"{self.user!r} is not a user name", advice="a name or a uid")
        if self.append and self.log is None:
            raise UsageError(
                "--append needs --log: a job directory's log is always new",
                advice="--log PATH --append",
            )


def check_environment_name(name: str) -> str:
    """``name`` itself; raises :class:`UsageError` where no POSIX shell could export it."""
    if not re.fullmatch(ENVIRONMENT_NAME, name):
        raise UsageError(
            f"{name!r} cannot be the name of an environment variable: no POSIX shell can export it",
            advice="letters, digits and _, not beginning with a digit",
        )
    return name


def check_container_path(option: str, path: str) -> str:
    """``path`` itself, if it is absolute or below ``~``; else raises :class:`UsageError`."""
    if "\0" in path:
        raise UsageError(f"{option}: a path cannot hold a NUL byte")
    if not (path.startswith(("/", "~/")) or path == "~"):
        raise UsageError(
            f"{option} {path}: a path in the container must be absolute, or begin with ~/",
            advice=f"{option} '~/{path}' for the home of the container's user",
        )
    return path


class JobPaths:
    """The files of a job's directory; the only place that knows their names besides remote/*.sh.

    ===============  ==============================================================================
    ``spec``         what was asked: one line of JSON, written by the client, without values
    ``main``         ``1 PID TICKS SESSION BOOT_ID BOOT_TICKS EPOCH SUPERVISOR .`` from inside
    ``running``      empty; renamed at the end to the end record
    ``end,1,…,.``    the end record is this *name*: state, code or signal number, epoch seconds,
                     ticks, OOM counter before and after, ``stopped`` or ``-``
    ``unasked``      empty; kill renames it to ``kill,1,REASON,SIGNAL,EPOCH,.`` before it signals
    ``log``          stdout and stderr of the job, or a link to the file of ``--log``
    ``alive``        a FIFO that the supervisor holds open: end of file is its end
    ``start``        a FIFO that main.sh holds during the launch: end of file is the exec
    ``control``      a FIFO that the supervisor keeps to itself; its name goes with ``start``
    ``cgroup``       where the job's own cgroup is, if one could be had
    ``members``      PIDs and ticks of members that were seen, for when their marks are gone
    ``emptied``      that a follower saw the log lose what it had held
    ``on-exit``      what the line of ``--on-exit`` printed
    ``tmux``         the socket of the job's own tmux server
    ``launcher``     ``1 NAME REASON… .``: how it was detached, where that was not as wanted
    ===============  ==============================================================================
    """

    def __init__(self, state_directory: str, job: JobId) -> None:
        self.directory = f"{state_directory}/jobs/{job}"
        self.log = f"{self.directory}/log"
        self.tmux_socket = f"{self.directory}/tmux"


@dataclass(frozen=True, slots=True)
class Identity:
    """Which process a job's main process is, for ever.

    PID numbers return; a PID with its start ticks does not, within one run of the container. Which
    run that is, ``boot_id`` and PID 1's start ticks tell together: one of them always changes.
    """

    pid: int
    ticks: int
    session: int
    boot_id: str
    boot_ticks: int


@dataclass(frozen=True, slots=True)
class EndRecord:
    """What the supervisor wrote at the end.

    ``code``: an exit code, or a signal number where ``killed``. ``at``: seconds since the epoch by
    the container's clock. ``ticks``: in the clock of start ticks. ``stopped``: the supervisor was
    sent SIGTERM as well. The OOM counters are the container's own where ``oom_own``, else the
    host's.
    """

    killed: bool
    code: int
    at: int
    ticks: int
    oom_before: int
    oom_after: int
    oom_own: bool
    stopped: bool
