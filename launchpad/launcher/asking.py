"""Asking containers about jobs: hosts side by side, each container once, nobody for long."""

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from launchpad.errors import (
    ContainerStopped,
    LaunchpadError,
    Layer,
    ShellError,
)
from launchpad.frames import Frame
from launchpad.index import Entry
from launchpad.job import Identity, JobId
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.launcher.ends import starting_if_new
from launchpad.replies import Facts, parse_facts, parse_spec
from launchpad.state import Job, Reason, Unreachable
from launchpad.target import RemoteContainer, Target
from launchpad.verdict import Place, job_of, judge_disk

# What a host may take to be connected to, and a container to answer: to begin with it, and to go
# on. And to come to its end: a container may have thousands of jobs to tell of (seconds).
PATIENCE = 5.0
WHOLE_ANSWER = 60.0

# How many containers of one host are asked at once.
_AT_A_TIME = 4

# How much of a log's end may hold its last line (bytes).
_TAIL = 2048

SCRIPTS = ("common", "members", "facts", "status")


@dataclass(frozen=True, slots=True)
class Question:
    """One container, and the jobs that are asked about: those of ``entries``, or all in it."""

    target: Target
    entries: tuple[Entry, ...]
    everything: bool = False

    @property
    def host(self) -> str:
        """What one connection can serve."""
        if isinstance(self.target, RemoteContainer):
            return f"{self.target.host}:{self.target.host.port or ''}"
        return str(self.target)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a container said, or why it did not. ``frames``: the reply itself, where wanted.

    ``warning``: what may soon go wrong there.
    """

    question: Question
    jobs: tuple[Job, ...]
    error: LaunchpadError | None = None
    frames: tuple[Frame, ...] = ()
    warning: str | None = None


def job_word(job: JobId, identity: Identity | None) -> str:
    """A job as remote/facts.sh wants it named; the identity finds it where its record is gone."""
    if identity is None:
        return job.text
    numbers = (identity.pid, identity.ticks, identity.session)
    return f"{job}={','.join(map(str, numbers))},{identity.boot_id},{identity.boot_ticks}"


def question_words(question: Question, state_directory: str, mode: str) -> list[str]:
    """The words of remote/status.sh."""
    words = [job_word(entry.id, entry.identity) for entry in question.entries]
    specs = "yes" if question.everything else "no"
    return [
        state_directory,
        specs,
        str(_TAIL),
        mode,
        *(["*"] if question.everything else []),
        *words,
    ]


def state_directory_of(contact: Contact, question: Question) -> str:
    """Where the jobs of a question lie."""
    if question.everything or not question.entries:
        return contact.state_directory
    return question.entries[0].state_directory


def jobs_of(desk: Desk, contact: Contact, question: Question, facts: Facts) -> tuple[Job, ...]:
    """The jobs that the facts tell of. Raises :class:`ShellError` where they tell nothing."""
    now = facts.now
    if now is None:
        raise ShellError(
            f"the shell in {question.target} did not tell how its jobs are",
            advice="another version of launchpad at work there?",
        )
    if facts.flooded:
        jobs_place = f"{state_directory_of(contact, question)}/jobs"
        raise ShellError(
            f"{question.target} tells of more jobs and processes than a container can have",
            advice=f"launchpad exec {question.target} -- ls {jobs_place}",
        )
    entries = {entry.id: entry for entry in question.entries}
    # A process may bear the mark of a job that lives elsewhere: on a Proxmox node one sees those of
    # its containers. A directory is what makes a job one of this place.
    others = [name for name, found in facts.jobs.items() if found.directory and name not in entries]
    state_directory = state_directory_of(contact, question)
    jobs = []
    for name in (*entries, *(others if question.everything else ())):
        entry = entries.get(name)
        found = facts.of(name)
        place = Place(
            target=entry.target if entry else str(question.target),
            host=contact.host,
            node=contact.node,
            ctid=contact.ctid,
            state_directory=state_directory,
        )
        spec = parse_spec(entry.record) if entry else None
        log = entry.log if entry else None
        job = job_of(
            found, now, place, spec=spec, log=log, identity=entry.identity if entry else None
        )
        job = replace(job, gpus=facts.gpus) if job.processes else job
        if entry and entry.node and contact.node and entry.node != contact.node:
            note = f"its container has moved from {entry.node} to {contact.node}"
            job = replace(job, notes=(*job.notes, note))
        jobs.append(starting_if_new(desk, entry, job) if entry else job)
    return tuple(jobs)


def unreachable_job(entry: Entry, error: LaunchpadError) -> Job:
    """A job that could not be asked about, with what was known of it last."""
    reason = Reason.CONTAINER_STOPPED if isinstance(error, ContainerStopped) else None
    known = entry.seen
    if known is None and entry.identity is not None:
        known = {"state": "running", "at": entry.created_at}
    return Job(
        id=entry.id,
        target=entry.target,
        host=entry.host,
        node=entry.node,
        ctid=entry.ctid,
        state=Unreachable(error.layer, error.what, error.advice, reason),
        spec=parse_spec(entry.record),
        log=entry.log,
        started="yes" if entry.identity else "unknown",
        identity=entry.identity,
        last_known=known,
    )


Ask = Callable[[Contact, Question], Answer]


@dataclass(frozen=True, slots=True)
class Manner:
    """How containers are asked: ``ask`` does it, ``patience`` is for connecting (seconds).

    ``one_by_one``: the containers of one host are asked over one connection, a few at a time.
    """

    ask: Ask
    patience: float = PATIENCE
    one_by_one: bool = True


def ask_status(desk: Desk) -> Manner:
    """The manner of `status`."""

    def ask(contact: Contact, question: Question) -> Answer:
        place = state_directory_of(contact, question)
        words = question_words(question, place, "once")
        facts = parse_facts(contact.ask(SCRIPTS, words, deadline=WHOLE_ANSWER, pause=PATIENCE))
        warning = judge_disk(facts.disk, desk.name_of(str(question.target)), place)
        return Answer(question, jobs_of(desk, contact, question, facts), warning=warning)

    return Manner(ask)


def ask_all(
    desk: Desk,
    questions: Sequence[Question],
    manner: Manner,
    on_answer: Callable[[Answer], None] = lambda _answer: None,
) -> list[Answer]:
    """Ask every container, hosts side by side; the answers in the order of the questions.

    ``on_answer`` is called in this thread, as each one comes.
    """
    groups: dict[str, list[Question]] = {}
    for question in questions:
        key = question.host if manner.one_by_one else str(question.target)
        groups.setdefault(key, []).append(question)
    # Several hosts at once could ask for passwords at once.
    asker = _Asker(desk, manner, interactive=len(groups) == 1)
    arrived: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    for group in groups.values():
        threading.Thread(
            target=asker.ask_host, args=(group, arrived.put), name="ask", daemon=True
        ).start()
    answers: dict[int, Answer] = {}
    while len(answers) < len(questions):
        answer = arrived.get()
        answers[id(answer.question)] = answer
        on_answer(answer)
    return [answers[id(question)] for question in questions]


@dataclass(frozen=True, slots=True)
class _Asker:
    desk: Desk
    manner: Manner
    interactive: bool

    def ask_host(self, questions: Sequence[Question], put: Callable[[Answer], None]) -> None:
        """Ask the containers of one host: one answer for each question, whatever happens.

        The first one makes the connection; the others are asked over it, a few at a time.
        """
        contact, dead = self._ask_in_turn(None, None, questions[:1], put)
        rest = questions[1:]
        if dead is None and contact is not None and len(rest) > 1 and self._may_share(contact):
            rest = self._ask_beside(contact, rest, put)
        contact, _dead = self._ask_in_turn(contact, dead, rest, put)
        if contact is not None:
            contact.close()

    def _may_share(self, contact: Contact) -> bool:
        """Whether several calls at once are for nobody to notice: each ssh program may ask."""
        return contact.link.name == "paramiko" or not self.interactive

    def _ask_beside(
        self, contact: Contact, questions: Sequence[Question], put: Callable[[Answer], None]
    ) -> list[Question]:
        """Ask a few at a time; gives back those for which the host had no channel to spare.

        (sshd_config(5), MaxSessions: 10 by default, and 1 on some.)
        """
        waiting = queue.SimpleQueue[Question]()
        refused = queue.SimpleQueue[Question]()
        for question in questions:
            waiting.put(question)

        def work() -> None:
            with suppress(queue.Empty):
                while True:
                    question = waiting.get_nowait()
                    reach = partial(contact.beside, question.target)
                    _reached, answer = self._answer(reach, question)
                    if answer.error is not None and answer.error.layer is Layer.SSH:
                        refused.put(question)
                    else:
                        put(answer)

        threads = [
            threading.Thread(target=work, name="ask beside", daemon=True)
            for _ in range(min(_AT_A_TIME, len(questions)))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [refused.get() for _ in range(refused.qsize())]

    def _ask_in_turn(
        self,
        contact: Contact | None,
        dead: LaunchpadError | None,
        questions: Sequence[Question],
        put: Callable[[Answer], None],
    ) -> tuple[Contact | None, LaunchpadError | None]:
        """Ask one after the other, connecting where need be; gives back the last contact.

        ``dead``: why the host cannot be reached, once that is known; nobody waits for it again.
        """
        for question in questions:
            if dead is not None:
                put(Answer(question, (), dead))
                continue
            reach = partial(self._reach, contact, question.target)
            reached, answer = self._answer(reach, question)
            contact = reached or contact
            if answer.error is not None and answer.error.layer in {Layer.SSH, Layer.LOGIN}:
                dead = answer.error
            put(answer)
        return contact, dead

    def _reach(self, contact: Contact | None, target: Target) -> Contact:
        if contact is None:
            return self._connect(target, interactive=self.interactive)
        return contact.beside(target)

    def _answer(
        self, reach: Callable[[], Contact], question: Question
    ) -> tuple[Contact | None, Answer]:
        """Whom ``reach`` led to, and what it says, or why it does not; never raises."""
        contact: Contact | None = None
        try:
            contact = reach()
            return contact, self.manner.ask(contact, question)
        except LaunchpadError as error:
            return contact, Answer(question, (), error)
        except Exception as error:  # noqa: BLE001 # dying in silence would hang the verb
            fault = ShellError(f"a fault in launchpad itself: {type(error).__name__}: {error}")
            return contact, Answer(question, (), fault)

    def _connect(self, target: Target, *, interactive: bool) -> Contact:
        options = self.desk.options_for(target)
        timeout = min(options.timeout, self.manner.patience)
        interactive = interactive and options.interactive
        return connect(target, replace(options, timeout=timeout, interactive=interactive))
