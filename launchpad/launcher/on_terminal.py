"""A command on a terminal in the container, shown on ours: what `exec -t` and `attach` share."""

import os
import re
import time
from collections.abc import Callable

from launchpad import console
from launchpad.command import to_text
from launchpad.console import Signals, StdinPump
from launchpad.errors import LaunchpadError, LineLost
from launchpad.execstream import Beginning, Ending, OneTerminal
from launchpad.frames import parse_frames
from launchpad.launcher.contact import Contact
from launchpad.launcher.desk import Desk
from launchpad.proxmox import ANSWER_DEADLINE
from launchpad.screenmodes import ScreenModes
from launchpad.scripts import RemoteCall
from launchpad.target import Target
from launchpad.transport.base import Channel, Completed, Exited, Output, Stream, Terminal

# How often a terminal's size is looked at (seconds).
_TICK = 0.2

# What a script means by the code, the reason and the detail with which it refused.
Judge = Callable[[int, str, str], LaunchpadError]


def refused(contact: Contact, call: RemoteCall, done: Completed, judge: Judge) -> LaunchpadError:
    """Why nothing was run, judging by what came in its place."""
    # Each terminal on the way makes newlines longer.
    frames = parse_frames(call.marker, re.sub(rb"\r+\n", b"\n", done.stdout))
    for frame in frames:
        if frame.name == "failed" and re.fullmatch(r"12[567] \S+", " ".join(frame.words)):
            code, reason = frame.words
            return judge(int(code), reason, to_text(frame.payload).rstrip("\n"))
    return contact.explain(done, answered=bool(frames))


def broken_off(target: Target) -> LaunchpadError:
    """The error for a command whose end nobody told."""
    return LineLost(
        f"the command in {target} broke off: nobody told its exit code",
        advice="was its container stopped, or its shell killed?",
    )


def terminal_name() -> str:
    """The type of our terminal, as programs on the far side are told of it."""
    name = os.environ.get("TERM", "")
    plain = name.replace("-", "").replace("+", "").replace(".", "").replace("_", "")
    return name if plain.isascii() and plain.isalnum() else "xterm"


def on_terminal(
    desk: Desk,
    contact: Contact,
    call: RemoteCall,
    signals: Signals,
    judge: Judge,
) -> int:
    """Run ``call`` on a terminal in the container, shown on ours; its exit code.

    Our terminal is as before afterwards, whatever happens. Raises :class:`LaunchpadError`.
    """
    columns, rows = console.window_size()
    channel = contact.start(call, Terminal(terminal_name(), columns, rows))
    session = _OnTerminal(contact, call, signals, channel, judge)
    # ssh itself may ask for a password there; nobody else has anything to say before the begin.
    session.asks = contact.link.name == "openssh" and desk.options_for(contact.target).interactive
    pump = StdinPump(channel.send, channel.close_stdin)
    try:
        with console.raw_terminal():
            try:
                pump.start()
                return session.run()
            finally:
                pump.stop()
                session.leave()
    finally:
        channel.close()


class _OnTerminal:
    """A command on a terminal: one stream, there and back."""

    def __init__(
        self,
        contact: Contact,
        call: RemoteCall,
        signals: Signals,
        channel: Channel,
        judge: Judge,
    ) -> None:
        self._judge = judge
        self._contact = contact
        self._call = call
        self._signals = signals
        self._channel = channel
        self._beginning = Beginning(call.marker)
        self._ending = Ending(call.marker)
        self._newlines = OneTerminal(0)
        self._modes = ScreenModes()
        self.asks = False

    def run(self) -> int:
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
                    raise self._broken(code)
                case None if self._beginning.begun:
                    self._write(self._ending.feed(self._newlines.rest()))
                case _ if self._beginning.begun or self.asks or time.monotonic() < ends:
                    pass
                case _:
                    raise self._broken(None, silent=True)
        return self._ending.code

    def leave(self) -> None:
        """Undo what the command has switched on in our terminal, and could not switch off."""
        if undo := self._modes.undo():
            console.write_all(console.STDOUT, undo)

    def _show(self, data: bytes) -> None:
        known = len(self._beginning.noise)
        own = self._beginning.feed(data)
        if self._beginning.begun is None and self.asks:
            self._write(bytes(self._beginning.noise[known:]))
        if self._beginning.begun is not None:
            self._newlines.returns = self._beginning.begun.returns
        self._write(self._ending.feed(self._newlines.feed(own)))

    def _write(self, data: bytes) -> None:
        if data:
            self._modes.feed(data)
            console.write_all(console.STDOUT, data)

    def _broken(self, code: int | None, *, silent: bool = False) -> LaunchpadError:
        if self._beginning.begun is None:
            # What is said on a terminal is all one stream: why it failed may stand there.
            noise = bytes(self._beginning.noise)
            done = Completed(noise, noise, code, silent=silent)
            return refused(self._contact, self._call, done, self._judge)
        return broken_off(self._contact.target)
