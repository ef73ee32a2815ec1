"""From the words of ``launchpad run`` to what is asked of the launcher. Nothing is sent yet."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchpad.cli import guards
from launchpad.cli.common import Session, say
from launchpad.command import Argv, Command, Secret, ShellLine, to_text
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
from launchpad.settings import Config, Settings
from launchpad.target import parse_target

if TYPE_CHECKING:
    from launchpad.job_file import JobFile
    from launchpad.launcher.transfer import Push


DEFAULT_CONFIRM = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    """What was said on the command line; None: nothing was. Times are seconds.

    ``file``: what stands behind all that in the job file.
    """

    target: str | None
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
    confirm: float | None
    ready: str | None
    ready_timeout: float | None
    time_limit: float | None
    on_exit: str | None
    follow: bool
    wait: bool
    push: Path | None
    tmux: bool | None
    idempotency_key: str | None
    file: "JobFile | None" = None


def with_file(options: Options, path: Path | None, settings: Sequence[str]) -> Options:
    """``options``, and what they leave open as the job file has it.

    Raises :class:`UsageError`, and :class:`~launchpad.errors.ClientError` for a fault in the file.
    """
    warn_about_settings(settings)
    if path is None:
        if settings:
            raise UsageError("--set changes what a job file says", advice="--file JOB.toml")
        return options
    from launchpad.job_file import load

    file = load(path, settings)
    given = options.words is not None or options.shell is not None
    return replace(
        options,
        file=file,
        target=options.target or file.target,
        words=options.words if given else file.command,
        shell=options.shell if given else file.shell,
        name=options.name if options.name is not None else file.name,
        cwd=options.cwd or file.cwd,
        user=options.user or file.user,
        log=options.log or file.log,
        login=file.login if options.login is None else options.login,
        ready=options.ready or file.ready,
        ready_timeout=_first(options.ready_timeout, file.ready_timeout),
        time_limit=_first(options.time_limit, file.time_limit),
        on_exit=options.on_exit or file.on_exit,
        push=options.push or file.push,
    )


def with_defaults(options: Options, config: Config) -> Options:
    """``options``, and what they leave open as ``[defaults.run]`` has it."""
    said = config.verbs.get("run", {})
    ready = options.ready or said.get("ready")
    # A habit of how long to wait says nothing where nothing is waited for.
    timeout = _first(options.ready_timeout, said.get("ready_timeout") if ready else None)
    return replace(
        options,
        ready=ready,
        ready_timeout=timeout,
        confirm=_first(options.confirm, said.get("confirm")),
        time_limit=_first(options.time_limit, said.get("time_limit")),
        on_exit=options.on_exit or said.get("on_exit"),
    )


def _first(*times: float | None) -> float | None:
    return next((time for time in times if time is not None), None)


def build_request(session: Session, options: Options) -> RunRequest:
    """What is asked of the launcher. Raises :class:`UsageError`; nothing has been sent yet."""
    if options.target is None:
        raise UsageError(
            "no target is named", advice="launchpad run TARGET -- COMMAND; TARGET as pve1:101"
        )
    _check_together(session, options)
    target = parse_target(options.target, session.config.aliases())
    settings = session.config.settings_for(options.target)
    command = _command(options, options.target)
    name = derive_job_name(command) if options.name is None else check_job_name(options.name)
    user = options.user or settings.user
    tree = None
    if options.push is not None:
        # Late: most starts push nothing.
        from launchpad.launcher.rerun import tree_to_push

        tree = tree_to_push(target, options.push, user)
    said = (options.login, settings.login, True)
    launcher = options.file.launcher if options.file is not None else None
    if options.tmux is not None:
        launcher = Launcher.TMUX if options.tmux else Launcher.SETSID
    spec = JobSpec(
        id=new_job_id(name),
        command=command,
        cwd=options.cwd or (tree.path if tree is not None else settings.cwd),
        environment=merge(_environment(options, settings)),
        user=user,
        log=options.log,
        append=options.append,
        login=next(login for login in said if login is not None),
        launcher=launcher or settings.launcher or Launcher.SETSID,
        time_limit=options.time_limit,
        on_exit=options.on_exit,
        idempotency_key=options.idempotency_key,
    )
    warn_about_values(options.environment)
    return RunRequest(
        target=target,
        spec=spec,
        confirm=DEFAULT_CONFIRM if options.confirm is None else options.confirm,
        ready=options.ready,
        ready_timeout=options.ready_timeout,
        mode="follow" if options.follow else "wait" if options.wait else "confirm",
        push=tree,
        again=_again(options, tree),
    )


def _again(options: Options, tree: "Push | None") -> dict[str, Any]:
    """What the record keeps for `rerun`: names of files, never what is in them."""
    files = [*(file.env_file for file in [options.file] if file), *options.env_files]
    found: dict[str, Any] = {
        "confirm_s": options.confirm,
        "ready_timeout_s": options.ready_timeout,
        "push": to_text(os.fsencode(tree.source)) if tree is not None else None,
        "job_file": _absolute(options.file.path) if options.file else None,
        "env_files": [_absolute(path) for path in files if path is not None],
    }
    return {key: value for key, value in found.items() if value not in (None, [])}


def _absolute(path: Path) -> str:
    return to_text(os.fsencode(path.absolute()))


def _check_together(session: Session, options: Options) -> None:
    if options.follow and session.json:
        raise UsageError(
            "-f prints the log on stdout, --json one document: not both",
            advice="--json --wait, and launchpad tail for the log",
        )
    if options.ready_timeout is not None and options.ready is None:
        raise UsageError("--ready-timeout needs --ready", advice="--ready REGEX")
    if options.ready is not None:
        from launchpad.watch import compile_ready

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


def _command(options: Options, target: str) -> Command:
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
            advice=f"launchpad run {target} -- COMMAND [ARG...],"
            f" or launchpad run {target} -c 'SHELL STRING'",
        )
    command = Argv(options.words)
    guards.check_command(command, target)
    return command


def _environment(options: Options, settings: Settings) -> Iterator[tuple[str, Secret]]:
    """All variables; later ones count: configuration, files, single ones."""
    caller = callers_environment()
    if settings.env_file is not None:
        yield from from_file(settings.env_file, caller)
    yield from from_pairs(settings.env, caller, "the configuration")
    if options.file is not None:
        if options.file.env_file is not None:
            yield from from_file(options.file.env_file, caller)
        yield from from_pairs(options.file.env, caller, str(options.file.path))
    for path in options.env_files:
        yield from from_file(path, caller)
    for word in options.environment:
        guards.check_environment_word(word)
        yield from_word(word, caller)


def warn_about_values(words: Sequence[str], option: str = "-e ") -> None:
    """Say it once where a value stands on the command line."""
    names = [word.partition("=")[0] for word in words if "=" in word]
    if names:
        name = names[0]
        say(
            f"launchpad: the value of {option}{name}=… is visible to other users of this machine in"
            f" ps; use -e {name} (your own value) or --env-file where it is secret"
        )


def warn_about_settings(settings: Sequence[str]) -> None:
    """The same for ``--set env.KEY=VALUE``."""
    prefix = "env."
    words = [word.removeprefix(prefix) for word in settings if word.startswith(prefix)]
    warn_about_values(words, f"--set {prefix}")
