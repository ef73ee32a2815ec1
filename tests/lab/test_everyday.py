"""Edit, run, look: files to and from real containers, job files, the same once more, tidying up."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from support.lab import BUSYBOX, DEBIAN, Lab
from support.processes import peak_memory
from support.trees import Directory, look, make, trees
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.client import Client

BOTH = pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX])
TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])


@pytest.fixture
def there(lab: Lab, tmp_path: Path) -> Iterator[str]:
    """A path in the containers that is this test's own."""
    path = f"/root/everyday-{os.getpid()}-{tmp_path.name}"
    yield path
    for ctid in (DEBIAN, BUSYBOX):
        lab.sh(ctid, 'rm -rf "$1"', path)


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@BOTH
@TRANSPORTS
def test_any_tree_comes_back_the_same(
    launchpad: Client, there: str, tmp_path: Path, ctid: int, transport: str
) -> None:
    number = 0

    @settings(
        max_examples=4,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.nested_given],
    )
    @given(tree=trees())
    def same(tree: Directory) -> None:
        nonlocal number
        number += 1
        source, back = tmp_path / f"source{number}", tmp_path / f"back{number}"
        make(tree, source)
        remote = f"pve1:{ctid}:{there}/{number}"
        way = ("--transport", transport)
        launchpad.succeed(*way, "push", "--no-ignore", str(source), remote)
        launchpad.succeed(*way, "pull", remote, str(back))
        assert look(back) == look(source)

    same()


@BOTH
def test_files_belong_to_the_user_that_was_asked_for(
    lab: Lab, launchpad: Client, tmp_path: Path, ctid: int
) -> None:
    put(tmp_path / "source/sub/file")
    (tmp_path / "source/sub").chmod(0o555)
    name = f"everyday-{tmp_path.name}"
    try:
        for again in range(2):
            launchpad.succeed(
                "push", "-u", "worker", str(tmp_path / "source"), f"pve1:{ctid}:~/{name}"
            )
            script = 'cd "/home/worker/$1" && stat -c "%U %a %n" . sub sub/file'
            assert lab.sh(ctid, script, name).splitlines() == [
                "worker 755 .",
                "worker 555 sub",
                "worker 644 sub/file",
            ]
            back = tmp_path / f"back{again}"
            launchpad.succeed("pull", "-u", "worker", f"pve1:{ctid}:~/{name}", str(back))
            found, sent = look(back), look(tmp_path / "source")
            # The second time the directories are there, and have been written to.
            names = list(sent) if again == 0 else [b"/sub/file"]
            assert [found[each] for each in names] == [sent[each] for each in names]
        refused = launchpad.run(
            "push", "-u", "worker", str(tmp_path / "source"), f"pve1:{ctid}:/root/x"
        )
        assert refused.code == 125
        assert "[container]" in refused.err
    finally:
        lab.sh(ctid, 'rm -rf "/home/worker/$1"', name)


def test_wrong_words_are_wrong_usage(launchpad: Client, tmp_path: Path) -> None:
    source = str(put(tmp_path / "file"))
    for words, meant in (
        (("push", source, "pve1:101:relative"), "pve1:101:'~/relative'"),
        (("push", source, "pve1:101"), "pve1:101:/workspace"),
        (("push", "pve1:101:/x", source), "launchpad pull pve1:101:/x"),
        (("pull", source, "pve1:101:/x"), "launchpad push"),
        (("push", "--exclude", "", source, "pve1:101:/x"), "no pattern"),
    ):
        outcome = launchpad.run(*words)
        assert outcome.code == 2, str(outcome)
        assert meant in outcome.err, str(outcome)
        assert outcome.out == ""


@pytest.mark.exclusive
def test_one_connection_one_channel_one_call(
    lab: Lab, launchpad: Client, there: str, tmp_path: Path
) -> None:
    put(tmp_path / "source/file")
    remote = f"pve1:{DEBIAN}:{there}"
    for words in (
        ("push", str(tmp_path / "source"), remote),
        ("pull", remote, str(tmp_path / "b")),
    ):
        traffic = lab.watch()
        launchpad.succeed(*words)
        counts = (len(traffic.connections), len(traffic.sessions), len(traffic.pct_calls))
        assert counts == (1, 1, 1)


@TRANSPORTS
def test_memory_does_not_grow_with_what_is_copied(
    launchpad: Client, there: str, tmp_path: Path, transport: str
) -> None:
    with put(tmp_path / "big").open("wb") as file:
        file.truncate(200_000_000)
    remote = f"pve1:{DEBIAN}:{there}"
    for words in (
        ("push", str(tmp_path / "big"), remote),
        ("pull", remote, str(tmp_path / "back")),
    ):
        process = launchpad.start("--transport", transport, *words)
        _out, err = process.stdout, process.stderr
        assert err is not None
        peak = 0
        while process.poll() is None:
            peak = max(peak, peak_memory(process.pid))
            time.sleep(0.01)
        assert process.returncode == 0, err.read()
        assert 0 < peak < 80_000_000, peak
    assert (tmp_path / "back").stat().st_size == 200_000_000


