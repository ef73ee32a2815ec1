"""`exec`: a command in the container, with this process's own streams.

On pipes its stdin, stdout and stderr stay apart, byte for byte, and signals reach it by a small
call of their own. On a terminal it has a terminal in the container.
"""

import os
import re
import signal
import time
from dataclasses import dataclass, field, replace

from launchpad import console
from launchpad.command import Argv, to_text
from launchpad.console import GaveUp, Signals, StdinPump
from launchpad.errors import INTERRUPTED, LaunchpadError, LineLost
from launchpad.execstream import Beginning, Begun, Ending, OneTerminal
from launchpad.frames import parse_frames
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.proxmox import ANSWER_DEADLINE
from launchpad.refusals import Refusal, refusal_error
from launchpad.screenmodes import ScreenModes
from launchpad.scripts import EXEC_SCRIPTS, RemoteCall, exec_call, terminal_call
from launchpad.target import Target
from launchpad.transport.base import Channel, Completed, Exited, Output, Stream, Terminal

# What the command has left behind may hold its streams open; when it has ended, and nothing more
# came for this long, they are given up (seconds).
_AFTERLIFE = 2.0

# How often a terminal's size is looked at (seconds).
_TICK = 0.2

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
                    call = terminal_call(contact.prefix, EXEC_SCRIPTS, "execute_words", words)
                    return on_terminal(desk, contact, call, signals, request.command)
                call = exec_call(contact.prefix, words)
                return _OnPipes(desk, request, contact, call, signals).run()
        except GaveUp as end:
            if end.number == signal.SIGINT:
                return INTERRUPTED
            return end.exit_code


def terminal_name() -> str:
    """The type of our terminal, as programs on the far side are told of it."""
    name = os.environ.get("TERM", "")
    plain = name.replace("-", "").replace("+", "").replace(".", "").replace("_", "")
    return name if plain.isascii() and plain.isalnum() else "xterm"


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
                    raise refused(self.contact, self.call, done, self.request.command)
                case None:
                    stderr = bytes(self.beginning[Stream.STDERR].noise)
                    done = Completed(bytes(stdout.noise), stderr, None, silent=True)
                    raise refused(self.contact, self.call, done, self.request.command)

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
                    raise _broken_off(self.request.target)

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


def _broken_off(target: Target) -> LaunchpadError:
    return LineLost(
        f"the command in {target} broke off: nobody told its exit code",
        advice="was its container stopped, or its shell killed?",
    )


def refused(
    contact: Contact, call: RemoteCall, done: Completed, command: Argv | None
) -> LaunchpadError:
    """Why nothing was run, judging by what came in its place."""
    # Each terminal on the way makes newlines longer.
    frames = parse_frames(call.marker, re.sub(rb"\r+\n", b"\n", done.stdout))
    for frame in frames:
        if frame.name == "failed":
            code, reason = frame.words
            refusal = Refusal(
                reason=reason,
                code=int(code),
                detail=to_text(frame.payload).rstrip("\n"),
                where=str(contact.target),
                command=command or Argv(("the login shell",)),
            )
            error = refusal_error(refusal)
            if reason == "not-found" and "/" in refusal.detail:
                error.advice = "does the path exist in the container? relative paths start at home"
            return error
    return contact.explain(done, answered=bool(frames))


def on_terminal(
    desk: Desk,
    contact: Contact,
    call: RemoteCall,
    signals: Signals,
    command: Argv | None = None,
) -> int:
    """Run ``call`` on a terminal in the container, shown on ours; its exit code.

    Our terminal is as before afterwards, whatever happens. Raises :class:`LaunchpadError`.
    """
    columns, rows = console.window_size()
    channel = contact.start(call, Terminal(terminal_name(), columns, rows))
    session = _OnTerminal(desk, contact, call, signals, channel)
    pump = StdinPump(channel.send, channel.close_stdin)
    try:
        with console.raw_terminal():
            try:
                pump.start()
                return session.run(command)
            finally:
                pump.stop()
                session.leave()
    finally:
        channel.close()


class _OnTerminal:
    """A command on a terminal: one stream, there and back."""

    def __init__(
        self, desk: Desk, contact: Contact, call: RemoteCall, signals: Signals, channel: Channel
    ) -> None:
        self._contact = contact
        self._call = call
        self._signals = signals
        self._channel = channel
        self._beginning = Beginning(call.marker)
        self._ending = Ending(call.marker)
        self._newlines = OneTerminal(0)
        self._modes = ScreenModes()
        # ssh itself may ask for a password there; nobody else has anything to say before the begin.
        options = desk.options_for(contact.target)
        self._asks = contact.link.name == "openssh" and options.interactive

    def run(self, command: Argv | None) -> int:
        """To its end; the exit code."""
        ends = time.monotonic() + ANSWER_DEADLINE
        while self._ending.code is None:
            if self._signals.resized:
                self._signals.resized = False
                self._channel.resize(*console.window_size())
            event = self._channel.receive(_TICK)
            match event:
                case Output(Stream.STDOUT, data):
                    self._show(data)
                case Exited(code):
                    self._write(self._ending.feed(self._newlines.rest()) + self._ending.rest())
                    raise self._broken(code, command)
                case None if self._beginning.begun:
                    self._write(self._ending.feed(self._newlines.rest()))
                case _ if self._beginning.begun or self._asks or time.monotonic() < ends:
                    pass
                case _:
                    raise self._broken(None, command, silent=True)
        return self._ending.code

    def leave(self) -> None:
        """Undo what the command has switched on in our terminal, and could not switch off."""
        if undo := self._modes.undo():
            console.write_all(console.STDOUT, undo)

    def _show(self, data: bytes) -> None:
        known = len(self._beginning.noise)
        own = self._beginning.feed(data)
        if self._beginning.begun is None and self._asks:
            self._write(bytes(self._beginning.noise[known:]))
        if self._beginning.begun is not None:
            self._newlines.returns = self._beginning.begun.returns
        self._write(self._ending.feed(self._newlines.feed(own)))

    def _write(self, data: bytes) -> None:
        if data:
            self._modes.feed(data)
            console.write_all(console.STDOUT, data)

    def _broken(
        self, code: int | None, command: Argv | None, *, silent: bool = False
    ) -> LaunchpadError:
        if self._beginning.begun is None:
            # What is said on a terminal is all one stream: why it failed may stand there.
            noise = bytes(self._beginning.noise)
            done = Completed(noise, noise, code, silent=silent)
            return refused(self._contact, self._call, done, command)
        return _broken_off(self._contact.target)
