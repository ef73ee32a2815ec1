"""The program: runs the command line, and turns every failure into words and an exit code.

Whatever happens, nobody meets a traceback (except with ``LAUNCHPAD_DEBUG=1``).
"""

import signal

# Ctrl-C while Python loads modules ends the program as it ends any other; main takes over later.
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from launchpad.cli.common import Session
    from launchpad.errors import LaunchpadError
    from launchpad.sshconfig import Ahead

# The verbs that pass on a job's code say 125 where they are used wrongly, the others 2.
PASSES_ON_CODES = frozenset({"run", "rerun", "wait", "exec", "tail"})

WRONG_USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script: runs and exits."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = run(sys.argv[1:] if arguments is None else arguments)
    code = _flush(code)
    # Nothing is left to be done: what Python takes apart at its end costs 10 ms.
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command line ``arguments``; the exit code. Never raises."""
    try:
        return _run(arguments)
    except BrokenPipeError:
        return _quiet()
    except KeyboardInterrupt:
        with contextlib.suppress(OSError, KeyboardInterrupt):
            sys.stderr.write("\n")
        return INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    # Late, so that Ctrl-C while modules load is met too.
    words = list(map(_text_of, arguments))
    ahead = _look_ahead(words)
    try:
        return _call(words, ahead)
    finally:
        if ahead is not None:
            ahead.drop()


def _look_ahead(words: Sequence[str]) -> "Ahead | None":
    """For a call that reaches a host: have ssh read its configuration meanwhile."""
    if not any(":" in word for word in words):
        return None
    from launchpad.ahead import look_ahead

    return look_ahead(words, os.environ.get("LAUNCHPAD_SSH_CONFIG"))


def _call(words: Sequence[str], ahead: "Ahead | None") -> int:
    from launchpad.cli import launchpad
    from launchpad.cli.common import Session

    session = Session.begin(ahead)
    try:
        with launchpad.make_context(
            "launchpad", list(words), obj=session, terminal_width=_help_width()
        ) as context:
            return int(launchpad.invoke(context) or 0)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 # the last line of defence
        return _end_with(error, session)


def _end_with(error: Exception, session: "Session") -> int:
    """What an exception of a verb, or of click, means."""
    import click

    from launchpad.errors import LaunchpadError

    match error:
        case click.exceptions.Exit(exit_code=code):
            return int(code)
        case click.Abort():
            raise KeyboardInterrupt from error
        case click.ClickException():
            return _report(_from_click(error), session)
        case LaunchpadError():
            return _report(error, session)
        case _:
            return _report(_unexpected(error), session)


def _text_of(argument: str) -> str:
    if argument.isascii():
        return argument
    from launchpad.command import from_command_line

    return from_command_line(argument)


def _help_width() -> int:
    """How wide help is printed. (click would load shutil to find out.)"""
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns)
    except (OSError, ValueError):
        columns = 80
    return max(50, min(columns, 100) - 2)


def _from_click(error: Any) -> "LaunchpadError":
    from launchpad.errors import UsageError

    context = error.ctx if hasattr(error, "ctx") else None
    advice = f"{context.command_path} --help" if context is not None else "launchpad --help"
    message = error.format_message().rstrip(".")
    # Messages here begin with what it is about, in lower case, unless that is a name.
    message = message[:1].lower() + message[1:]
    return UsageError(message, advice=advice)


def _unexpected(error: Exception) -> "LaunchpadError":
    from launchpad.errors import ClientError

    if os.environ.get("LAUNCHPAD_DEBUG"):
        import traceback

        traceback.print_exception(error)
    return ClientError(
        f"a fault in launchpad itself: {type(error).__name__}: {error}",
        advice="please report it, with launchpad --version and what LAUNCHPAD_DEBUG=1 shows",
    )


def _exit_code(error: "LaunchpadError", session: "Session") -> int:
    from launchpad.errors import UsageError

    if isinstance(error, UsageError) and session.verb not in PASSES_ON_CODES:
        return WRONG_USAGE
    return error.exit_code


def _report(error: "LaunchpadError", session: "Session") -> int:
    """Show ``error``: in words on stderr, with ``--json`` as a document on stdout too."""
    from launchpad.cli.common import write_json
    from launchpad.cli.errors import error_document, show_error

    code = _exit_code(error, session)
    try:
        show_error(error)
        if session.json:
            write_json(error_document(error, code, session))
    except BrokenPipeError:
        _quiet()
    return code


def _flush(code: int) -> int:
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BrokenPipeError:
        return _quiet()
    except OSError as error:
        # A full disk behind `>file`: what was said did not arrive, and that must not pass as 0.
        with contextlib.suppress(OSError):
            sys.stderr.write(f"launchpad: cannot write the output: {error.strerror}\n")
        _discard()
        return code or 125
    return code


def _quiet() -> int:
    """The reader of our output went away: nobody is left to be told."""
    _discard()
    return BROKEN_PIPE


def _discard() -> None:
    # What is still buffered would raise again while the interpreter shuts down.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BrokenPipeError, OSError, ValueError):
                stream.flush()
                continue
            os.dup2(nowhere, stream.fileno())


if __name__ == "__main__":
    main()
