"""Many jobs in one container from many clients at once, and what must be true of them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faults.load_client import CODES, WITNESS
from faults.truth import Truth

from support.client import Client

if TYPE_CHECKING:
    from support.lab import Lab

_PROGRAM = Path(__file__).with_name("load_client.py")


@dataclass(frozen=True, slots=True)
class Loaded:
    """``jobs``: what the clients were told. ``started``: what the jobs themselves noted.

    ``logs``: of each id, what lies in the container.
    """

    jobs: list[dict[str, Any]]
    logs: dict[str, bytes | None]
    started: list[str]
    said: list[str]
    seconds: float

    def wrong(self, count: int) -> list[str]:
        """What is not as it must be after ``count`` jobs."""
        ids = {each["id"] for each in self.jobs}
        found = [f"a client said: {text}" for text in self.said if text]
        if len(ids) != count or len(self.jobs) != count:
            found.append(f"{len(ids)} ids of {len(self.jobs)} answers for {count} jobs")
        if len(self.started) != count or len(set(self.started)) != count:
            found.append(f"{len(self.started)} starts of {len(set(self.started))} jobs")
        for each in self.jobs:
            wanted = int(each["token"].rpartition("-")[2]) % CODES
            log = self.logs[each["id"]]
            if (each["code"], log) != (wanted, f"{each['token']}\n".encode()):
                found.append(f"code {wanted} and its token were to come: {each}, {log!r}")
        return found


def load(lab: Lab, place: Path, ctid: int, *, jobs: int, clients: int, at_a_time: int) -> Loaded:
    """``jobs`` jobs in one container, shared out among ``clients`` processes."""
    lab.sh(ctid, f"rm -f {WITNESS}")
    shares = [jobs // clients + (number < jobs % clients) for number in range(clients)]
    width = max(1, at_a_time // clients)
    began = time.monotonic()
    running = []
    homes = []
    for number, share in enumerate(shares):
        home = Client(place / f"load-{number}", {"LAUNCHPAD_SSH_CONFIG": str(lab.ssh_config)})
        homes.append(home)
        words = [f"pve1:{ctid}", f"load{number}", str(share), str(width)]
        running.append(
            subprocess.Popen(
                [sys.executable, str(_PROGRAM), *words],
                env=home.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    told, said = [], []
    for process in running:
        stdout, stderr = process.communicate(timeout=900)
        told += [json.loads(line) for line in stdout.splitlines()]
        said.append(stderr.strip())
    seconds = time.monotonic() - began
    started = lab.sh(ctid, f"cat {WITNESS}; rm -f {WITNESS}").split()
    truth = Truth(lab, ctid)
    logs = truth.logs([each["id"] for each in told])
    for home in homes:
        lab.end_jobs(ctid, home.identities())
    return Loaded(told, logs, started, said, seconds)
