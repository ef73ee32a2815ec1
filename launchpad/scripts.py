"""The scripts in ``remote/``, and their values, as bytes for stdin.

The host's shell sees one constant, tiny line (:func:`entry_words`). Script and data follow on
stdin, so no user text is ever part of a line, no secret stands in a process list, and the limit
of 128 KiB for one argument is no limit.
"""

import os
import re
from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from launchpad.command import Argv, ShellLine, quote_words, to_bytes
from launchpad.errors import UsageError
from launchpad.job import JobSpec

CONTAINER_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_FOLDER = Path(__file__).parent / "remote"

# What starts a job; and follows its log, where that is wanted.
LAUNCH_SCRIPTS = (
    "common",
    "user",
    "descriptors",
    "members",
    "facts",
    "follow",
    "session",
    "launch",
)

# What runs a command in the foreground.
EXEC_SCRIPTS = ("common", "user", "descriptors", "session", "terminal", "exec")

# One argument has 128 KiB at most (execve(2), MAX_ARG_STRLEN), and the host's shell gets the line
# as one.
_LINE_LIMIT = 120_000

# What a login profile may take before the start is given up (seconds).
PROFILE_DEADLINE = 10


# What ends a job when its time is up.
TIMER_SCRIPTS = ("common", "members", "facts", "end", "limit")


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """One call into a container: the words of the entry line, and what follows on stdin.

    ``marker`` frames the reply. ``data`` holds secrets at times, so it never shows in a repr.
    The last of the words is the shell's $0: it tells this call from all others in a process list.
    """

    words: tuple[str, ...]
    data: bytes = field(repr=False)
    marker: bytes

    @property
    def name(self) -> str:
        """What this call, and no other, is called in the process lists of the node."""
        return self.words[-1]


def new_marker() -> bytes:
    """128 random bits: what nobody can guess, nobody can forge."""
    return b"launchpad-" + os.urandom(16).hex().encode()


@cache
def script(*names: str) -> bytes:
    """The files of ``remote/`` by name, one behind the other, without comment lines.

    The comments stay at home: each byte costs time on its way through dd and two shells.
    """
    text = "".join((_FOLDER / f"{name}.sh").read_text("utf-8") for name in names)
    return re.sub(r"^[ \t]*(?:#.*)?\n", "", text, flags=re.MULTILINE).encode()


def entry_words(size: int) -> tuple[str, ...]:
    """The words that run a script of ``size`` bytes from stdin, under bash, else sh.

    ``env -i``: the host's BASH_ENV and exported functions arrive with pct and would hijack the
    shell. The script travels on in $S, so that process lists show ``eval "$S"`` and not its text.
    dd reads neither less nor more; a dd without fullblock refuses the word before reading.
    """
    return _entry_words(
        f"dd bs={size} count=1 iflag=fullblock 2>/dev/null||dd bs=1 count={size} 2>/dev/null"
    )


def _entry_words(source: str) -> tuple[str, ...]:
    """``source``: the commands that print the script."""
    reader = (
        f'S=$({source});export S;B=bash;command -v bash >/dev/null||B=sh;exec $B -c "$E" launchpad'
    )
    return ("env", "-i", f"PATH={CONTAINER_PATH}", "LC_ALL=C", 'E=eval "$S"', "sh", "-c", reader)


def remote_call(
    prefix: Sequence[str], names: Sequence[str], words: Iterable[str | bytes], rest: bytes = b""
) -> RemoteCall:
    """A call of ``remote/NAMES.sh`` behind ``prefix`` (pct exec …) with its words and more data.

    stdin: the script; then what :func:`call_data` gives.
    """
    return _whole(begun_call(prefix, names), words, rest)


def begun_call(prefix: Sequence[str], names: Sequence[str]) -> RemoteCall:
    """The same without words: the script waits for :func:`call_data` to be sent after it."""
    return _begun(prefix, script(*names))


