"""How a failure looks: what happened and where, what that layer said, what to do next."""

from typing import TYPE_CHECKING, Any

from launchpad.cli.common import Session, say
from launchpad.errors import LaunchpadError, UsageError
from launchpad.printable import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


def show_error(error: LaunchpadError) -> None:
    """Print ``error`` on stderr."""
    for line in error_lines(error):
        say(line)


def error_lines(error: LaunchpadError) -> "Iterator[str]":
    """The lines of ``error``, safe to show."""
    layer = "" if isinstance(error, UsageError) else f"   [{error.layer}]"
    yield f"launchpad: {printable(error.what)}{layer}"
    for line in printable_lines(error.details):
        yield f"  | {line}"
    for number, line in enumerate(printable_lines(error.advice)):
        yield f"  {'help: ' if number == 0 else '      '}{line}"


def error_document(error: LaunchpadError, exit_code: int, session: Session) -> dict[str, Any]:
    """``error`` as the document of ``--json``."""
    return {
        "schema": 1,
        "id": session.job.text if session.job else None,
        "started": session.started,
        "error": {
            "layer": str(error.layer),
            "what": error.what,
            "details": error.details,
            "advice": error.advice,
            "exit_code": exit_code,
        },
    }
