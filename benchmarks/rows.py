"""The rows of the table: each compares two things that were timed in turn."""

from __future__ import annotations

import json
import sqlite3
import statistics
import subprocess
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.ways import FIVE, TARGET, Ways, seconds_of, small_files
from launchpad.job import new_job_id
from support.lab import DEBIAN
from support.processes import peak_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

# Where many jobs have ended.
MANY = "pve2:105"


@dataclass(frozen=True, slots=True)
class Row:
    """``value``: what was measured. ``must``, ``stretch``: what it should not be above."""

    what: str
    value: float
    must: float | None
    stretch: float | None
    unit: str = ""
    detail: str = ""

    @property
    def verdict(self) -> str:
        """Whether it is as it should be."""
        if self.must is None:
            return ""
        if self.value > self.must:
            return "**not met**"
        return "met" if self.stretch is None or self.value > self.stretch else "stretch"

    def __str__(self) -> str:
        limits = [f"≤ {each:g}" if each is not None else "" for each in (self.must, self.stretch)]
        return (
            f"| {self.what} | {self.value:.2f}{self.unit} | {limits[0]} | {limits[1]}"
            f" | {self.verdict} | {self.detail} |"
        )

    def document(self) -> dict[str, object]:
        """For the JSON."""
        return {**asdict(self), "verdict": self.verdict.strip("*")}


def in_turn(rounds: int, actions: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Time all of them in each round, so that what else the machine does is shared by all."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()  # caches are warm for everybody
    for _ in range(rounds):
        for name, action in actions.items():
            times[name].append(action())
    return times


def spread(times: list[float]) -> str:
    """Median and the middle half, in milliseconds."""
    if len(times) < 4:  # noqa: PLR2004
        return f"{statistics.median(times) * 1000:.0f} ms"
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle * 1000:.0f} ms ({low * 1000:.0f} to {high * 1000:.0f})"


def ratio(
    what: str,
    times: Mapping[str, list[float]],
    pair: tuple[str, str],
    must: float | None,
    stretch: float | None,
) -> Row:
    """The medians of two things, divided."""
    one, other = (times[name] for name in pair)
    value = statistics.median(one) / statistics.median(other)
    return Row(what, value, must, stretch, "", f"{spread(one)} ÷ {spread(other)}")


def starting(ways: Ways, rounds: int, delay: str) -> Iterator[Row]:
    """What a start costs, beside the line that is typed by hand. ``delay``: pct's own (seconds)."""
    with ways.lab.switch("delay", delay):
        times = in_turn(
            rounds,
            {
                "typed": ways.one_liner,
                "typed, shared": ways.one_liner_shared,
                "paramiko": ways.run_paramiko,
                "shared": ways.run_shared,
            },
        )
    note = f"(pct {delay} s)"
    cold, shared = ("paramiko", "typed"), ("shared", "typed")
    yield ratio(f"run, paramiko, cold ÷ typed line, cold {note}", times, cold, 2.0, 1.5)
    yield ratio(f"run, shared connection ÷ typed line, cold {note}", times, shared, 0.8, 0.6)
    both = ("shared", "typed, shared")
    yield ratio(f"run, shared ÷ typed line, ControlMaster {note}", times, both, None, None)


def helping(ways: Ways, rounds: int) -> Iterator[Row]:
    """What the interpreter costs."""
    times = in_turn(rounds, {"help": ways.help, "python": ways.python})
    yield ratio("launchpad --help ÷ python -c pass", times, ("help", "python"), 7, 5)


def looking(ways: Ways, rounds: int) -> Iterator[Row]:
    """What `status` costs with many jobs, and with many containers."""
    running = ways.user.start_job(MANY, "--", "sleep", "600")

    def look() -> float:
        return ways.launchpad(ways.user, "status", running)

    # The same container before and after: not in turn, but nothing else differs.
    with ended_jobs(ways, 1):
        few = in_turn(rounds, {"few": look})
    with ended_jobs(ways, 1000):
        many = in_turn(rounds, {"many": look})
    yield ratio("status, 1000 ended jobs ÷ 1", {**few, **many}, ("many", "few"), 1.5, 1.1)
    jobs = {
        ctid: ways.user.start_job(f"{node}:{ctid}", "--", "sleep", "600")
        for ctid, node in FIVE.items()
    }
    with ways.lab.switch("delay", "0.25"):
        times = in_turn(
            rounds,
            {
                "one": lambda: ways.launchpad(ways.user, "status", jobs[DEBIAN]),
                "five": lambda: ways.launchpad(ways.user, "status", *jobs.values()),
            },
        )
    yield ratio(
        "status, 5 containers on 2 hosts ÷ 1 (delay 0.25)", times, ("five", "one"), 2.5, 1.5
    )


