"""Who starts jobs, from Python."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from launchpad.api.job import Job, logger, status_of, wait_for
from launchpad.api.snapshot import Status
from launchpad.command import Argv, Command, Secret, ShellLine, to_bytes, to_text
from launchpad.config import load
from launchpad.environment import callers_environment, from_file, from_pairs, merge
from launchpad.errors import LaunchpadError, UsageError
from launchpad.job import JobSpec, Launcher, check_job_name, derive_job_name, new_job_id
from launchpad.launcher import run as running, transfer
from launchpad.launcher.desk import Desk, make_desk
from launchpad.launcher.request import Interrupted, RunRequest, StartFailed
from launchpad.launcher.rerun import Changes, rerun_request, tree_to_push
from launchpad.launcher.selection import select_jobs
from launchpad.launcher.status import learn
from launchpad.settings import Config, Settings
from launchpad.target import parse_target
from launchpad.transport.base import ConnectOptions, TransportChoice
from launchpad.transport.pool import Pool
from launchpad.watch import compile_ready

File = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied: files (links count), ``size`` in bytes, ``elapsed`` seconds.

    ``remarks``: what was left out, and why.
    """

    files: int
    size: int
    elapsed: float
    remarks: tuple[str, ...]


class Client:
    """Who starts jobs: a configuration, an index, and connections that are kept between calls.

    The functions of this module are those of one client that is always there; another one is for
    another configuration. Close it, or use it with ``with``; a connection that nobody uses is
    closed after a minute all the same.
    """

    def __init__(
        self,
        *,
        config: File | None = None,
        ssh_config: File | None = None,
        transport: TransportChoice | None = None,
    ) -> None:
        """``config``, ``ssh_config``: read these files instead of the usual ones.

        As on the command line, ``LAUNCHPAD_CONFIG`` and ``LAUNCHPAD_SSH_CONFIG`` name them, too.
        They are read when they are first needed; what is wrong in them is raised then.
        """
        self._config_file = config
        self._ssh_config = ssh_config
        self._transport = transport
        self._pool = Pool()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are not in use. Jobs run on; the client may be used again."""
        self._pool.close()

    @cached_property
    def _config(self) -> Config:
        return load(_path(self._config_file or os.environ.get("LAUNCHPAD_CONFIG")))

    @cached_property
    def desk(self) -> Desk:
        """Where the verbs of :mod:`launchpad.launcher` work from."""
        defaults = self._config.defaults
        ssh_config = self._ssh_config or os.environ.get("LAUNCHPAD_SSH_CONFIG")
        options = ConnectOptions(
            ssh_config=_path(ssh_config) or defaults.ssh_config,
            choice=self._transport or defaults.transport or "auto",
            share=bool(defaults.share_connection),
            note=logger.debug,
            warn=logger.warning,
            pool=self._pool,
        )
        return make_desk(self._config, options, logger.warning, transport=self._transport)

    def run(
        self,
        target: str,
        command: Sequence[str | bytes | os.PathLike[str]] | None = None,
        *,
        shell: str | None = None,
        name: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str | None] | None = None,
        env_file: File | None = None,
        user: str | None = None,
        log: str | None = None,
        append: bool = False,
        login: bool | None = None,
        launcher: Literal["setsid", "tmux"] | None = None,
        confirm: float = 2.0,
        ready: str | None = None,
        ready_timeout: float | None = None,
        time_limit: float | None = None,
        on_exit: str | None = None,
        idempotency_key: str | None = None,
        push: File | None = None,
    ) -> Job:
        """Start a job, and prove that it started.

        ``target``: as on the command line, ``"pve1:101"`` or an alias. ``command``: the program
        and its arguments, each of which arrives as it is; or ``shell``: a line for the container's
        bash (or sh). ``cwd``, ``log``: paths in the container, absolute or below ``~``. ``env``:
        values for the job; None as a value means that of this process; none of them is stored or
        shown anywhere. ``env_file``: a file of this machine in dotenv syntax.

        Returns once the start is proven and the job was watched for ``confirm`` seconds, or was
        quiet for 0.3 s after its first output. With ``ready`` (a regular expression) it returns
        when a line of the log matches, when the job has ended, or after ``ready_timeout`` seconds
        (None: no limit); :attr:`Job.ready` tells. A job that has crashed by then is a job all the
        same: :attr:`Job.start` tells how it stands.

        ``time_limit``: seconds after which the job is ended as by :meth:`Job.kill`. ``on_exit``: a
        shell line that the container runs at the job's end. ``idempotency_key``: where a job of
        this target has that key already, it is given back, and nothing is started. ``push``: a
        directory of this machine whose contents are copied to one of the same name in the home of
        the job's user first (as :meth:`push` does); the job runs there unless ``cwd`` is given.

        Raises :class:`UsageError` for what cannot be meant, else the error of the layer that
        failed. Its ``started`` is ``"no"``, ``"yes"`` or ``"unknown"``; only after ``"no"`` is it
        safe to try again without an idempotency key. Ctrl-C raises KeyboardInterrupt, and never
        harms a job that has started.
        """
        try:
            settings = self._config.settings_for(target)
            asked = _command(command, shell)
            where = parse_target(target, self._config.aliases())
            user = user or settings.user
            directory, file = _path(push), _path(env_file)
            tree = tree_to_push(where, directory, user) if directory is not None else None
            job = new_job_id(derive_job_name(asked) if name is None else check_job_name(name))
            spec = JobSpec(
                id=job,
                command=asked,
                cwd=cwd or (tree.path if tree is not None else settings.cwd),
                environment=merge(_environment(settings, env or {}, env_file)),
                user=user,
                log=log,
                append=append,
                login=next(said for said in (login, settings.login, True) if said is not None),
                launcher=Launcher(launcher or settings.launcher or Launcher.SETSID),
                time_limit=time_limit,
                on_exit=on_exit,
                idempotency_key=idempotency_key,
            )
            if ready is not None:
                compile_ready(ready)
            elif ready_timeout is not None:
                raise UsageError("ready_timeout needs ready", advice="ready='REGEX'")
        except LaunchpadError as error:
            error.started = "no"
            raise
        again = {
            "confirm_s": confirm,
            "ready_timeout_s": ready_timeout,
            "push": _text(tree.source) if tree is not None else None,
            "env_files": [_text(file.absolute())] if file is not None else None,
        }
        again = {key: value for key, value in again.items() if value is not None}
        return self._start(
            RunRequest(where, spec, confirm, ready, ready_timeout, push=tree, again=again)
        )

    def rerun(
        self,
        job: Job | str,
        *,
        env: Mapping[str, str | None] | None = None,
        env_file: File | None = None,
        push: bool = True,
        confirm: float | None = None,
    ) -> Job:
        """Start what a job was once more: command, directory, user, log (added to) and options.

        ``job``: as :meth:`find` takes it. Values of variables are stored nowhere: each is taken
        from ``env`` or ``env_file``, which may change or add some; else from the env file or job
        file of the first start, if they are on this machine; else from the environment of this
        process. ``push`` False: without the directory that was copied then. ``confirm``: as in
        :meth:`run`, the first job's own if None.

        Raises as :meth:`run` does; :class:`UsageError` names the variables without a value.
        """
        try:
            entry = job.entry() if isinstance(job, Job) else self.find(job).entry()
            said = dict(_environment(Settings(), env or {}, env_file))
            changes = Changes(environment=said, push=push, confirm=confirm)
            request = rerun_request(entry, self._config, changes)
        except LaunchpadError as error:
            error.started = "no"
            raise
        return self._start(request)

    def _start(self, request: RunRequest) -> Job:
        try:
            result = running.start(self.desk, request)
        except StartFailed as failure:
            if isinstance(failure.error, Interrupted):
                raise KeyboardInterrupt(failure.error.what) from None
            failure.error.started = failure.started
            failure.error.job_id = failure.job.text
            raise failure.error from None
        job = result.job
        return Job(job.id.text, job.target, Status.of(job), result.first_lines, self.desk)

    def find(self, job: str) -> Job:
        """The job that a word means: an id, a name (the newest), the beginning of an id.

        ``TARGET/NAME`` finds what other machines have started there. Raises :class:`JobUnknown`,
        and :class:`UsageError` for an ambiguous word.
        """
        entry = select_jobs(self.desk, job, learn).newest
        return Job(entry.id.text, entry.target, _desk=self.desk)

    def status(self, *words: str, everything: bool = False) -> list[Status]:
        """How jobs stand: those that the words mean (jobs or targets), containers side by side.

        Without a word: what runs, what ended within a day, and what nobody has been shown yet;
        with ``everything`` all that this machine's index knows. A job that cannot be asked is
        ``unreachable``; a target that cannot be asked raises why.
        """
        return status_of(self.desk, words, everything=everything)

    def wait(self, jobs: Iterable[Job], timeout: float | None = None) -> list[int]:
        """Block until all of the jobs have ended; their exit codes, as :meth:`Job.wait` has them.

        Raises as that does; no job is harmed by it.
        """
        return wait_for(self.desk, list(jobs), timeout)

    def push(
        self,
        source: File,
        target: str,
        path: str,
        *,
        user: str | None = None,
        exclude: Sequence[str] = (),
        ignore: bool = True,
    ) -> Copied:
        """Copy a file or a directory's contents to ``path`` in the container.

        ``path``: absolute, or below ``~``. Of a directory, what its ``.gitignore`` files name
        stays behind (``ignore``), and what matches ``exclude`` (patterns as in them). ``user``
        owns the files. All of it has arrived before any of it takes its place.
        """
        settings = self._config.settings_for(target)
        request = transfer.Push(
            source=Path(source),
            target=self.desk.target(target),
            path=path,
            user=user or settings.user,
            excludes=tuple(exclude),
            gitignore=ignore,
        )
        return _copied(transfer.push(self.desk, request))

    def pull(
        self,
        target: str,
        path: str,
        destination: File,
        *,
        user: str | None = None,
        exclude: Sequence[str] = (),
    ) -> Copied:
        """Copy a file or a directory's contents from the container to ``destination``.

        Nothing is written outside of that, whatever the container sends; each file is whole when
        it appears.
        """
        settings = self._config.settings_for(target)
        request = transfer.Pull(
            target=self.desk.target(target),
            path=path,
            destination=Path(destination),
            user=user or settings.user,
            excludes=tuple(exclude),
        )
        return _copied(transfer.pull(self.desk, request))


def _text(path: Path) -> str:
    return to_text(os.fsencode(path))


def _path(file: File | None) -> Path | None:
    return Path(file).expanduser() if file else None


def _command(words: Sequence[str | bytes | os.PathLike[str]] | None, shell: str | None) -> Command:
    if (words is None) == (shell is None):
        raise UsageError("a job has either a command (a list) or a shell line (shell=...)")
    if shell is not None:
        return ShellLine(shell)
    if words is None or isinstance(words, str | bytes):
        raise UsageError(
            "a command is a list of arguments, not one text",
            advice="['python3', 'train.py']; for the container's shell: shell='...'",
        )
    plain = (os.fspath(word) for word in words)
    return Argv(tuple(to_text(w) if isinstance(w, bytes) else to_text(to_bytes(w)) for w in plain))


def _environment(
    settings: Settings, env: Mapping[str, str | None], env_file: File | None
) -> Iterator[tuple[str, Secret]]:
    caller = callers_environment()
    if settings.env_file is not None:
        yield from from_file(settings.env_file, caller)
    yield from from_pairs(settings.env, caller, "the configuration")
    if (file := _path(env_file)) is not None:
        yield from from_file(file, caller)
    for name, value in env.items():
        if not isinstance(value, str | None):
            raise UsageError(f"env: the value of {name} is no text", advice="str(...)")
    yield from from_pairs(env.items(), caller, "env")


def _copied(done: transfer.Transferred) -> Copied:
    return Copied(done.tally.files, done.tally.size, done.elapsed, done.remarks)
