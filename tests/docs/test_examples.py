"""The files of examples/, executed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.client import REPOSITORY
from support.lab import DEBIAN

if TYPE_CHECKING:
    from pathlib import Path

    from support.client import Client
    from support.lab import Lab

TARGET = "pve1:101"


def _run(client: Client, *words: str) -> subprocess.CompletedProcess[str]:
    """A program of a user who has launchpad on PATH."""
    tools = client.home / "bin"
    tools.mkdir()
    program = tools / "launchpad"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m launchpad "$@"\n')
    program.chmod(0o755)
    environment = {**client.environment, "PATH": f"{tools}:{client.environment['PATH']}"}
    return subprocess.run(
        words, env=environment, cwd=client.home, capture_output=True, text=True, check=False
    )


@pytest.mark.timeout(180)
def test_sweep(lab: Lab, launchpad: Client) -> None:
    done = _run(launchpad, str(REPOSITORY / "examples/sweep"), TARGET, "1e-2", "1e-3")
    assert done.returncode == 0, done
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["lr"] for result in results] == [0.01, 0.001]
    assert len(launchpad.known_jobs()) == 2
    lab.sh(DEBIAN, "rm -r /opt/sweep")


def test_sweep_says_what_it_wants(launchpad: Client) -> None:
    done = _run(launchpad, str(REPOSITORY / "examples/sweep"))
    assert done.returncode != 0
    assert "usage" in done.stderr


@pytest.mark.timeout(180)
def test_api(lab: Lab, launchpad: Client) -> None:
    done = _run(launchpad, sys.executable, str(REPOSITORY / "examples/api.py"), TARGET)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout == "best: learning rate 0.0001 with loss 2.0\n"
    assert len(launchpad.known_jobs()) == 3
    lab.sh(DEBIAN, "rm -r /opt/api")


def test_api_tells_which_layer_failed(launchpad: Client) -> None:
    script = str(REPOSITORY / "examples/api.py")
    done = _run(launchpad, sys.executable, script, "127.0.0.1:101")
    assert done.returncode == 1
    assert "[ssh]" in done.stderr
    assert "Traceback" not in done.stderr


def test_job_file(lab: Lab, launchpad: Client, tmp_path: Path) -> None:
    file = tmp_path / "example/train.toml"
    file.parent.mkdir()
    for name in ("train.toml", "train.py"):
        (file.parent / name).write_text((REPOSITORY / "examples" / name).read_text())
    started = launchpad.succeed("run", "--json", "--file", str(file), "--set", "name=set").json()
    assert (started["name"], started["ready"], started["time_limit_s"]) == ("set", True, 7200.0)
    assert started["env_names"] == ["OMP_NUM_THREADS"]
    launchpad.expect_end(started["id"], code=0)
    lab.sh(DEBIAN, "rm -r ~/example")
