"""launchpad as a user runs it: a process of its own, with a home of its own and no terminal."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parents[2]

Word = str | bytes

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one call went. ``seconds``: from start to end."""

    words: tuple[Word, ...]
    code: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def out(self) -> str:
        return self.stdout.decode("utf-8", "surrogateescape")

    @property
    def err(self) -> str:
        return self.stderr.decode("utf-8", "surrogateescape")

    def json(self) -> Any:
        """stdout as one JSON document; AssertionError that shows everything where it is none."""
        try:
            return json.loads(self.stdout)
        except ValueError as error:
            raise AssertionError(f"no JSON document: {self}") from error

    def __str__(self) -> str:
        return (
            f"launchpad {' '.join(map(_shown, self.words))}: exit code {self.code}"
            f" after {self.seconds:.1f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err}"
        )


def _shown(word: Word) -> str:
    text = os.fsdecode(word)
    return repr(text if len(text) < 200 else f"{text[:200]}…")


@dataclass(slots=True)
class Client:
    """One user on one machine: a home, an index, and nothing from the environment of the tests."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        user = f"tester-{os.getpid()}-{next(_numbers)}"
        kept = {
            key: os.environ[key] for key in ("PATH", "LAUNCHPAD_SSH_CONFIG") if key in os.environ
        }
        self.environment = {
            **kept,
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "XDG_CACHE_HOME": str(self.home / "cache"),
            "XDG_RUNTIME_DIR": str(self.home / "runtime"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "USER": user,
            "LOGNAME": user,
            "PYTHONPATH": str(REPOSITORY),
            # Warnings are errors in the program as well as in the tests.
            "PYTHONWARNINGS": "error",
            **self.environment,
        }

    @property
    def index(self) -> Path:
        return self.home / "state/launchpad/index.sqlite3"

    def start(
        self,
        *words: Word,
        env: Mapping[str, str | None] | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        prefix: Sequence[str] = (),
        cwd: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a call without waiting for its end.

        ``env``: changes to the environment (None removes). ``prefix``: a program around it, such
        as strace. A session of its own means that there is no terminal to ask on.
        """
        environment = {**self.environment, **(env or {})}
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "launchpad", *words],
            env={key: value for key, value in environment.items() if value is not None},
            cwd=cwd or self.home,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def run(
        self,
        *words: Word,
        env: Mapping[str, str | None] | None = None,
        stdin: bytes | None = None,
        prefix: Sequence[str] = (),
        cwd: Path | None = None,
        timeout: float = 60.0,
    ) -> Outcome:
        """Make one call and wait for its end; AssertionError after ``timeout`` seconds."""
        began = time.monotonic()
        source = subprocess.DEVNULL if stdin is None else subprocess.PIPE
        process = self.start(*words, env=env, stdin=source, prefix=prefix, cwd=cwd)
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired as error:
            _end_session(process)
            stdout, stderr = process.communicate()
            outcome = Outcome(words, -1, stdout, stderr, time.monotonic() - began)
            raise AssertionError(f"no end after {timeout:g} s: {outcome}") from error
        outcome = Outcome(words, process.returncode, stdout, stderr, time.monotonic() - began)
        # True of every call whatsoever: users never see a traceback.
        assert b"Traceback (most recent call last)" not in stderr, str(outcome)
        return outcome

    __call__ = run

    def succeed(
        self,
        *words: Word,
        env: Mapping[str, str | None] | None = None,
        stdin: bytes | None = None,
        timeout: float = 60.0,
    ) -> Outcome:
        """A call that must end with 0."""
        outcome = self.run(*words, env=env, stdin=stdin, timeout=timeout)
        assert outcome.code == 0, str(outcome)
        return outcome

    def start_job(
        self,
        *words: Word,
        code: int = 0,
        confirm: str = "0",
        env: Mapping[str, str | None] | None = None,
    ) -> str:
        """``launchpad run WORDS``, which must start a job; its id.

        ``code``: the job's own exit code, which is run's where the job has ended before run does.
        ``confirm``: how long run watches a silent job; nobody who only needs a job needs that.
        """
        outcome = self.run("run", "--confirm", confirm, *words, env=env)
        assert outcome.code in (0, code), str(outcome)
        lines = outcome.out.splitlines()
        assert len(lines) == 1, str(outcome)
        return lines[0]

    def status(self, job: str) -> Any:
        """The one job of ``status --json JOB``."""
        outcome = self.run("status", "--json", job)
        jobs = outcome.json()["jobs"]
        assert [each["id"] for each in jobs] == [job], str(outcome)
        return jobs[0]

    def log(self, job: str, *options: str) -> bytes:
        """The whole log of a job as ``tail`` gives it to a pipe."""
        outcome = self.run("tail", "-n", "all", *options, job)
        # tail gives a job's code only where it follows.
        assert outcome.code == 0, str(outcome)
        return outcome.stdout

    def expect_end(self, job: str, *options: str, code: int, timeout: float = 30.0) -> None:
        """``launchpad wait`` must end with the job's own code, which must be ``code``."""
        outcome = self.run("wait", *options, job, timeout=timeout)
        assert outcome.code == code, str(outcome)

    def processes_of(self, process: subprocess.Popen[bytes]) -> list[str]:
        """The command lines of what still runs in the session that a call was."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
                if fields[3] == str(process.pid) and fields[0] not in "ZX":
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def known_jobs(self) -> list[tuple[str, str]]:
        """Id and target of every job that this client has started and still knows."""
        return [(job, target) for job, target, _identity in self._own_jobs()]

    def identities(self) -> dict[str, tuple[int, int] | None]:
        """PID and start ticks of the main process of each of :meth:`known_jobs`."""
        return {
            job: (identity[0], identity[1]) if (identity := json.loads(text or "null")) else None
            for job, _target, text in self._own_jobs()
        }

    def _own_jobs(self) -> list[tuple[str, str, str | None]]:
        """Not those of others, which `status TARGET` has put into the index as well."""
        if not self.index.exists():
            return []
        with closing(sqlite3.connect(self.index)) as connection:
            rows = list(connection.execute("SELECT id, target, identity, record FROM job"))
        me = f"{self.environment['LOGNAME']}@"
        return [row[:3] for row in rows if json.loads(row[3]).get("started_by", me).startswith(me)]

    def end_processes(self) -> None:
        """End what is left of the calls that were started."""
        for process in self._processes:
            if process.poll() is None:
                _end_session(process)
            process.wait(10)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None and not stream.closed:
                    stream.close()


def _end_session(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
