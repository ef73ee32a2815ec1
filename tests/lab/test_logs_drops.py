"""tail -f over lines that break: each byte exactly once."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import threading
import time
from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, Lab
from support.lines import wait_for_line
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.client import Client

TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])
BOTH = pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX])

# How often the line breaks in the long test, and how much is written meanwhile.
DROPS = int(os.environ.get("LAUNCHPAD_TEST_DROPS", "20"))
SIZE = 50_000_000
_PIECE = 65536

# Copies a file to its stdout, with pauses that look random; the last piece once it is told to.
_WRITE = """
i=0
while [ $i -lt $2 ]; do
  dd if="$1" bs=65536 skip=$i count=1 2>/dev/null
  i=$((i + 1))
  case $((i * 7919 % 13)) in 0) sleep 0.5 ;; 1 | 2 | 3) sleep 0.1 ;; [4-7]) sleep 0.05 ;; esac
done
until [ -e "$1.go" ]; do sleep 0.2; done
dd if="$1" bs=65536 skip=$i count=1 2>/dev/null
exit 7
"""


class Taker:
    """Takes what a process writes, and keeps the hash of it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.hash = hashlib.sha256()
        self.size = 0
        self.stderr = b""
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._take_stdout, self._take_stderr)
        ]
        for thread in self._threads:
            thread.start()

    def _take_stdout(self) -> None:
        assert self.process.stdout is not None
        while data := os.read(self.process.stdout.fileno(), 1 << 16):
            self.hash.update(data)
            self.size += len(data)

    def _take_stderr(self) -> None:
        assert self.process.stderr is not None
        while data := os.read(self.process.stderr.fileno(), 1 << 16):
            self.stderr += data

    def finish(self, timeout: float) -> int:
        code = self.process.wait(timeout)
        for thread in self._threads:
            thread.join(10)
        return code


