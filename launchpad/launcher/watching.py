"""`status --watch`: the same answers again and again, without entering a container again.

Each container has one thread and one channel. The far side answers once for each byte that it
gets, and ends itself 15 s after the last one.
"""

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from launchpad.errors import LaunchpadError, ShellError
from launchpad.frames import Frame, FrameReader
from launchpad.launcher.asking import (
    PATIENCE,
    SCRIPTS,
    WHOLE_ANSWER,
    Answer,
    Question,
    jobs_of,
    question_words,
    state_directory_of,
)
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.launcher.status import Report, choose, keep, questions_of, report
from launchpad.replies import parse_facts
from launchpad.scripts import remote_call
from launchpad.transport.base import Channel, Completed, Exited, Output, Stream

INTERVAL = 2.0

# Where a container does not answer, it is tried again after this (seconds).
_RETRY = 5.0


@dataclass(slots=True)
class _Line:
    """One open call of remote/status.sh."""

    desk: Desk
    question: Question
    contact: Contact
    channel: Channel
    reader: FrameReader
    _stderr: bytearray = field(default_factory=bytearray)

    @classmethod
    def open(cls, desk: Desk, question: Question) -> "_Line":
        options = desk.options_for(question.target)
        options = replace(options, interactive=False, timeout=min(options.timeout, PATIENCE))
        contact = connect(question.target, options)
        try:
            words = question_words(question, state_directory_of(contact, question), "watch")
            call = remote_call(contact.prefix, SCRIPTS, words)
            channel = contact.start(call)
        except BaseException:
            contact.close()
            raise
        return cls(desk, question, contact, channel, FrameReader(call.marker))

    def answer(self) -> Answer:
        """The next whole answer. Raises the error of the layer that kept it from us."""
        frames: list[Frame] = []
        now = time.monotonic()
        ends, next_ends = now + WHOLE_ANSWER, now + PATIENCE
        while not frames or frames[-1].name != "done":
            event = self.channel.receive(max(0.0, min(ends, next_ends) - time.monotonic()))
            match event:
                case Output(Stream.STDOUT, data):
                    next_ends = time.monotonic() + PATIENCE
                    frames += self.reader.feed(data)
                case Output(_, data):
                    self._stderr += data[: max(0, 65536 - len(self._stderr))]
                case Exited(code):
                    done = Completed(b"", bytes(self._stderr), code)
                    raise self.contact.explain(done, answered=bool(frames))
                case None:
                    done = Completed(b"", bytes(self._stderr), None, silent=True)
                    raise self.contact.explain(done, answered=bool(frames))
        jobs = jobs_of(self.desk, self.contact, self.question, parse_facts(frames))
        return Answer(self.question, jobs)

    def close(self) -> None:
        self.channel.close()
        self.contact.close()


class _Worker:
    """Asks one container at each tick, and puts the answers into a queue."""

    def __init__(self, desk: Desk, question: Question, answers: "queue.Queue[Answer]") -> None:
        self.question = question
        self._desk = desk
        self._answers = answers
        self._tick = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def tick(self) -> None:
        """Ask again; nothing where the last answer has not come yet."""
        self._tick.set()

    def stop(self) -> None:
        """No more answers; does not wait for one that is on its way."""
        self._stopped = True
        self._tick.set()

    def _run(self) -> None:
        line: _Line | None = None
        not_before = 0.0
        while not self._stopped:
            failure: LaunchpadError | None = None
            try:
                if line is None and time.monotonic() >= not_before:
                    line = _Line.open(self._desk, self.question)
                elif line is not None:
                    line.channel.send(b"x")
                if line is not None:
                    self._answers.put(line.answer())
            except LaunchpadError as error:
                failure = error
            except Exception as error:  # noqa: BLE001 # dying in silence would show old answers for ever
                failure = ShellError(
                    f"a fault in launchpad itself: {type(error).__name__}: {error}"
                )
            if failure is not None:
                if line is not None:
                    line.close()
                line = None
                not_before = time.monotonic() + _RETRY
                self._answers.put(Answer(self.question, (), failure))
            self._tick.wait()
            self._tick.clear()
        if line is not None:
            line.close()


def watch(
    desk: Desk, words: Sequence[str], *, everything: bool = False, interval: float = INTERVAL
) -> Iterator[Report]:
    """A report at least every ``interval`` seconds, for ever.

    The first one comes when every container has answered or given up. Raises as
    :func:`~launchpad.launcher.status.choose` does.
    """
    arrived: queue.Queue[Answer] = queue.Queue()
    workers: dict[tuple[str, str], _Worker] = {}
    latest: dict[tuple[str, str], Answer] = {}
    try:
        while True:
            choice = choose(desk, words, everything=everything)
            wanted = {_key(question): question for question in questions_of(desk, choice)}
            for key, question in wanted.items():
                worker = workers.get(key)
                if worker is None or not _covers(worker.question, question):
                    if worker is not None:
                        worker.stop()
                    workers[key] = _Worker(desk, question, arrived)
                else:
                    worker.tick()
            _collect(arrived, latest, set(wanted) - set(latest), interval)
            keep(desk, latest.values())
            current = [answer for key, answer in latest.items() if key in workers]
            yield report(desk, choice, current)
    finally:
        for worker in workers.values():
            worker.stop()


def _collect(
    arrived: "queue.Queue[Answer]",
    latest: dict[tuple[str, str], Answer],
    missing: set[tuple[str, str]],
    interval: float,
) -> None:
    """Take answers for ``interval`` seconds, or until none is missing where some were."""
    first = bool(missing)
    ends = time.monotonic() + (2 * PATIENCE + 1 if first else interval)
    while missing or not first:
        with suppress(queue.Empty):
            answer = arrived.get(timeout=max(0.0, ends - time.monotonic()))
            latest[_key(answer.question)] = answer
            missing.discard(_key(answer.question))
        if time.monotonic() >= ends:
            return


def _key(question: Question) -> tuple[str, str]:
    directory = question.entries[0].state_directory if question.entries else ""
    return str(question.target), "" if question.everything else directory


def _covers(asked: Question, wanted: Question) -> bool:
    """Whether the running call asks about all that is wanted now."""
    ids = {entry.id for entry in asked.entries}
    return asked.everything == wanted.everything and all(e.id in ids for e in wanted.entries)
