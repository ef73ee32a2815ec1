"""The frame of the command line: help, usage errors, exit codes, options before and behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click
import pytest

from launchpad.cli import VERBS, launchpad
from launchpad.cli.defaults import option_keys
from launchpad.settings import VERB_OPTIONS
from launchpad.version import __version__
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from support.client import Client


@pytest.mark.parametrize("words", [["--help"], ["-h"], []])
def test_help_names_every_verb_and_the_exit_codes(
    launchpad_words: Client, words: list[str]
) -> None:
    outcome = launchpad_words.succeed(*words)
    for name in VERBS:
        assert f"\n  {name} " in outcome.out
    assert "124" in outcome.out
    assert outcome.err == ""


def test_version(launchpad_words: Client) -> None:
    assert launchpad_words.succeed("--version").out == f"launchpad {__version__}\n"


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_a_verb_begins_as_the_table_says(launchpad_words: Client, name: str) -> None:
    command = getattr(import_module(f"launchpad.cli.{name}"), name)
    assert isinstance(command, click.Command)
    assert command.get_short_help_str(limit=200) == VERBS[name][1]
    outcome = launchpad_words.succeed(name, "--help")
    assert outcome.out.startswith(f"Usage: launchpad {name} ")
    assert "Connection options:" in outcome.out


def test_every_option_explains_itself() -> None:
    context = click.Context(launchpad)
    for name in VERBS:
        command = launchpad.get_command(context, name)
        assert command is not None
        for param in command.params:
            if isinstance(param, click.Option):
                assert param.help, f"{name} {param.opts}"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["rnu"], 2, "did you mean 'run'?"),
        (["--nosuch"], 2, "no such option '--nosuch'"),
        (["--transprt", "auto"], 2, "did you mean '--transport'?"),
        (["status", "--jsn"], 2, "did you mean '--json'?"),
        (["kill", "--grace", "soon"], 2, "'soon' is not a time"),
        (["run"], 125, "TARGET"),
        (["run", "--cwdd", "/", "local", "--", "true"], 125, "--cwd"),
        (["tail", "--nosuch"], 125, "no such option"),
        (["wait"], 125, "JOB"),
        (["kill", "nosuch-job"], 125, "no job nosuch-job"),
    ],
)
def test_wrong_usage(launchpad_words: Client, words: list[str], code: int, said: str) -> None:
    outcome = launchpad_words(*words)
    assert outcome.code == code, str(outcome)
    assert outcome.out == ""
    assert outcome.err.startswith("launchpad: ")
    assert said.lower() in outcome.err.lower()
    assert len(outcome.err.splitlines()) <= 4


def test_connection_options_stand_before_and_behind_the_verb(
    launchpad_words: Client, tmp_path: Path
) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[targets.here]\ntarget = "local"\n')
    for words in (
        ["--config", str(config), "run", "--dry-run", "here", "--", "true"],
        ["run", "--dry-run", "here", "--config", str(config), "--", "true"],
        ["run", f"--config={config}", "--dry-run", "here", "--", "true"],
    ):
        launchpad_words.succeed(*words)
    launchpad_words.succeed(
        "run", "--dry-run", "here", "--", "true", env={"LAUNCHPAD_CONFIG": str(config)}
    )
    behind = launchpad_words(
        "--config", str(config), "run", "--config", "/nosuch", "here", "--", "true"
    )
    assert "/nosuch" in behind.err  # the one behind counts


def test_an_option_beats_the_environment(launchpad_words: Client, tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text("Host there\n HostName 192.0.2.7\n User me\n")
    words = ("run", "--dry-run", "there:101", "-F", str(tmp_path / "ssh"), "--", "true")
    outcome = launchpad_words.succeed(*words, env={"LAUNCHPAD_SSH_CONFIG": "/nosuch"})
    assert f"ssh -F {tmp_path}/ssh there 'sudo -n /usr/sbin/pct exec 101" in outcome.out


def test_a_broken_configuration_is_told_with_its_line(
    launchpad_words: Client, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text("[defaults]\ntransprot = 'auto'\n")
    outcome = launchpad_words("--config", str(tmp_path / "c.toml"), "run", "local", "--", "true")
    assert outcome.code == 125
    assert "c.toml, line 2" in outcome.err
    assert "did you mean transport?" in outcome.err


def test_config_show_says_what_is_in_force_and_from_where(
    launchpad_words: Client, tmp_path: Path
) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[targets.gpu]\ntarget = "pve1:101"\nenv = ["KEY=s3cr3t", "TOKEN"]\n')
    outcome = launchpad_words.succeed("config", "show", env={"LAUNCHPAD_CONFIG": str(file)})
    rows = [line.split(maxsplit=1) for line in outcome.out.splitlines()]
    shown = {name: " ".join(rest.split()) for name, rest in rows}
    assert shown["file"] == f"{file} LAUNCHPAD_CONFIG"
    assert shown["targets.gpu.target"] == f"pve1:101 {file}:2"
    assert shown["defaults.transport"] == "auto built in"
    assert "s3cr3t" not in outcome.out


def test_config_show_names_the_place_of_options_of_verbs(
    launchpad_words: Client, tmp_path: Path
) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[defaults]\nno_color = true\n\n[defaults.kill]\ngrace = "1m"\n')
    shown = launchpad_words.succeed("config", "show", "--config", str(file)).out
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert f"defaults.no_color true {file}:2" in rows
    assert f"defaults.kill.grace 60s {file}:5" in rows


def test_every_option_may_stand_in_the_configuration_or_says_why_not() -> None:
    """An option belongs to one call, or to the settings of targets, or to [defaults.VERB]."""
    settings = {"cwd", "env", "env_file", "user", "login", "tmux"}
    of_one_call = {"_c", "name", "log", "append", "push", "file", "set", "idempotency_key", "json"}
    of_one_call |= {"dry_run", "all", "quiet", "watch", "tty", "no_stdin", "no_ignore", "no_push"}
    consent = {"yes"}
    for name in VERBS:
        command = launchpad.get_command(click.Context(launchpad), name)
        assert command is not None
        keys = set(option_keys(command).values())
        habits = set(VERB_OPTIONS.get(name, {}))
        assert habits <= keys, name
        assert keys - habits <= settings | of_one_call | consent, name


def test_config_show_without_a_file(launchpad_words: Client) -> None:
    assert "default, not there" in launchpad_words.succeed("config", "show").out


def test_an_index_that_cannot_be_used_is_told_with_advice(launchpad_words: Client) -> None:
    launchpad_words.index.parent.mkdir(parents=True)
    launchpad_words.index.write_bytes(b"no database at all, whatever its name may promise" * 100)
    for words in (["status"], ["run", "local", "--", "true"], ["tail"]):
        outcome = launchpad_words(*words)
        assert outcome.code == 125, str(outcome)
        assert "is damaged   [client]" in outcome.err
        assert f"help: mv {launchpad_words.index}" in outcome.err


def test_a_reader_that_goes_away_is_no_error(launchpad_words: Client) -> None:
    for unbuffered in ("", "1"):
        reading, writing = os.pipe()
        os.close(reading)
        process = launchpad_words.start(
            "--help", stdout=writing, env={"PYTHONUNBUFFERED": unbuffered}
        )
        os.close(writing)
        _, errors = process.communicate(timeout=30)
        assert errors == b""
        assert process.returncode == 141


def test_output_that_cannot_be_written_is_an_error(launchpad_words: Client) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 # a device, not a file
        process = launchpad_words.start("--help", stdout=full.fileno())
        _, errors = process.communicate(timeout=30)
    assert b"cannot write the output" in errors
    assert process.returncode == 125


def test_a_fault_of_our_own_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    script = (
        "import launchpad.config, launchpad.__main__ as program\n"
        "def load(path):\n  raise TypeError('odd \\x1b[2J thing')\n"
        "launchpad.config.load = load\n"
        "program.main(['run', 'local', '--json', '--', 'true'])\n"
    )
    environment = {**os.environ, "HOME": str(tmp_path)}

    def call(**changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script],
            env={**environment, **changes},
            capture_output=True,
            text=True,
            check=False,
        )

    done = call()
    assert done.returncode == 125
    assert done.stderr.splitlines()[0] == (
        r"launchpad: a fault in launchpad itself: TypeError: odd \x1b[2J thing   [client]"
    )
    assert len(done.stderr.splitlines()) == 2
    assert '"started": "no"' in done.stdout
    assert "Traceback" in call(LAUNCHPAD_DEBUG="1").stderr


def test_ctrl_c_is_130_and_quiet(launchpad_words: Client, tmp_path: Path) -> None:
    fifo = tmp_path / "config.toml"
    os.mkfifo(fifo)
    process = launchpad_words.start("--config", str(fifo), "run", "local", "--", "true")
    # It waits for somebody to write the configuration: open succeeds once it reads.
    descriptor = wait_until(lambda: _open_for_writing(fifo), what="it reads the configuration")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    os.close(descriptor)
    assert process.returncode == 130
    assert errors.strip() == b""


def _open_for_writing(fifo: Path) -> int:
    try:
        return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return 0
