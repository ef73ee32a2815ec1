"""The most memory that a client ever has, whatever is asked of it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from benchmarks.table import Row
from benchmarks.verbs import MANY, ended_jobs
from benchmarks.ways import TARGET, small_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from benchmarks.ways import Ways

# Its own process is small and the child's parent, so that what wait4 tells is the child's alone.
_PEAK = """
import os, sys
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as file:
    file.write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def remembering(ways: Ways, place: Path, megabytes: int) -> Iterator[Row]:
    """Of every verb, with much of what it works on."""
    size = megabytes * 1_000_000
    flood = f"head -c {size} /dev/zero"
    job = ways.user.start_job(TARGET, "-c", f"{flood}; echo; seq 100000")
    ways.user.succeed("wait", job)
    idle = ways.user.start_job(TARGET, "--", "sleep", "600")
    tree = small_files(place / "much", 1000, 20_000)
    with (tree / "big").open("wb") as file:
        file.truncate(size)
    there = f"{TARGET}:/root/bench-much"
    start = ("--confirm", "0")
    verbs: dict[str, Sequence[str]] = {
        "run": ("run", *start, TARGET, "--", "sleep", "61"),
        f"run -f, {megabytes} MB in one line": ("run", "-f", TARGET, "-c", flood),
        "rerun": ("rerun", *start, "--no-follow", idle),
        f"tail -n all of {megabytes} MB": ("tail", "-n", "all", job),
        f"tail of a line of {megabytes} MB": ("tail", "-n", "100001", job),
        "tail -f": ("tail", "-f", "-n", "all", job),
        "wait": ("wait", ways.user.start_job(TARGET, "--", "sleep", "10")),
        f"exec, {megabytes} MB": ("exec", TARGET, "--", "sh", "-c", flood),
        f"push of 1000 files and one of {megabytes} MB": ("push", str(tree), there),
        f"pull of 1000 files and one of {megabytes} MB": ("pull", there, str(place / "pulled")),
        "kill": ("kill", idle),
        "doctor": ("doctor", TARGET),
    }
    for verb, words in verbs.items():
        yield _row(ways, place, verb, words)
    ways.lab.sh(int(TARGET.partition(":")[2]), "rm -rf /root/bench-much")
    with ended_jobs(ways, 1000):
        yield _row(ways, place, "status of 1000 jobs", ("status", MANY))
    with ended_jobs(ways, 100):
        words = ("prune", "--yes", "--older-than", "0s", MANY)
        yield _row(ways, place, "prune of 100 jobs", words)


def _row(ways: Ways, place: Path, verb: str, words: Sequence[str]) -> Row:
    note = place / "peak"
    wrapper = (sys.executable, "-S", "-E", "-c", _PEAK, str(note))
    process = ways.user.start(*words, prefix=wrapper, stdout=subprocess.DEVNULL)
    _, said = process.communicate()
    if process.returncode:
        text = said.decode(errors="replace")
        raise RuntimeError(f"{words}: {process.returncode}: {text}")
    return Row(f"peak memory of `{verb}`", int(note.read_text()) * 1024 / 1e6, 80, 60, " MB")
