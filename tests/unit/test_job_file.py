"""Job files: what they may say, what `--set` changes, and how faults are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchpad.errors import ClientError, UsageError
from launchpad.job import Launcher
from launchpad.job_file import JobFile, load, parse

FILE = Path("/jobs/train.toml")

WHOLE = """\
target = "pve1:101"
name = "train"
cwd = "/workspace"
command = ["python3", "train.py", "--lr", "1e-4"]
env_file = "secrets.env"
push = "."
ready = "epoch 1"
ready_timeout = "5m"
time_limit = 7200
on_exit = "echo done"
user = "worker"
log = "~/train.log"
login = false
launcher = "tmux"

[env]
LR = "1e-4"
"""


def said(text: str, *settings: str) -> JobFile:
    return parse(text, FILE, settings)


def test_all_keys_are_read() -> None:
    assert said(WHOLE) == JobFile(
        path=FILE,
        target="pve1:101",
        name="train",
        cwd="/workspace",
        command=("python3", "train.py", "--lr", "1e-4"),
        env=(("LR", "1e-4"),),
        env_file=Path("/jobs/secrets.env"),
        push=Path("/jobs"),
        ready="epoch 1",
        ready_timeout=300.0,
        time_limit=7200.0,
        on_exit="echo done",
        user="worker",
        log="~/train.log",
        login=False,
        launcher=Launcher.TMUX,
    )


def test_the_example_is_one(pytestconfig: pytest.Config) -> None:
    file = load(pytestconfig.rootpath / "examples/train.toml")
    assert file.command is not None
    assert file.push == pytestconfig.rootpath / "examples"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('\ncomand = ["x"]\n', 2, "did you mean command"),
        ('target = "a:101"\n\ntimelimit = 3\n', 3, "did you mean time_limit"),
        ('command = "python3 train.py"\n', 1, "list of texts"),
        ("command = []\n", 1, "is empty"),
        ('command = ["a", 1]\n', 1, "list of texts"),
        ('command = ["a"]\nshell = "b"\n', 2, "exclude each other"),
        ('time_limit = "soon"\n', 1, "is no time"),
        ("time_limit = true\n", 1, "is no time"),
        ("time_limit = -1\n", 1, "is no time"),
        ('cwd = "relative"\n', 1, "absolute"),
        ('log = "relative"\n', 1, "absolute"),
        ('login = "yes"\n', 1, "true or false"),
        ('[env]\n"A-B" = "x"\n', 2, "no POSIX shell"),
        ('name = ""\n', 1, "empty"),
    ],
)
def test_faults_have_a_file_and_a_line(text: str, line: int, words: str) -> None:
    with pytest.raises(ClientError) as caught:
        said(text)
    assert caught.value.what.startswith(f"{FILE}, line {line}: ")
    assert words in f"{caught.value.what} {caught.value.advice}"


def test_a_value_that_may_be_secret_is_never_shown() -> None:
    for text in ("[env]\nTOKEN = 987654\n", "env = [987654]\n"):
        with pytest.raises(ClientError) as caught:
            said(text)
        assert "987654" not in f"{caught.value.what} {caught.value.details} {caught.value.advice}"
    assert "hunter2" not in repr(said('[env]\nTOKEN = "hunter2"\n'))


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="no job file"):
        load(tmp_path / "none.toml")
    with pytest.raises(ClientError, match="not TOML"):
        said("= nonsense")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ClientError, match="cannot be read"):
        load(tmp_path / "binary.toml")


def test_settings_come_on_top() -> None:
    file = said(
        WHOLE,
        "name=other",
        "time_limit=5m",
        "env.LR=2=3",
        "env.NEW=",
        "login=true",
        'command=["a b", "c"]',
        "push=here",
    )
    assert (file.name, file.time_limit, file.login) == ("other", 300.0, True)
    assert dict(file.env) == {"LR": "2=3", "NEW": ""}
    assert file.command == ("a b", "c")
    # What is typed is relative to where one is, what is written to the file.
    assert file.push == Path.cwd() / "here"
    assert file.env_file == Path("/jobs/secrets.env")


def test_a_line_of_shell_takes_the_place_of_a_command() -> None:
    file = said(WHOLE, "shell=echo hi && exit 3")
    assert (file.command, file.shell) == (None, "echo hi && exit 3")
    file = said('shell = "true"', 'command=["x"]')
    assert (file.command, file.shell) == (("x",), None)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("comand=x", "did you mean command"),
        ("name", "the value is missing"),
        ("env=x", "env.NAME=VALUE"),
        ("env.A-B=x", "no POSIX shell"),
        ("command=python3 train.py", "list of texts"),
        ("time_limit=soon", "is no time"),
        ("login=maybe", "true or false"),
        ("=x", "no key"),
    ],
)
def test_wrong_settings_are_wrong_usage(setting: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        said(WHOLE, setting)
    assert caught.value.what.startswith("--set ")
    assert words in f"{caught.value.what} {caught.value.advice}"
    with pytest.raises(UsageError, match="exclude each other"):
        said(WHOLE, 'command=["x"]', "shell=y")