def test_a_client_that_is_killed_leaves_nothing_there(
    lab: Lab, launchpad: Client, there: str, tmp_path: Path
) -> None:
    with put(tmp_path / "source/big").open("wb") as file:
        file.truncate(3_000_000_000)
    lab.sh(DEBIAN, 'mkdir -p "$1" && echo old >"$1/big"', there)
    process = launchpad.start("push", str(tmp_path / "source"), f"pve1:{DEBIAN}:{there}")
    staged = 'ls -d "$1"/.launchpad-push-*/tree 2>/dev/null'
    wait_until(
        lambda: lab.sh(DEBIAN, staged, there, check=False) or process.poll() is not None,
        what="the push has begun",
    )
    assert process.poll() is None, process.communicate()
    process.kill()
    process.wait()
    wait_until(
        lambda: lab.sh(DEBIAN, 'ls -A "$1"', there).split() == ["big"], 60, what="cleared up"
    )
    assert lab.sh(DEBIAN, 'cat "$1/big"', there) == "old\n"


@pytest.mark.exclusive
def test_hostile_tar_in_the_container_writes_nothing_outside(
    lab: Lab, launchpad: Client, there: str, tmp_path: Path
) -> None:
    lab.sh(DEBIAN, 'mkdir -p "$1"', there)
    evil = tmp_path / "dest/../evil"
    script = (
        "#!/usr/bin/python3\n"
        "import io, sys, tarfile\n"
        "archive = tarfile.open(fileobj=sys.stdout.buffer, mode='w|')\n"
        "link = tarfile.TarInfo('./x'); link.type = tarfile.SYMTYPE; link.linkname = '..'\n"
        "archive.addfile(link)\n"
        "info = tarfile.TarInfo('./x/evil'); info.size = 4\n"
        "archive.addfile(info, io.BytesIO(b'evil'))\n"
        "archive.close()\n"
    )
    with lab.file_in(DEBIAN, f"{there}/tar", script, "755"):
        lab.sh(DEBIAN, 'mkdir -p /usr/local/sbin; ln -sf "$1/tar" /usr/local/sbin/tar', there)
        try:
            outcome = launchpad.run("pull", f"pve1:{DEBIAN}:{there}", str(tmp_path / "dest"))
        finally:
            lab.sh(DEBIAN, "rm -f /usr/local/sbin/tar")
    assert outcome.code == 125, str(outcome)
    assert not evil.exists()


# run --push, run --file, rerun.


@BOTH
def test_edit_run_look_is_one_command(
    lab: Lab, launchpad: Client, tmp_path: Path, ctid: int
) -> None:
    tree = tmp_path / f"project-{tmp_path.name}"
    put(tree / "train", "#!/bin/sh\npwd; cat data/x\n").chmod(0o755)
    put(tree / "data/x", "one\n")
    put(tree / ".gitignore", "*.pt\n")
    put(tree / "model.pt")
    try:
        words = ("--push", str(tree), f"pve1:{ctid}", "--", "./train")
        job = launchpad.start_job(*words)
        launchpad.expect_end(job, code=0)
        assert launchpad.log(job).decode() == f"/root/{tree.name}\none\n"
        assert "model.pt" not in lab.sh(ctid, 'ls "/root/$1"', tree.name)
        put(tree / "data/x", "two\n")
        again = launchpad.run("rerun", job)
        assert again.code == 0, str(again)
        (new,) = again.out.splitlines()
        launchpad.expect_end(new, code=0)
        assert launchpad.log(new).decode().endswith("two\n")
        # Where to run may be said as well.
        job = launchpad.start_job("-C", "/tmp", "--push", str(tree), f"pve1:{ctid}", "--", "pwd")
        launchpad.expect_end(job, code=0)
        assert launchpad.log(job) == b"/tmp\n"
    finally:
        lab.sh(ctid, 'rm -rf "/root/$1"', tree.name)


