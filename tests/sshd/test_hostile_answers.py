"""A node or container that answers with floods and lies: memory stays bounded, and it ends."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest

from launchpad.command import Argv
from launchpad.errors import LaunchpadError, Layer
from launchpad.index import Entry
from launchpad.job import JobSpec, new_job_id
from launchpad.launcher import conversation, launching, outcome, streaming
from launchpad.launcher.desk import Desk
from launchpad.launcher.follow import Follow
from launchpad.launcher.request import RunRequest, StartFailed
from launchpad.launcher.run import start
from launchpad.launcher.transfer import Pull, Push, pull, push
from launchpad.target import RemoteContainer, parse_target
from support.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.sshd import Said, Server, ServerMaker

# What sits in the place of pct and of every shell in the container. The CTID says what it does. It
# knows the marker, as whoever rules the container does.
HOSTILE = r"""
import os, re, sys
line = os.environ["SSH_ORIGINAL_COMMAND"]
what = int(re.search(r"exec (\d+)", line)[1])
out = sys.stdout.buffer
size = int(re.search(r"bs=(\d+)", line)[1])
read = 0
while read < size:
    read += len(os.read(0, size - read))
head = b""
while not head.endswith(b"\n"):
    head += os.read(0, 1)
marker = head.split()[0]
def frame(text):
    return b"\n" + marker + b" " + text + b"\n"
def flood(first, then):
    out.write(first)
    while True:
        out.write(then)
now = frame(b"begin 1") + frame(b"now 1700000000 5000 b00 30 c0 - -")
try:
    if what == 101:
        flood(b"", b"Welcome!\n" * 4000)
    elif what == 102:
        flood(frame(b"begin 1") + frame(b"job a-aaaaaa"), b"x" * 65536)
    elif what == 103:
        out.write(now)
        for number in range(23000):
            name = (b"a-%06d" % number).translate(bytes.maketrans(b"0189", b"abcd"))
            out.write(frame(b"job " + name) + b"directory\n")
        out.write(frame(b"done"))
    elif what == 104:
        out.write(frame(b"archive"))
    elif what == 105:
        out.write(frame(b"refused no-such-thing 0") + frame(b"done"))
    elif what == 106:
        out.write(frame(b"log " + b"9" * 4000))
        flood(b"\x1e" + marker + b" end\n" + frame(b"job a-aaaaaa"), b"x" * 65536)
    elif what == 107:
        job = frame(b"job a-aaaaaa") + b"directory\n"
        last = b"x" * 8_000_000
        noise = b"/.//."
        logs = frame(b"logs " + noise) + b"==> a-aaaaaa" + noise + b"/log <==\n" + last
        out.write(now + job + logs + frame(b"done"))
    out.flush()
except BrokenPipeError:
    os._exit(0)
"""

# The peak of a child's memory in KiB, into a file: its own, not what it had before its exec.
MEASURE = (
    "import resource, subprocess, sys\n"
    "code = subprocess.call(sys.argv[2:])\n"
    "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
    "with open(sys.argv[1], 'w') as file:\n    file.write(str(peak))\n"
    "sys.exit(code)\n"
)


@pytest.fixture(scope="module")
def hostile(start_server: ServerMaker, tmp_path_factory: pytest.TempPathFactory) -> Server:
    program = tmp_path_factory.mktemp("hostile") / "answer.py"
    program.write_text(HOSTILE)
    return start_server("MaxStartups 100", f"ForceCommand exec {sys.executable} {program}")


@pytest.fixture
def desk(hostile: Server, said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk whose patience with what does not answer is a second."""
    for module in (streaming, launching, conversation):
        monkeypatch.setattr(module, "ANSWER_DEADLINE", 1.0)
    monkeypatch.setattr(launching, "PROFILE_DEADLINE", 1)
    monkeypatch.setattr(outcome, "_RECOVERY", 0.0)
    return Desk(
        said.options(hostile.config()), lambda _line: None, index_file=tmp_path / "index.sqlite3"
    )


def here(number: int) -> RemoteContainer:
    target = parse_target(f"there:{number}")
    assert isinstance(target, RemoteContainer)
    return target


def try_pull(desk: Desk, number: int, place: Path) -> None:
    pull(desk, Pull(here(number), "/x", place / "pulled"))


def try_push(desk: Desk, number: int, place: Path) -> None:
    (place / "source").mkdir()
    push(desk, Push(place / "source", here(number), "/x"))


def try_run(desk: Desk, number: int, _place: Path) -> None:
    spec = JobSpec(new_job_id("test"), Argv(("true",)))
    try:
        start(desk, RunRequest(here(number), spec))
    except StartFailed as failure:
        # Nobody can know; what is not known is not called started.
        if failure.started != "yes":
            raise failure.error from failure


def try_follow(desk: Desk, number: int, _place: Path) -> None:
    entry = Entry(
        *(new_job_id("test"), f"there:{number}", "there", "there", number),
        *("/var/lib/launchpad", "/x", "{}", 0.0),
    )
    desk.index.add(entry)
    with Follow(desk, entry) as follow:
        while True:
            follow.next_event(5)


@pytest.mark.parametrize("verb", [try_pull, try_push, try_run, try_follow])
@pytest.mark.parametrize("number", [101, 102], ids=["endless-banner", "endless-frame"])
def test_a_flood_in_the_place_of_an_answer_ends(
    verb: Callable[[Desk, int, Path], None], number: int, desk: Desk, tmp_path: Path
) -> None:
    with pytest.raises(LaunchpadError) as refused:
        verb(desk, number, tmp_path)
    assert refused.value.layer in {Layer.SHELL, Layer.CONTAINER}
    assert refused.value.advice


def test_what_follows_a_log_without_end_ends(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(LaunchpadError) as refused:
        try_follow(desk, 106, tmp_path)
    assert refused.value.layer is Layer.SHELL


def test_lies_are_errors_with_a_layer(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(LaunchpadError) as refused:
        try_pull(desk, 104, tmp_path)
    assert refused.value.layer is Layer.SHELL
    # A refusal whose code is 0 would be a success for whoever looks at the code alone.
    with pytest.raises(LaunchpadError) as refused:
        try_run(desk, 105, tmp_path)
    assert refused.value.exit_code == 125


@pytest.mark.parametrize("number", [101, 102, 103, 107])
def test_status_of_a_hostile_container_takes_no_memory(
    number: int, hostile: Server, tmp_path: Path
) -> None:
    """Endless noise, an endless frame, very many jobs, a last line of 8 MB."""
    client = Client(tmp_path / "home")
    peak = tmp_path / "peak"
    outcome = client.run(
        *("-F", str(hostile.config()), "--transport", "paramiko", "status", f"there:{number}"),
        prefix=(sys.executable, "-c", MEASURE, str(peak)),
    )
    if number == 107:
        assert outcome.code == 0, str(outcome)
        assert len(outcome.stdout) < 100_000
    else:
        assert outcome.code == 125, str(outcome)
        assert re.search(r"\[(shell|container)\]|container|shell", outcome.err), str(outcome)
    assert int(peak.read_text()) < 128 * 1024
