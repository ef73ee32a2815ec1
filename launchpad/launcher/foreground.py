"""`exec`: a command in the container, with this process's own streams.

On pipes its stdin, stdout and stderr stay apart, byte for byte, and signals reach it by a small
call of their own. On a terminal it has a terminal in the container.
"""

import signal
import time
from dataclasses import dataclass, field, replace

from launchpad import console
from launchpad.command import Argv
from launchpad.console import GaveUp, Signals, StdinPump
from launchpad.errors import INTERRUPTED, LaunchpadError
from launchpad.execstream import Beginning, Begun, Ending
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.launcher.on_terminal import (
    Judge,
    broken_off,
    on_terminal,
    refused,
    terminal_name,
)
from launchpad.proxmox import ANSWER_DEADLINE
from launchpad.refusals import Refusal, refusal_error
from launchpad.scripts import EXEC_SCRIPTS, RemoteCall, exec_call, terminal_call
from launchpad.target import Target
from launchpad.transport.base import Channel, Completed, Exited, Output, Stream

# What the command has left behind may hold its streams open; when it has ended, and nothing more
# came for this long, they are given up (seconds).
_AFTERLIFE = 2.0

_SIGNAL_DEADLINE = 10.0

_DESCRIPTORS = {Stream.STDOUT: console.STDOUT, Stream.STDERR: console.STDERR}


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """What `exec` was asked for. ``command`` None: the login shell.

    ``terminal``: give it a terminal; stdin must be one. ``stdin``: pass ours on (on pipes).
    """

    target: Target
    command: Argv | None
    terminal: bool = False
    stdin: bool = True


def execute(desk: Desk, request: ExecRequest) -> int:
    """Run the command to its end; its exit code. Raises :class:`LaunchpadError`."""
    words = request.command.words if request.command else ()
    console.flush_standard_streams()
    with Signals() as signals:
        try:
            with connect(request.target, desk.options_for(request.target)) as contact:
                if request.terminal:
                    name = terminal_name()
                    words = (name, *words)
                    judge = _judge_command(request.target, request.command)
                    call = terminal_call(contact.prefix, EXEC_SCRIPTS, "execute_words", words)
                    return on_terminal(desk, contact, call, signals, judge)
                call = exec_call(contact.prefix, words)
                return _OnPipes(desk, request, contact, call, signals).run()
        except GaveUp as end:
            if end.number == signal.SIGINT:
                return INTERRUPTED
            return end.exit_code


@dataclass(slots=True)
class _OnPipes:
    """A command on three pipes."""

    desk: Desk
    request: ExecRequest
    contact: Contact
    call: RemoteCall
    signals: Signals
    beginning: dict[Stream, Beginning] = field(init=False)
    ending: Ending = field(init=False)

    def __post_init__(self) -> None:
        self.beginning = {stream: Beginning(self.call.marker) for stream in Stream}
        self.ending = Ending(self.call.marker)

    def run(self) -> int:
        """To its end; the exit code."""
        channel = self.contact.start(self.call)
        pump = StdinPump(channel.send, channel.close_stdin)
        try:
            self._await_begin(channel)
            if self.request.stdin:
                pump.start()
            else:
                channel.close_stdin()
            return self._pass_on(channel)
        except GaveUp:
            self._farewell()
            raise
        finally:
            self.signals.deliver = None
            pump.stop()
            channel.close()

    def _await_begin(self, channel: Channel) -> None:
        """Until the command runs. Raises the error of the layer that failed."""
        stdout = self.beginning[Stream.STDOUT]
        ends = time.monotonic() + ANSWER_DEADLINE
        while stdout.begun is None:
            event = channel.receive(max(0.0, ends - time.monotonic()))
            match event:
                case Output(stream, data):
                    self._write(stream, data)
                case Exited(code):
                    stderr = bytes(self.beginning[Stream.STDERR].noise)
                    done = Completed(bytes(stdout.noise), stderr, code)
                    raise refused(self.contact, self.call, done, self._judge())
                case None:
                    stderr = bytes(self.beginning[Stream.STDERR].noise)
                    done = Completed(bytes(stdout.noise), stderr, None, silent=True)
                    raise refused(self.contact, self.call, done, self._judge())

    def _judge(self) -> Judge:
        return _judge_command(self.request.target, self.request.command)

    def _pass_on(self, channel: Channel) -> int:
        """Everything to the end of the command."""
        while True:
            ended = self.ending.code
            event = channel.receive(None if ended is None else _AFTERLIFE)
            match event:
                case Output(stream, data):
                    self._write(stream, data)
                case Exited() | None if ended is not None:
                    return ended
                case _:
                    console.write_all(console.STDERR, self.ending.rest())
                    raise broken_off(self.request.target)

    def _write(self, stream: Stream, data: bytes) -> None:
        own = self.beginning[stream].feed(data)
        if stream is Stream.STDERR:
            own = self.ending.feed(own)
        elif self.beginning[stream].begun is not None:
            # Before the first byte is shown: whoever waited for it may send a signal at once.
            self.signals.deliver = self._deliver
        if own:
            console.write_all(_DESCRIPTORS[stream], own)

    def _deliver(self, number: int) -> None:
        """Send the command a signal, while it runs on; in a thread."""
        begun = self.beginning[Stream.STDOUT].begun
        if begun is None:
            return
        options = self.desk.options_for(self.request.target)
        try:
            try:
                _send_signal(self.contact, begun, number)
            except LaunchpadError as error:
                if self.signals.deliver is None:
                    return  # the command has ended meanwhile, and its connection was closed
                # A host that allows one session on a connection needs another connection.
                options.note(f"one more connection, for the signal: {error.what}")
                with connect(self.request.target, replace(options, interactive=False)) as another:
                    _send_signal(another, begun, number)
        except LaunchpadError as error:
            name = signal.Signals(number).name
            self.desk.say(f"launchpad: {name} did not reach the command: {error.what}")

    def _farewell(self) -> None:
        begun = self.beginning[Stream.STDOUT].begun
        if begun is not None and self.ending.code is None:
            self.desk.say(
                f"launchpad: left PID {begun.pid} in {self.request.target} to itself; it may run on"
            )


def _send_signal(contact: Contact, begun: Begun, number: int) -> None:
    words = [str(begun.pid), str(begun.ticks), str(int(number))]
    contact.ask(("common", "signal"), words, deadline=_SIGNAL_DEADLINE)


def _judge_command(target: Target, command: Argv | None) -> Judge:
    def judge(code: int, reason: str, detail: str) -> LaunchpadError:
        known = command or Argv(("the login shell",))
        error = refusal_error(Refusal(reason, code, detail, str(target), known))
        if reason == "not-found" and "/" in detail:
            error.advice = "does the path exist in the container? relative paths start at home"
        return error

    return judge