@contextmanager
def ended_jobs(ways: Ways, count: int) -> Iterator[None]:
    """So many jobs that have ended, as copies of one, in the container and in the index."""
    job = ways.user.start_job(MANY, "--", "true")
    ways.user.succeed("wait", job)
    copies = [str(new_job_id("true")) for _ in range(count - 1)]
    copy = 'cd /var/lib/launchpad/jobs && one=$1 && shift && for job; do cp -a "$one" "$job"; done'
    ctid = int(MANY.partition(":")[2])
    ways.lab.sh(ctid, copy, job, *copies)
    ways.user.succeed("status", MANY)  # the index learns of them
    try:
        yield
    finally:
        ways.lab.sh(ctid, 'cd /var/lib/launchpad/jobs && rm -rf "$@"', job, *copies)
        with closing(sqlite3.connect(ways.user.index)) as index, index:
            gone = [(each,) for each in (job, *copies)]
            index.executemany("DELETE FROM job WHERE id = ?", gone)


def costing(ways: Ways) -> Iterator[Row]:
    """What a running job costs in its container beyond itself, and a verb on the way there."""
    lab, user = ways.lab, ways.user
    job = user.start_job(TARGET, "--", "sleep", "600")
    record = lab.sh(DEBIAN, 'cat "/var/lib/launchpad/jobs/$1/main"', job).split()
    supervisor = record[7]
    ours = "cat /proc/$1/task/$1/children; grep -h '^Pss:' /proc/$1/smaps_rollup"
    lines = lab.sh(DEBIAN, ours, supervisor).split()
    children = [word for word in lines[: lines.index("Pss:")] if word != record[1]]
    kilobytes = int(lines[lines.index("Pss:") + 1])
    yield Row("processes that a running job costs", 1 + len(children), 2, 1)
    yield Row("memory that a running job costs", kilobytes / 1000, 4, 1, " MB", "PSS")
    verbs = {
        "run": ("run", "--confirm", "0", TARGET, "--", "sleep", "61"),
        "status": ("status", job),
        "tail": ("tail", job),
        "kill": ("kill", job),
    }
    for verb, words in verbs.items():
        traffic = lab.watch()
        user.succeed(*words)
        most = max(len(traffic.connections), len(traffic.sessions), len(traffic.pct_calls))
        yield Row(
            f"connections, channels, pct exec calls of `{verb}`, the most of them", most, 1, None
        )


def pushing(ways: Ways, rounds: int, place: Path) -> Iterator[Row]:
    """A thousand small files, beside tar through ssh."""
    tree = small_files(place / "tree", 1000, 20_000)
    config = str(ways.lab.ssh_config)
    there = (
        "/usr/sbin/pct exec 101 -- sh -c 'mkdir -p /root/bench-tar && tar xf - -C /root/bench-tar'"
    )
    piped = 'tar cf - -C "$1" . | ssh -F "$2" pve1 "$3"'

    def push(transport: str) -> Callable[[], float]:
        words = ("push", "--transport", transport, str(tree), f"{TARGET}:/root/bench-push")
        return lambda: ways.launchpad(ways.user, *words)

    actions = {
        "tar": lambda: seconds_of(["sh", "-c", piped, "sh", str(tree), config, there]),
        "paramiko": push("paramiko"),
        "openssh": push("openssh"),
    }
    times = in_turn(rounds, actions)
    ways.lab.sh(DEBIAN, "rm -rf /root/bench-tar /root/bench-push")
    for transport in ("paramiko", "openssh"):
        what = f"push of 1000 files, 20 MB, {transport} ÷ tar | ssh … tar"
        yield ratio(what, times, (transport, "tar"), 1.3, 1.1)


def remembering(ways: Ways) -> Iterator[Row]:
    """The most memory that a client has, whatever is asked of it."""
    job = ways.user.start_job(TARGET, "-c", "head -c 200000000 /dev/zero; echo; seq 100000")
    ways.user.succeed("wait", job)
    for verb, words in {
        "tail -n all": ("tail", "-n", "all", job),
        "tail of a line of 200 MB": ("tail", "-n", "100002", job),
        "status": ("status", "--all"),
        "run": ("run", "--confirm", "0", TARGET, "--", "true"),
    }.items():
        process = ways.user.start(*words, stdout=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            peak = max(peak, peak_memory(process.pid))
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.01)
        process.communicate()
        yield Row(f"peak memory of `{verb}`", peak / 1e6, 80, 60, " MB")


def written(rows: list[Row]) -> str:
    """The rows as JSON."""
    return json.dumps({"schema": 1, "rows": [row.document() for row in rows]}, indent=1)
