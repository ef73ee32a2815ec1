"""Names, ids and specs of jobs."""

from __future__ import annotations

import pytest

from launchpad.command import Argv, Secret, ShellLine
from launchpad.errors import UsageError
from launchpad.job import (
    Identity,
    JobId,
    JobPaths,
    JobSpec,
    check_container_path,
    check_environment_name,
    check_job_name,
    derive_job_name,
    is_job_id,
    new_job_id,
)


@pytest.mark.parametrize(
    "text",
    ["train-k3f9ab", "a-000000", "A.b_c-d-zzzzzz", "x" * 40 + "-aaaaaa"],
)
def test_ids(text: str) -> None:
    assert is_job_id(text)
    assert str(JobId(text)) == text
    assert JobId(text).name == text[:-7]


@pytest.mark.parametrize(
    "text",
    ["", "train", "train-k3f9a", "train-k3f9ab_", "train-K3F9AB", "-k3f9ab", ".a-k3f9ab"],
)
def test_what_is_no_id(text: str) -> None:
    assert not is_job_id(text)
    with pytest.raises(UsageError, match="is not a job id") as refused:
        JobId(text)
    assert refused.value.what == f"{text!r} is not a job id"
    assert refused.value.advice == "ids look like train-k3f9ab"


@pytest.mark.parametrize(
    "text", ["../x-aaaaaa", "a/b-aaaaaa", "a-aaaaaa\n", "a b-aaaaaa", "x" * 41]
)
def test_no_id_leads_out_of_its_directory(text: str) -> None:
    assert not is_job_id(text)


def test_new_ids_are_ids_and_differ() -> None:
    ids = {new_job_id("train") for _ in range(100)}
    assert len(ids) == 100
    assert {job.name for job in ids} == {"train"}
    assert all(set(job.text[-6:]) <= set("abcdefghijklmnopqrstuvwxyz234567") for job in ids)


@pytest.mark.parametrize("name", ["a", "A", "0", "a.b_c-d", "x" * 40])
def test_names(name: str) -> None:
    assert check_job_name(name) == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "_a", "a b", "a/b", "x" * 41, "é", "a\n"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a job's name") as refused:
        check_job_name(name)
    assert refused.value.what == f"{name!r} cannot be a job's name"
    assert refused.value.advice == "1 to 40 of A-Z a-z 0-9 . _ - , beginning with a letter or digit"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("sleep", "60"), "sleep"),
        (("/usr/bin/sleep",), "sleep"),
        (("python3", "-u", "/w/train.py", "--lr", "1"), "train"),
        (("python3.11", "-m", "torch.distributed.run", "x.py"), "run"),
        (("python3", "-c", "import x", "y.py"), "python3"),
        (("python3",), "python3"),
        (("torchrun", "--nproc", "2", "go.py"), "go"),
        (("accelerate", "launch", "go.py"), "go"),
        (("env", "A=1", "run.sh"), "run"),
        (("python3", "-x.py", "b.rb"), "b"),
        (("/w/run.sh",), "run"),
        (("./a b$c",), "a-b-c"),
        (("--",), "job"),
        (("..py",), "job"),
        (("x" * 60,), "x" * 40),
        (("x" * 39 + "-y",), "x" * 39),
        (("-.a.-",), "a"),
        (("XaX",), "XaX"),
        (("A B",), "A-B"),
        (("a" * 39 + "X",), "a" * 39 + "X"),
    ],
)
def test_a_name_is_what_a_person_would_call_the_command(words: tuple[str, ...], name: str) -> None:
    assert derive_job_name(Argv(words)) == name
    check_job_name(name)


@pytest.mark.parametrize(
    ("text", "name"), [("python3 a.py && b", "a"), ("cd /x; y", "cd"), (" true", "true")]
)
def test_a_name_for_a_line(text: str, name: str) -> None:
    assert derive_job_name(ShellLine(text)) == name


def spec(**options: object) -> JobSpec:
    return JobSpec(JobId("a-aaaaaa"), Argv(("true",)), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "user", ["root", "Z", "0", "_apt", "aB", "me@corp.example", "a.b-c", "machine$"]
)
def test_users(user: str) -> None:
    assert spec(user=user).user == user


@pytest.mark.parametrize("user", ["", "-x", "a b", "$a", "a;id", "a$b", "a\n", ".a"])
def test_what_is_no_user(user: str) -> None:
    with pytest.raises(UsageError, match="is not a user name") as refused:
        spec(user=user)
    assert refused.value.advice == "a name or a uid"


def test_append_needs_a_log() -> None:
    with pytest.raises(UsageError) as refused:
        spec(append=True)
    assert refused.value.what == "--append needs --log: a job directory's log is always new"
    assert refused.value.advice == "--log PATH --append"
    assert spec(append=True, log="/x").append


@pytest.mark.parametrize("option", ["cwd", "log"])
def test_paths_of_a_spec(option: str) -> None:
    spec(**{option: "/x"})
    shown = {"cwd": "-C", "log": "--log"}[option]
    with pytest.raises(UsageError, match=f"^{shown} x: ") as refused:
        spec(**{option: "x"})
    assert refused.value.advice.startswith(f"{shown} '~/x'")


@pytest.mark.parametrize("path", ["/", "/x", "~", "~/x"])
def test_paths(path: str) -> None:
    assert check_container_path("-C", path) == path


@pytest.mark.parametrize("path", ["", "x", "./x", "~x", "~root/x", "-x"])
def test_relative_paths_are_refused(path: str) -> None:
    with pytest.raises(UsageError, match=r"must be absolute, or begin with ~/"):
        check_container_path("-C", path)


def test_a_path_without_nul() -> None:
    with pytest.raises(UsageError, match=r"^-C: a path cannot hold a NUL byte"):
        check_container_path("-C", "/a\0b")


@pytest.mark.parametrize("name", ["A", "_", "a1_B"])
def test_environment_names(name: str) -> None:
    assert check_environment_name(name) == name
    assert spec(environment=((name, Secret("x")),)).environment[0][0] == name


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a b", "A=1", "é", "A\n"])
def test_what_no_shell_exports(name: str) -> None:
    with pytest.raises(UsageError, match=r"no POSIX shell can export it") as refused:
        spec(environment=((name, Secret("x")),))
    assert refused.value.advice == "letters, digits and _, not beginning with a digit"


def test_paths_of_a_job() -> None:
    paths = JobPaths("/var/lib/launchpad", JobId("a-aaaaaa"))
    assert paths.directory == "/var/lib/launchpad/jobs/a-aaaaaa"
    assert paths.log == paths.directory + "/log"
    assert paths.tmux_socket == paths.directory + "/tmux"


def test_an_identity_differs_in_any_of_its_parts() -> None:
    assert Identity(1, 2, 3, "b", 4) != Identity(1, 2, 3, "b", 5)