def call_data(marker: bytes, words: Iterable[str | bytes], rest: bytes = b"") -> bytes:
    """What follows a script on stdin.

    One line with the marker and the sizes of the two parts; the words, quoted; ``rest`` as it is.
    """
    quoted = quote_words(words)
    return b"%s %d %d\n%s%s" % (marker, len(quoted), len(rest), quoted, rest)


def _begun(prefix: Sequence[str], text: bytes) -> RemoteCall:
    return RemoteCall((*prefix, *entry_words(len(text)), _new_name()), text, new_marker())


def _whole(call: RemoteCall, words: Iterable[str | bytes], rest: bytes = b"") -> RemoteCall:
    return replace(call, data=call.data + call_data(call.marker, words, rest))


def _new_name() -> str:
    # Not the marker: the jobs in a container may read its process list.
    return f"launchpad-{os.urandom(6).hex()}"


def exec_call(prefix: Sequence[str], command: Sequence[str]) -> RemoteCall:
    """The call that runs a command on pipes; what is sent behind it is the command's stdin.

    No ``command``: the login shell.
    """
    return _whole(_begun(prefix, script(*EXEC_SCRIPTS) + b"execute_stdin\n"), command)


def terminal_call(
    prefix: Sequence[str], names: Sequence[str], function: str, words: Iterable[str | bytes]
) -> RemoteCall:
    """A call for a channel with a terminal: ``function`` of the scripts with marker and ``words``.

    stdin is the terminal, so all of it stands in the line: in base64, whose alphabet every login
    shell leaves alone. Raises :class:`UsageError` where that line would be too long.
    """
    marker = new_marker()
    text = b"%s%s %s\n" % (script(*names), function.encode(), quote_words([marker, *words]))
    encoded = b2a_base64(text, newline=False).decode("ascii")
    if len(encoded) > _LINE_LIMIT:
        raise UsageError(
            "the command is too long for a call with a terminal",
            advice="without -t there is no such limit; or put it into a file: launchpad push",
        )
    line = (*prefix, *_entry_words(f"echo {encoded}|base64 -d"), _new_name())
    return RemoteCall(line, b"", marker)


def launch_data(
    marker: bytes, state_directory: str, job: JobSpec, record: str, *, follow: bool
) -> bytes:
    """What makes a call of :data:`LAUNCH_SCRIPTS` with ``marker`` start ``job``.

    ``record``: the line of JSON that is kept as its spec. ``follow``: the log follows on the same
    channel once the job has started.
    """
    match job.command:
        case Argv(arguments):
            shell = "no"
        case ShellLine(text):
            arguments, shell = (text,), "yes"
    log = job.log or ""
    environment = [word for name, value in job.environment for word in (name, value.reveal())]
    main_words = quote_words(
        [
            "yes" if job.login else "no",
            job.cwd or "",
            log,
            "append" if job.append else "new",
            shell,
            str(len(job.environment)),
            *environment,
            *arguments,
        ]
    )
    return call_data(
        marker,
        [
            job.id.text,
            state_directory,
            record,
            job.user or "",
            log,
            job.on_exit or "",
            str(PROFILE_DEADLINE),
            "yes" if follow else "no",
            key_file_name(job.idempotency_key),
            job.launcher.value,
            script("session", "supervise"),
            script("main"),
            script("screen"),
            f"{job.time_limit:g}" if job.time_limit else "",
            script(*TIMER_SCRIPTS) if job.time_limit else "",
            main_words,
        ],
    )


def key_file_name(key: str | None) -> str:
    """An idempotency key as a file name in the container; empty for none."""
    if not key:
        return ""
    # Late: few starts have a key, and this loads OpenSSL.
    from hashlib import sha256

    return sha256(to_bytes(key)).hexdigest()


def check_record(record: str) -> bytes:
    """``record`` as bytes: one line of ASCII, or ``ValueError`` (a bug of ours)."""
    data = to_bytes(record)
    if not data.isascii() or b"\n" in data:
        raise ValueError("a record must be one line of ASCII")
    return data
