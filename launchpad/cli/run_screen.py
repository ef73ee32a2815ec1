"""What ``launchpad run`` shows: the talk on stderr; on stdout the id, the log or the document."""

import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from launchpad.cli.common import Session, join_words, say, write_json
from launchpad.cli.progress import Progress
from launchpad.command import to_text
from launchpad.errors import LaunchpadError, NoSuchDirectory
from launchpad.launcher import run as launcher
from launchpad.launcher.request import RunRequest, StartFailed
from launchpad.printable import printable
from launchpad.target import ThisMachine

if TYPE_CHECKING:
    from launchpad.cli.transfer_screen import Bar
    from launchpad.launcher.result import RunResult
    from launchpad.launcher.transfer import Push, Transferred
    from launchpad.state import Job
    from launchpad.terminal import TerminalFilter


def start_and_show(session: Session, request: RunRequest) -> int:
    """Start the job, show how it goes; the exit code. Raises :class:`LaunchpadError`."""
    screen = Screen(session, request)
    session.job, session.started = request.spec.id, "no"
    desk = replace(session.desk(), say=screen.say)
    watched = replace(
        request, on_sent=screen.sent, on_started=screen.started, on_output=screen.output
    )
    if request.push is not None:
        watched = screen.watch_push(watched, request.push)
    try:
        screen.progress.start()
        result = launcher.start(desk, watched)
    except StartFailed as failure:
        screen.progress.stop()
        session.started = failure.started
        if failure.started != "no":
            screen.print_id()
        raise explain(failure.error, request) from failure
    finally:
        screen.end_push()
        screen.progress.stop()
    session.job, session.started = result.job.id, "yes"
    screen.finish(result)
    return result.exit_code


def explain(error: LaunchpadError, request: RunRequest) -> LaunchpadError:
    """``error`` with what only this side can know: whose home a directory is."""
    home = str(Path.home())
    cwd = request.spec.cwd
    if (
        isinstance(error, NoSuchDirectory)
        and cwd is not None
        and (cwd == home or cwd.startswith(f"{home}/"))
        and not isinstance(request.target, ThisMachine)
    ):
        there = f"~{cwd.removeprefix(home)}"
        error.details = "that is in the home of THIS machine: your shell expanded the ~"
        error.advice = f"quote it: -C {_single_quoted(there)}"
    return error


def _single_quoted(text: str) -> str:
    word = join_words([text])
    return word if word.startswith("'") else f"'{word}'"


@dataclass(slots=True)
class Screen:
    """The screen of one start."""

    session: Session
    request: RunRequest
    progress: Progress = field(init=False)
    _began: float = field(default_factory=time.monotonic)
    _started: bool = False
    _id_printed: bool = False
    _filter: "TerminalFilter | None" = None
    _bar: "Bar | None" = None

    def __post_init__(self) -> None:
        if self.request.mode == "follow" and sys.stdout.isatty():
            import shutil

            from launchpad.terminal import TerminalFilter

            columns = shutil.get_terminal_size().columns
            colour = self.session.colour(sys.stdout)
            self._filter = TerminalFilter(columns=columns, colour=colour)
        label = f"starting {self.request.spec.id} on {self.request.target}"
        self.progress = Progress(label, enabled=self.session.colour(sys.stderr))

    def say(self, line: str) -> None:
        """A line for the user, with the waiting line and an unfinished line of the log left."""
        self.progress.stop()
        if self._filter is not None:
            sys.stdout.write(self._filter.break_line())
            sys.stdout.flush()
        say(line)

    def watch_push(self, request: RunRequest, push: "Push") -> RunRequest:
        """``request``, with the push that comes first on the screen too."""
        from launchpad.cli.transfer_screen import Bar

        self._bar = bar = Bar(self.session, "pushing")

        def on_progress(done: int, total: int | None) -> None:
            self.progress.stop()
            bar.show(done, total)

        shown = replace(push, on_progress=on_progress, measured=bar.enabled)
        return replace(request, push=shown, on_pushed=self._pushed)

    def end_push(self) -> None:
        """Take its bar away; may be called twice."""
        if self._bar is not None:
            self._bar.close()

    def _pushed(self, done: "Transferred") -> None:
        from launchpad.cli.transfer_screen import finish

        self.end_push()
        self.progress.stop()
        finish(done, "pushed", f"to {self.request.push.path}" if self.request.push else "")

    def sent(self) -> None:
        """The container works on it: load what the answer will need."""
        import launchpad.cli.run_words  # noqa: F401

    def started(self, job: "Job") -> None:
        """The job's process is proven: say so at once."""
        from launchpad.cli.run_words import log_line, started_line

        self._started = True
        self.session.started = "yes"
        self.say(started_line(job, time.monotonic() - self._began))
        if self.request.mode != "confirm":
            self.say(log_line(job))
            self.print_id()
        if self.request.mode != "follow":
            self.progress = Progress(self._waiting_label(), enabled=self._moves())
            self.progress.start()

    def output(self, data: bytes) -> None:
        """A piece of the log, in mode "follow"."""
        if self._filter is None:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            sys.stdout.write(self._filter.feed(data) + self._filter.flush())
            sys.stdout.flush()

    def finish(self, result: "RunResult") -> None:
        """The end of the verb: what is known now."""
        from launchpad.cli.run_words import result_lines

        if self._filter is not None:
            sys.stdout.write(self._filter.finish())
        for line in result_lines(result, self.request):
            self.say(line)
        if self.session.json:
            from launchpad.document import job_document

            lines = [to_text(line) for line in result.first_lines]
            write_json({**job_document(result.job), "first_lines": lines})
        else:
            self.print_id()

    def print_id(self) -> None:
        """The id, alone, on stdout; once, and not where the log or a document is printed."""
        if self._id_printed or self.session.json or self.request.mode == "follow":
            return
        self._id_printed = True
        sys.stdout.write(f"{self.session.job}\n")
        sys.stdout.flush()

    def _moves(self) -> bool:
        return self.session.colour(sys.stderr)

    def _waiting_label(self) -> str:
        if self.request.ready is not None:
            return f"waiting for /{printable(self.request.ready)}/"
        if self.request.mode == "wait":
            return f"waiting for {self.request.spec.id} to end"
        return f"watching {self.request.spec.id}"