def test_a_push_that_fails_starts_nothing(launchpad: Client, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    outcome = launchpad.run(
        *("run", "--json", "-u", "nobody-at-all", "--push", str(tmp_path / "tree")),
        *(f"pve1:{DEBIAN}", "--", "true"),
    )
    assert outcome.code == 125
    assert outcome.json()["started"] == "no"
    assert launchpad.known_jobs() == []
    outcome = launchpad.run("run", "--push", str(tmp_path / "none"), f"pve1:{DEBIAN}", "--", "true")
    assert outcome.code == 125
    assert "not a directory" in outcome.err


def test_a_job_file_is_run_and_changed_on_top(launchpad: Client, tmp_path: Path) -> None:
    file = put(
        tmp_path / "job.toml",
        f'target = "pve1:{DEBIAN}"\nname = "filed"\nshell = "echo $A $B; pwd"\ncwd = "/tmp"\n'
        'time_limit = "5m"\n[env]\nA = "one"\nB = "two"\n',
    )
    job = launchpad.start_job("--file", str(file), "--set", "env.B=three", "-e", "A=zero")
    assert job.startswith("filed-")
    launchpad.expect_end(job, code=0)
    assert launchpad.log(job) == b"zero three\n/tmp\n"
    assert launchpad.status(job)["time_limit_s"] == 300
    job = launchpad.start_job("--file", str(file), "-n", "mine", f"pve1:{BUSYBOX}", "--", "pwd")
    launchpad.expect_end(job, code=0)
    assert launchpad.log(job) == b"/tmp\n"
    outcome = launchpad.run("run", "--set", "name=x", f"pve1:{DEBIAN}", "--", "true")
    assert outcome.code == 125
    assert "--file" in outcome.err


def test_rerun_takes_values_from_where_they_are_and_else_starts_nothing(
    launchpad: Client, tmp_path: Path
) -> None:
    env_file = put(tmp_path / "some.env", "FROM_FILE=filed\n")
    # The end of a job's log is shown and remembered, so the job must not print what is secret.
    script = 'echo "$FROM_FILE ${#TOKEN} $LITERAL"'
    first = launchpad.start_job(
        *("--env-file", str(env_file), "-e", "TOKEN", "-e", "LITERAL=1"),
        *("-n", "secrets", f"pve1:{DEBIAN}", "--", "sh", "-c", script),
        env={"TOKEN": "hunter2"},
    )
    launchpad.expect_end(first, code=0)
    before = launchpad.known_jobs()
    refused = launchpad.run("rerun", "secrets")
    assert refused.code == 125
    assert "rerun needs TOKEN, LITERAL" in refused.err
    assert launchpad.known_jobs() == before
    # What nobody wants from the file need not be there.
    put(env_file, "NOT_HERE\nFROM_FILE=filed\n")
    again = launchpad.run("rerun", "secrets", "-e", "LITERAL=2", env={"TOKEN": "hunter333"})
    assert again.code == 0, str(again)
    launchpad.expect_end(again.out.strip(), code=0)
    assert launchpad.log(again.out.strip()) == b"filed 9 2\n"
    # No value stands in the index, nor in what was said.
    for secret in (b"hunter2", b"hunter333"):
        assert secret not in launchpad.index.read_bytes()
        assert secret not in refused.stderr + again.stderr


def test_rerun_keeps_directory_user_and_log(
    lab: Lab, launchpad: Client, make_client: Callable[..., Client], there: str
) -> None:
    lab.sh(DEBIAN, 'mkdir -p "$1"', there)
    words = ("-C", there, "--log", f"{there}/log", f"pve1:{DEBIAN}", "-c", "pwd; exit 4")
    job = launchpad.start_job(*words, code=4)
    launchpad.expect_end(job, code=4)
    again = launchpad.run("rerun", "--wait", job)
    assert again.code == 4, str(again)
    assert lab.sh(DEBIAN, 'cat "$1/log"', there) == f"{there}\n{there}\n"
    # Another machine, which never saw it.
    other = make_client("other")
    assert other.run("rerun", job).code == 125
    outcome = other.run("rerun", "--wait", f"pve1:{DEBIAN}/{job}")
    assert outcome.code == 4, str(outcome)


# prune.


def test_prune_shows_asks_and_removes(lab: Lab, launchpad: Client) -> None:
    old = launchpad.start_job("-n", "prunable", f"pve1:{BUSYBOX}", "--", "echo", "hello")
    launchpad.expect_end(old, code=0)
    young = launchpad.start_job("-n", "young", f"pve1:{BUSYBOX}", "--", "true")
    launchpad.expect_end(young, code=0)
    # Four thousand days: whatever else is in the shared container is younger.
    lab.sh(
        BUSYBOX,
        'cd "/var/lib/launchpad/jobs/$1" && set -- end,* && IFS=, && set -- $1 &&'
        ' mv "$*" "$1,$2,$3,$4,$(($5 - 345600000)),$6,$7,$8,$9,${10}"',
        old,
    )
    words = ("prune", f"pve1:{BUSYBOX}", "--older-than", "3900d")
    refused = launchpad.run(*words)
    assert refused.code == 2
    assert "--yes" in refused.err
    shown = launchpad.succeed(*words, "--dry-run")
    assert old in shown.err
    assert young not in shown.err
    assert lab.sh(BUSYBOX, 'ls -d "/var/lib/launchpad/jobs/$1"', old)
    launchpad.succeed(*words, "--yes")
    assert not lab.sh(BUSYBOX, 'ls -d "/var/lib/launchpad/jobs/$1" 2>&1 | grep -v o.such || :', old)
    assert [job for job, _target in launchpad.known_jobs()] == [young]
    gone = launchpad.run("status", old)
    assert gone.code == 125
