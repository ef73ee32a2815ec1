"""``--dry-run``: the start of a job as one line that a person can read, paste and learn from.

launchpad itself sends all this on stdin, behind a constant line. By hand it has to be nested:
your shell → ssh → the host's login shell → pct exec → bash -c in the container. The line made
here does the same to the job: its words, directory, user, environment, login profile, log, and a
session of its own. What it does not do is prove anything, or remember it. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from launchpad.command import (
    Argv,
    ShellLine,
    ends_bare,
    nested_word,
    pasted_word,
    to_bytes,
)
from launchpad.job import JobSpec
from launchpad.scripts import CONTAINER_PATH

# execve(2) takes no longer argument (MAX_ARG_STRLEN), so no ssh server can run a longer line.
LINE_LIMIT = 131_071

_CHOOSE_SHELL = 'command -v bash >/dev/null && exec bash -c "$0"; exec sh -c "$0"'


@dataclass(frozen=True, slots=True)
class Sight:
    """What one layer sees: ``who``, and the line, or the words one by one."""

    who: str
    sees: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DryRun:
    """``line``: to paste. ``needs``: variables that it takes from your shell, values unseen."""

    line: str
    needs: tuple[str, ...]
    sights: tuple[Sight, ...]

    @property
    def is_too_long(self) -> bool:
        """Whether no command line can carry it; launchpad's own way can."""
        return len(to_bytes(self.line)) > LINE_LIMIT


@dataclass(frozen=True, slots=True)
class Way:
    """How the container is reached.

    ``ssh``: the words up to the host, none for this machine. ``enter``: the words up to the
    command in the container (pct exec …), none without a container. ``host`` and ``container``:
    what to call them.
    """

    ssh: tuple[str, ...]
    enter: tuple[str, ...]
    host: str
    container: str
    state_directory: str


def dry_run(spec: JobSpec, way: Way) -> DryRun:
    """The line for ``spec``, and what each layer on the way makes of it."""
    script = _script(spec, way.state_directory)
    words = (*way.enter, "env", "-i", f"PATH={CONTAINER_PATH}", "sh", "-c", _CHOOSE_SHELL, script)
    host_line = " ".join(map(nested_word, words))
    line = " ".join(map(nested_word, (*way.ssh, host_line))) if way.ssh else host_line
    names = tuple(name for name, _value in spec.environment)
    sights = []
    if way.ssh:
        sights.append(Sight(f"the login shell of {way.host}", (host_line,)))
    sights.append(Sight(f"bash -c (or sh -c) in {way.container}", (script,)))
    words_seen = tuple(f"{at}: {word}" for at, word in enumerate(_program(spec)))
    sights.append(Sight("the program, word for word,", words_seen))
    return DryRun(_fed(line, spec), names, tuple(sights))


def _fed(line: str, spec: JobSpec) -> str:
    """``line`` with the values of the environment on its stdin: never in an argument."""
    if not spec.environment:
        return f"{line} </dev/null"
    one_line = all("\n" not in value.reveal() for _name, value in spec.environment)
    if one_line:
        values = " ".join(f'"${{{name}}}"' for name, _value in spec.environment)
        return f"printf '%s\\n' {values} | {line}"
    pieces = [
        f"printf %s \"${{{name}}}\" | base64 | tr -d '\\n'; echo"
        if "\n" in value.reveal()
        else f"printf '%s\\n' \"${{{name}}}\""
        for name, value in spec.environment
    ]
    return f"{{ {'; '.join(pieces)}; }} | {line}"


def _script(spec: JobSpec, state_directory: str) -> str:
    return "; ".join(_statements(spec, state_directory))


def _statements(spec: JobSpec, state_directory: str) -> Iterator[str]:
    """What the container's shell is told: printable, on one line, POSIX sh."""
    yield "cd /"
    for number, (_name, value) in enumerate(spec.environment, 1):
        variable = f"LAUNCHPAD_{number}"
        yield f"IFS= read -r {variable}"
        if "\n" in value.reveal():
            yield f'{variable}=$(printf %s "${variable}" | base64 -d; echo .)'
            yield f"{variable}=${{{variable}%.}}"
        yield f"export {variable}"
    yield 'B=sh; [ -z "$BASH_VERSION" ] || B=bash'
    yield "set -f; IFS=:"
    yield f'set -- $(grep -m 1 -E "{_passwd_pattern(spec.user)}" /etc/passwd)'
    yield "unset IFS; set +f"
    yield (
        'export USER="$1" LOGNAME="$1" HOME="$6" SHELL="$7" LANG=C.UTF-8 PYTHONUNBUFFERED=1'
        f" LAUNCHPAD_JOB_ID={spec.id}"
    )
    if spec.user is not None:
        yield 'U="$1" I="$3" G="$4"'
    if spec.log is None:
        log = pasted_word(f"{state_directory}/{spec.id}.log")
        yield f"umask 077; mkdir -p {pasted_word(state_directory)}; exec 4>>{log}; umask 022"
        if spec.user is not None:
            yield f'chown "$I:$G" {log}'
    program = []
    for number, word in enumerate(_program(spec), 1):
        if ends_bare(word):
            program.append(pasted_word(word))
        else:
            yield f"W{number}={pasted_word(word)}; W{number}=${{W{number}%.}}"
            program.append(f'"$W{number}"')
    if isinstance(spec.command, ShellLine):
        program[0] = "$B"
    flags = "-lc" if spec.login else "-c"
    yield " ".join(("set -- $B", flags, nested_word(_inner(spec)), "launchpad", *program))
    if spec.user is not None:
        # Both keep the environment; setpriv is util-linux's, this su busybox's.
        yield (
            'setpriv --reuid="$I" --regid="$G" --init-groups true 2>/dev/null'
            ' && set -- setpriv --reuid="$I" --regid="$G" --init-groups "$@"'
            ' || set -- busybox su -s /bin/sh -c \'exec "$@"\' -- "$U" launchpad "$@"'
        )
    yield 'setsid setsid "$@" </dev/null'


def _inner(spec: JobSpec) -> str:
    """What the login shell is told, behind its profile: then it becomes the program."""
    statements = []
    for number, (name, _value) in enumerate(spec.environment, 1):
        statements.append(f'export {name}="$LAUNCHPAD_{number}"; unset LAUNCHPAD_{number}')
    statements.append(f"cd {_path(spec.cwd or '~')} || exit; unset OLDPWD")
    if spec.log is None:
        statements.append('exec "$@" >&4 2>&1 4>&-')
    else:
        log = _path(spec.log)
        if not spec.append:
            statements.append(f"set -C; : >{log} || exit; set +C")
        statements.append(f'exec "$@" >>{log} 2>&1')
    return "; ".join(statements)


def _path(path: str) -> str:
    """A path as a word, ``~`` being the home of the job's user."""
    word = path if ends_bare(path) else f"{path}/."
    if path == "~":
        return '"$HOME"'
    if path.startswith("~/"):
        return f'"$HOME"/{pasted_word(word[2:])}'
    return pasted_word(word)


def _passwd_pattern(user: str | None) -> str:
    if user is None:
        return "^[^:]*:[^:]*:$(id -u):"
    escaped = user.replace(".", "[.]").replace("$", "[$]")
    return f"^({escaped}|[^:]*:[^:]*:{escaped}):"


def _program(spec: JobSpec) -> tuple[str, ...]:
    match spec.command:
        case Argv(words):
            return words
        case ShellLine(text):
            return ("bash", "-c", text)
