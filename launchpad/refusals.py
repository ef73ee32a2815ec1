"""Why a job could not be started: launch.sh's words as errors for people. Pure.

Each reason is one that :file:`remote/launch.sh` or :file:`remote/main.sh` reports. In every one
of these cases nothing runs and no job directory was left behind.
"""

from collections.abc import Callable
from dataclasses import dataclass

from launchpad.command import Argv, Command
from launchpad.errors import (
    CANNOT_EXECUTE,
    NOT_FOUND,
    ContainerError,
    JobRefused,
    LaunchpadError,
    NoSuchDirectory,
    ShellError,
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """``reason`` and ``detail`` as reported; ``where``: the target as the user spelt it."""

    reason: str
    code: int
    detail: str
    where: str
    command: Command

    @property
    def program(self) -> str:
        """The first word of the command, as the user wrote it."""
        return self.command.words[0] if isinstance(self.command, Argv) else "sh"


def _not_found(refusal: Refusal) -> LaunchpadError:
    program = refusal.program
    what = f"{program}: not found in {refusal.where} (127)"
    if program in {"conda", "mamba", "micromamba"}:
        return JobRefused(
            what,
            details=f"{program}'s set-up sits in .bashrc, which is for interactive shells only",
            advice=_conda_advice(refusal),
            exit_code=NOT_FOUND,
        )
    advice = (
        "does the path exist in the container? relative paths start at -C"
        if "/" in program
        else "give its full path; what .bashrc adds to PATH is for interactive shells only"
    )
    return JobRefused(what, advice=advice, exit_code=NOT_FOUND)


def _conda_advice(refusal: Refusal) -> str:
    words = refusal.command.words if isinstance(refusal.command, Argv) else ()
    environment = words[2] if words[1:2] == ("activate",) and len(words) > 2 else "ENV"  # noqa: PLR2004
    return (
        f"write: -- /opt/conda/bin/conda run --no-capture-output -n {environment} python3 train.py"
    )


def _not_executable(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"{refusal.detail}: permission denied in {refusal.where} (126)",
        details="the file is there, but it is not executable",
        advice=f"chmod +x {refusal.detail}, or name its interpreter: python3 {refusal.detail}",
        exit_code=CANNOT_EXECUTE,
    )


def _is_directory(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"{refusal.detail} is a directory in {refusal.where}, not a program (126)",
        advice="name the program in it",
        exit_code=CANNOT_EXECUTE,
    )


def _exec(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"{refusal.detail}: cannot be executed in {refusal.where} (126)",
        details="the file is there and marked executable, but the kernel would not take it",
        advice="another architecture, an interpreter in its first line that does not exist, or"
        " arguments and environment of more than 2 MiB together?",
        exit_code=CANNOT_EXECUTE,
    )


def _directory(refusal: Refusal) -> LaunchpadError:
    return NoSuchDirectory(
        f"the directory {refusal.detail} cannot be entered in {refusal.where}",
        advice="does it exist there, and may the job's user enter it?",
    )


def _user(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"there is no user {refusal.detail} in {refusal.where}",
        advice="-u takes a name or uid from the container's passwd",
    )


def _user_not_root(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"only root can start a job as {refusal.detail} in {refusal.where}",
        advice="leave -u away",
    )


def _switch_user(refusal: Refusal) -> LaunchpadError:
    return ContainerError(
        f"{refusal.where} has nothing that can start a job as {refusal.detail}",
        details="neither setpriv (util-linux) nor busybox su, which keep the PID",
        advice="install util-linux in the container",
    )


def _log_exists(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"the log {refusal.detail} exists already in {refusal.where}",
        advice="--append adds to it; or name another one",
    )


def _log_link(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"the log {refusal.detail} in {refusal.where} is a link that another user has put there",
        details="the job would append to whatever it leads to",
        advice="name the file itself, or run the job as that user: -u USER",
    )


def _log(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"the log {refusal.detail} cannot be written in {refusal.where}",
        advice="does its directory exist, and may the job's user write there?",
    )


def _environment(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"{refusal.detail} cannot be set in {refusal.where}: the shell there holds it read-only",
        advice="leave it away, or start with --no-login if a profile made it read-only",
    )


def _state_directory(refusal: Refusal) -> LaunchpadError:
    return ContainerError(
        f"launchpad's directory in {refusal.where} cannot be written",
        details=refusal.detail,
        advice="is the disk full or read-only? launchpad prune TARGET frees what ended jobs hold",
    )


def _state_owner(refusal: Refusal) -> LaunchpadError:
    return ContainerError(
        f"{refusal.detail} in {refusal.where} is a link, or open to others, or somebody else's",
        details="whoever may write in it could read all logs and forge all records",
        advice=f"look at it: ls -ld {refusal.detail}; if all in it is yours: chmod go-w",
    )


def _duplicate(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"the job {refusal.detail} exists already in {refusal.where}",
        advice=f"launchpad status {refusal.detail}",
    )


def _profile_left(refusal: Refusal) -> LaunchpadError:
    return ShellError(
        f"a login profile in {refusal.where} exits or starts another program",
        details="/etc/profile, or .bash_profile, .bash_login or .profile of the job's user",
        advice="--no-login starts the job without it",
    )


def _profile_hangs(refusal: Refusal) -> LaunchpadError:
    return ShellError(
        f"a login profile in {refusal.where} did not end within {refusal.detail} s",
        details="/etc/profile, or .bash_profile, .bash_login or .profile of the job's user",
        advice="--no-login starts the job without it",
    )


def _shell(refusal: Refusal) -> LaunchpadError:
    return ShellError(
        f"the shell in {refusal.where} ended before the program could start",
        details=refusal.detail,
        advice="--no-login leaves the login profile out",
    )


def _exec_hangs(refusal: Refusal) -> LaunchpadError:
    return JobRefused(
        f"the kernel of {refusal.where} did not start {refusal.program} within {refusal.detail} s",
        advice="is it on a network mount that does not answer?",
    )


def _no_setsid(refusal: Refusal) -> LaunchpadError:
    return ContainerError(
        f"nothing in {refusal.where} can detach a process",
        details="no setsid, python3, perl or nohup in its PATH",
        advice="install util-linux or busybox in the container",
    )


def _launcher_died(refusal: Refusal) -> LaunchpadError:
    return ContainerError(
        f"launchpad's own processes in {refusal.where} were killed during the start",
        details="the job does not run",
        advice="is the container out of memory? try again",
    )


_ERRORS: dict[str, Callable[[Refusal], LaunchpadError]] = {
    "directory": _directory,
    "duplicate": _duplicate,
    "environment": _environment,
    "exec": _exec,
    "exec-hangs": _exec_hangs,
    "is-directory": _is_directory,
    "launcher-died": _launcher_died,
    "log": _log,
    "log-exists": _log_exists,
    "log-link": _log_link,
    "no-setsid": _no_setsid,
    "not-executable": _not_executable,
    "not-found": _not_found,
    "profile-hangs": _profile_hangs,
    "profile-left": _profile_left,
    "shell": _shell,
    "state-directory": _state_directory,
    "state-owner": _state_owner,
    "switch-user": _switch_user,
    "user": _user,
    "user-not-root": _user_not_root,
}


def refusal_error(refusal: Refusal) -> LaunchpadError:
    """The error that tells a person what ``refusal`` means and what to do about it."""
    make = _ERRORS.get(refusal.reason)
    if make is not None:
        return make(refusal)
    return ShellError(
        f"the start in {refusal.where} was refused: {refusal.reason}",
        details=refusal.detail,
        advice="another version of launchpad at work there?",
    )
