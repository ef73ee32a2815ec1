"""From the words of ``launchpad run`` to what is asked of the launcher. Nothing is sent yet."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from launchpad.cli import guards
from launchpad.cli.common import Session, say
from launchpad.command import Argv, Command, Secret, ShellLine
from launchpad.config import Settings
from launchpad.environment import (
    callers_environment,
    from_file,
    from_pairs,
    from_word,
    merge,
)
from launchpad.errors import UsageError
from launchpad.job import JobSpec, Launcher, check_job_name, derive_job_name, new_job_id
from launchpad.launcher.request import RunRequest
from launchpad.target import parse_target
from launchpad.watch import compile_ready


@dataclass(frozen=True, slots=True)
class Options:
    """What was said on the command line; None: nothing was. Times are seconds."""

    target: str
    words: tuple[str, ...] | None
    shell: str | None
    name: str | None
    cwd: str | None
    environment: tuple[str, ...]
    env_files: tuple[Path, ...]
    user: str | None
    log: str | None
    append: bool
    login: bool | None
    confirm: float
    ready: str | None
    ready_timeout: float | None
    time_limit: float | None
    on_exit: str | None
    follow: bool
    wait: bool
    idempotency_key: str | None


def build_request(session: Session, options: Options) -> RunRequest:
    """What is asked of the launcher. Raises :class:`UsageError`; nothing has been sent yet."""
    _check_together(session, options)
    target = parse_target(options.target, session.config.aliases())
    settings = session.config.settings_for(options.target)
    command = _command(options)
    name = derive_job_name(command) if options.name is None else check_job_name(options.name)
    spec = JobSpec(
        id=new_job_id(name),
        command=command,
        cwd=options.cwd or settings.cwd,
        environment=merge(_environment(options, settings)),
        user=options.user or settings.user,
        log=options.log,
        append=options.append,
        login=next(said for said in (options.login, settings.login, True) if said is not None),
        launcher=settings.launcher or Launcher.SETSID,
        time_limit=options.time_limit,
        on_exit=options.on_exit,
        idempotency_key=options.idempotency_key,
    )
    _warn_about_values(options)
    return RunRequest(
        target=target,
        spec=spec,
        confirm=options.confirm,
        ready=options.ready,
        ready_timeout=options.ready_timeout,
        mode="follow" if options.follow else "wait" if options.wait else "confirm",
    )


def _check_together(session: Session, options: Options) -> None:
    if options.follow and session.json:
        raise UsageError(
            "-f prints the log on stdout, --json one document: not both",
            advice="--json --wait, and launchpad tail for the log",
        )
    if options.ready_timeout is not None and options.ready is None:
        raise UsageError("--ready-timeout needs --ready", advice="--ready REGEX")
    if options.ready is not None:
        compile_ready(options.ready)
    if options.time_limit == 0:
        raise UsageError("--time-limit 0 would end the job at once", advice="leave it away")
    for option, value in (
        ("-n", options.name),
        ("-u", options.user),
        ("-C", options.cwd),
        ("--on-exit", options.on_exit),
        ("--idempotency-key", options.idempotency_key),
    ):
        if value is not None and not value.strip():
            raise UsageError(
                f"{option} is empty", advice="is the shell variable behind it unset? Leave it away"
            )


def _command(options: Options) -> Command:
    if options.shell is not None:
        if options.words is not None:
            raise UsageError(
                "-c and a command behind -- exclude each other",
                advice="-c 'SHELL STRING' for the container's shell, -- COMMAND for a program",
            )
        return ShellLine(options.shell)
    if not options.words:
        raise UsageError(
            "no command given",
            advice=f"launchpad run {options.target} -- COMMAND [ARG...],"
            f" or launchpad run {options.target} -c 'SHELL STRING'",
        )
    command = Argv(options.words)
    guards.check_command(command, options.target)
    return command


def _environment(options: Options, settings: Settings) -> Iterator[tuple[str, Secret]]:
    """All variables; later ones count: configuration, files, single ones."""
    caller = callers_environment()
    if settings.env_file is not None:
        yield from from_file(settings.env_file, caller)
    yield from from_pairs(settings.env, caller, "the configuration")
    for path in options.env_files:
        yield from from_file(path, caller)
    for word in options.environment:
        guards.check_environment_word(word)
        yield from_word(word, caller)


def _warn_about_values(options: Options) -> None:
    names = [word.partition("=")[0] for word in options.environment if "=" in word]
    if names:
        say(
            f"launchpad: the value of -e {names[0]}=… is visible to other users of this machine"
            f" in ps; use -e {names[0]} (your own value) or --env-file where it is secret"
        )