@pytest.fixture
def source(lab: Lab, ctid: int) -> Iterator[str]:
    """A file of random lines in the container."""
    path = f"/var/tmp/drops-{os.getpid()}-{random.randrange(1 << 30)}"  # noqa: S311
    random_ = random.Random(ctid)  # noqa: S311
    data = b"".join(
        random_.randbytes(random_.choice((1, 30, 80, 200, 9000))).replace(b"\n", b"") + b"\n"
        for _ in range(SIZE // 1800)
    )[:SIZE]
    lab.run(ctid, "sh", "-c", 'cat >"$1"', "sh", path, stdin=data)
    yield path
    lab.run(ctid, "rm", "-f", path, f"{path}.go")


def log_hash(lab: Lab, ctid: int, job: str) -> str:
    path = f"/var/lib/launchpad/jobs/{job}/log"
    return lab.run(ctid, "sha256sum", path).stdout.decode().split()[0]


@pytest.mark.timeout(900)
@TRANSPORTS
@BOTH
def test_many_drops_cost_no_byte(
    lab: Lab, launchpad: Client, source: str, ctid: int, transport: str
) -> None:
    target = f"pve1:{ctid}"
    job = launchpad.start_job(
        *("--transport", transport, target, "--"),
        *("sh", "-c", _WRITE, "sh", source, str(SIZE // _PIECE - 1)),
    )
    follow = Taker(launchpad.start("tail", "--transport", transport, "-f", "-n", "all", job))
    pause = random.Random(transport)  # noqa: S311
    port = 0
    for number in range(DROPS):
        line = wait_for_line(lab, follow.process.pid, other_than=port)
        # Every second line is good for long enough to make the next pause a short one.
        time.sleep(pause.uniform(0.1, 1.5) if number % 2 else pause.uniform(2.2, 3.0))
        line.kill()
        port = line.port
    lab.run(ctid, "touch", f"{source}.go")
    assert follow.finish(300) == 7, follow.stderr
    assert follow.hash.hexdigest() == log_hash(lab, ctid, job), follow.stderr
    text = follow.stderr.decode()
    assert text.count(" lost at ") == text.count("launchpad: back at ") == DROPS
    assert "Traceback" not in text


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("ctid", "transport", "how"),
    [
        (DEBIAN, "paramiko", "stopped"),
        (DEBIAN, "openssh", "dropped"),
        (BUSYBOX, "paramiko", "dropped"),
        (BUSYBOX, "openssh", "stopped"),
    ],
)
def test_a_line_that_dies_in_silence_is_noticed_and_replaced(
    lab: Lab, launchpad: Client, ctid: int, transport: str, how: str
) -> None:
    script = 'i=0; while [ $i -lt 1300 ]; do echo "line $i"; i=$((i+1)); sleep 0.05; done; exit 5'
    job = launchpad.start_job("--transport", transport, f"pve1:{ctid}", "--", "sh", "-c", script)
    follow = Taker(launchpad.start("tail", "--transport", transport, "-f", "-n", "all", job))
    wait_until(lambda: follow.size > 100, what="the follow has begun")
    line = wait_for_line(lab, follow.process.pid)
    with line.stopped() if how == "stopped" else line.dropped():
        began = time.monotonic()
        wait_until(lambda: b" lost at " in follow.stderr, 60, "the loss is said")
        assert time.monotonic() - began < 50
        wait_until(lambda: b"back at " in follow.stderr, 30, "the new line is said")
        time.sleep(max(0.0, 60 - (time.monotonic() - began)))
    assert follow.finish(120) == 5, follow.stderr
    assert follow.hash.hexdigest() == log_hash(lab, ctid, job), follow.stderr
    assert follow.stderr.count(b" lost at ") == 1, follow.stderr


@TRANSPORTS
@BOTH
def test_a_job_that_ended_while_the_line_was_down_is_delivered_whole(
    lab: Lab, launchpad: Client, ctid: int, transport: str
) -> None:
    script = "printf 'half a '; sleep 5; echo line; echo end; exit 9"
    job = launchpad.start_job("--transport", transport, f"pve1:{ctid}", "--", "sh", "-c", script)
    follow = launchpad.start("tail", "--transport", transport, "-f", job)
    line = wait_for_line(lab, follow.pid)
    assert follow.stdout is not None
    assert os.read(follow.stdout.fileno(), 100) in {b"h", b"half a "}
    with line.stopped():
        time.sleep(0.3)
        directory = f"/var/lib/launchpad/jobs/{job}"
        wait_until(lambda: "end,1" in lab.sh(ctid, 'ls "$1"', directory), 20, "the end")
        line.kill()
    stdout, stderr = follow.communicate(timeout=60)
    assert follow.returncode == 9, stderr
    assert (b"half a " + stdout[-9:]) == b"half a line\nend\n"
    assert b"lost at" in stderr
    assert b"exited with code 9" in stderr


@TRANSPORTS
def test_wait_survives_lost_lines(lab: Lab, launchpad: Client, transport: str) -> None:
    options = ("--transport", transport)
    job = launchpad.start_job(*options, "pve1:101", "--", "sh", "-c", "sleep 12; exit 6")
    waiting = launchpad.start("wait", *options, job)
    port = 0
    for _ in range(2):
        line = wait_for_line(lab, waiting.pid, other_than=port)
        time.sleep(0.7)
        line.kill()
        port = line.port
    _, stderr = waiting.communicate(timeout=60)
    assert waiting.returncode == 6, stderr
    assert stderr.count(b"lost at") == 2, stderr


@TRANSPORTS
def test_a_login_that_is_refused_ends_the_follow(
    lab: Lab, launchpad: Client, tmp_path: object, transport: str
) -> None:
    options = ("--transport", transport)
    job = launchpad.start_job(*options, "pve1:101", "--", "sleep", "60")
    config = launchpad.home / "ssh_config"
    config.write_text(lab.ssh_config.read_text())
    follow = launchpad.start("tail", *options, "-F", str(config), "-f", job)
    line = wait_for_line(lab, follow.pid)
    time.sleep(1)
    key = launchpad.home / "other_key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    text = config.read_text()
    old = next(word for word in text.split() if "id_ed25519" in word)
    config.write_text(text.replace(old, str(key)))
    line.kill()
    _, stderr = follow.communicate(timeout=60)
    assert follow.returncode == 125, stderr
    assert b"[login]" in stderr
