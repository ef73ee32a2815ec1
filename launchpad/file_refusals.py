"""Why files could not be copied: the words of push.sh and pull.sh as errors for people. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from launchpad.errors import ContainerError, LaunchpadError, ShellError
from launchpad.printable import printable, printable_lines

_SHOWN = 5

_HARMLESS = ("file changed as we read it", "File removed before we read it", "socket ignored")


@dataclass(frozen=True, slots=True)
class FileRefusal:
    """``reason`` and ``detail`` as reported.

    ``where``: the target as the user spelt it; ``path``: as the user wrote it; ``name``: of what is
    pushed, empty for a pull.
    """

    reason: str
    detail: str
    where: str
    path: str
    name: str = ""


def _no_tar(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"there is no tar in {refusal.where}: files cannot be copied",
        advice="install tar or busybox in the container",
    )


def _user(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"there is no user {refusal.detail} in {refusal.where}",
        advice="-u takes a name or uid from the container's passwd",
    )


def _user_not_root(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"only root can act as {refusal.detail} in {refusal.where}", advice="leave -u away"
    )


def _switch_user(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"{refusal.where} has nothing that can act as {refusal.detail}",
        details="neither setpriv (util-linux) nor busybox su",
        advice="install util-linux in the container",
    )


def _is_directory(refusal: FileRefusal) -> LaunchpadError:
    name = printable(refusal.name)
    return ContainerError(
        f"{refusal.detail} is a directory in {refusal.where}, and {name} is a file",
        details="a file does not take the place of a directory",
        advice=f"{refusal.where}:{refusal.path.rstrip('/')}/{name}",
    )


def _not_directory(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"{refusal.detail} in {refusal.where} is not a directory",
        advice="name another path, or remove it",
    )


def _no_entry(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"the directory {refusal.detail} cannot be entered in {refusal.where}",
        advice="may the user enter it? -u takes another one",
    )


def _no_reading(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"{refusal.detail} cannot be read in {refusal.where}",
        advice="may the user read it? -u takes another one",
    )


def _no_writing(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"nothing can be written at {refusal.path} in {refusal.where}",
        details=refusal.detail,
        advice="may the user write there? is the disk full or read-only?",
    )


def _missing(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"there is no {refusal.detail} in {refusal.where}",
        advice=f"launchpad exec {refusal.where} -- ls -l {_parent(refusal.path)}",
    )


def _special(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"{refusal.detail} in {refusal.where} is neither a file nor a directory",
        advice="devices, FIFOs and sockets cannot be copied",
    )


def _cut_off(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"not everything reached {refusal.where}: nothing of {refusal.path} was changed",
        advice="push again",
    )


def _unpack(refusal: FileRefusal) -> LaunchpadError:
    advice = "push again"
    if "o space left" in refusal.detail:
        advice = f"launchpad exec {refusal.where} -- df -h {refusal.path}"
    return ContainerError(
        f"tar in {refusal.where} failed: nothing of {refusal.path} was changed",
        details=_lines(refusal.detail),
        advice=advice,
    )


def _conflict(refusal: FileRefusal) -> LaunchpadError:
    places = refusal.detail.rstrip("\n").split("\n")
    first = places[0]
    if first.endswith("/"):
        what = f"{first} is a directory in {refusal.where}, and something else here"
    else:
        what = f"{first} is a link or a file in {refusal.where}, and a directory here"
    more = f"and {len(places) - 1} more of this kind; " if len(places) > 1 else ""
    return ContainerError(
        what,
        details=f"below {refusal.path}; {more}nothing there was changed",
        advice="remove it there, or leave it out: --exclude",
    )


def _place(refusal: FileRefusal) -> LaunchpadError:
    return ContainerError(
        f"not every file could be put in its place at {refusal.path} in {refusal.where}",
        details=_lines(refusal.detail),
        advice="each file there is whole, the old or the new one; push again once that is mended",
    )


_ERRORS: dict[str, Callable[[FileRefusal], LaunchpadError]] = {
    "conflict": _conflict,
    "cut-off": _cut_off,
    "is-directory": _is_directory,
    "missing": _missing,
    "no-entry": _no_entry,
    "no-reading": _no_reading,
    "no-tar": _no_tar,
    "no-writing": _no_writing,
    "not-directory": _not_directory,
    "place": _place,
    "special": _special,
    "switch-user": _switch_user,
    "unpack": _unpack,
    "user": _user,
    "user-not-root": _user_not_root,
}


def file_error(refusal: FileRefusal) -> LaunchpadError:
    """The error that tells a person what ``refusal`` means and what to do about it."""
    make = _ERRORS.get(refusal.reason)
    if make is not None:
        return make(refusal)
    return ShellError(
        f"the shell in {refusal.where} refused: {refusal.reason}",
        details=refusal.detail,
        advice="another version of launchpad at work there?",
    )


def judge_tar(text: str, code: str) -> tuple[list[str], str]:
    """What tar said while it packed: remarks, and what kept it from packing everything.

    A file that somebody writes to is normal where a job runs; its copy is as it was for a moment.
    """
    remarks, faults = [], []
    for line in printable_lines(text):
        plain = line.removeprefix("tar: ").removeprefix("./")
        if any(words in line for words in _HARMLESS):
            remarks.append(plain)
        elif "exit delayed from previous errors" not in line and "failure status" not in line:
            faults.append(plain)
    if code in {"0", ""} or (code == "1" and not faults and remarks):
        return remarks, ""
    return remarks, "\n".join(faults[:_SHOWN]) or f"tar ended with {code}"


def _lines(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines[:_SHOWN])


def _parent(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0] or "/"
