"""What the other verbs cost: their start, many jobs, calls of pct, files."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.table import Row, in_turn, ratio
from benchmarks.ways import FIVE, TARGET, Call, Ways, small_files
from launchpad.job import new_job_id
from support.lab import DEBIAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# Where many jobs have ended.
MANY = "pve2:105"

# One step after the other is what these are: each layer by itself; a look, and then the removal of
# what was agreed to. Over one connection.
_IN_STEPS = frozenset({"doctor", "prune"})


def helping(ways: Ways, rounds: int) -> Iterator[Row]:
    """What the interpreter costs."""
    actions = {"help": lambda: ways.help().seconds(), "python": lambda: ways.python().seconds()}
    times = in_turn(rounds, actions)
    yield ratio("launchpad --help ÷ python -c pass", times, ("help", "python"), 7, 5)


def looking(ways: Ways, rounds: int) -> Iterator[Row]:
    """What `status` costs with many jobs, and with many containers."""
    running = ways.user.start_job(MANY, "--", "sleep", "600")
    look = ways.launchpad(ways.user, "status", running)
    # The same container before and after: not in turn, but nothing else differs.
    with ended_jobs(ways, 1):
        few = in_turn(rounds, {"few": look.seconds})
    with ended_jobs(ways, 1000):
        many = in_turn(rounds, {"many": look.seconds})
    yield ratio("status, 1000 ended jobs ÷ 1", {**few, **many}, ("many", "few"), 1.5, 1.1)
    jobs = {
        ctid: ways.user.start_job(f"{node}:{ctid}", "--", "sleep", "600")
        for ctid, node in FIVE.items()
    }
    actions = {
        "one": ways.launchpad(ways.user, "status", jobs[DEBIAN]).seconds,
        "five": ways.launchpad(ways.user, "status", *jobs.values()).seconds,
    }
    with ways.lab.switch("delay", "0.25"):
        times = in_turn(rounds, actions)
    what = "status, 5 containers on 2 hosts ÷ 1 (pct 0.25 s)"
    yield ratio(what, times, ("five", "one"), 2.5, 1.5)


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


def residing(ways: Ways) -> Iterator[Row]:
    """What a running job costs in its container beyond itself."""
    job = ways.user.start_job(TARGET, "--", "sleep", "600")
    record = ways.lab.sh(DEBIAN, 'cat "/var/lib/launchpad/jobs/$1/main"', job).split()
    supervisor = record[7]
    ours = "cat /proc/$1/task/$1/children; grep -h '^Pss:' /proc/$1/smaps_rollup"
    lines = ways.lab.sh(DEBIAN, ours, supervisor).split()
    children = [word for word in lines[: lines.index("Pss:")] if word != record[1]]
    kilobytes = int(lines[lines.index("Pss:") + 1])
    yield Row("processes that a running job costs", 1 + len(children), 2, 1)
    yield Row("memory that a running job costs", kilobytes / 1000, 4, 1, " MB", "PSS")


def calling(ways: Ways, place: Path) -> Iterator[Row]:
    """How often each verb goes to the host, opens a channel, and calls pct."""
    job = ways.user.start_job(TARGET, "--", "sleep", "600")
    ended = ways.user.start_job(TARGET, "--", "true")
    ways.user.succeed("wait", ended)
    tree = small_files(place / "few", 10, 1000)
    verbs = {
        # The first one, while its job still runs: of an end that is known nobody asks again.
        "wait": ("wait", ways.user.start_job(TARGET, "--", "sleep", "4")),
        "run": ("run", "--confirm", "0", TARGET, "--", "sleep", "61"),
        "run -f": ("run", "-f", TARGET, "--", "true"),
        "rerun": ("rerun", "--confirm", "0", ended),
        "status": ("status", job),
        "status TARGET": ("status", TARGET),
        "tail": ("tail", job),
        "tail -f": ("tail", "-f", ended),
        "exec": ("exec", TARGET, "--", "true"),
        "push": ("push", str(tree), f"{TARGET}:/root/bench-few"),
        "pull": ("pull", f"{TARGET}:/root/bench-few", str(place / "back")),
        "kill": ("kill", job),
        "doctor": ("doctor", TARGET),
        # The last one: it takes jobs away.
        "prune": ("prune", "--yes", "--older-than", "0s", TARGET),
    }
    for verb, words in verbs.items():
        traffic = ways.lab.watch()
        ways.user.succeed(*words)
        counts = [len(each) for each in (traffic.connections, traffic.sessions, traffic.pct_calls)]
        what = f"connections, channels, calls of pct by `{verb}`: the most of them"
        must = None if verb in _IN_STEPS else 1
        yield Row(what, max(counts), must, detail=", ".join(map(str, counts)))
    ways.lab.sh(DEBIAN, "rm -rf /root/bench-few")


def pushing(ways: Ways, rounds: int, place: Path) -> Iterator[Row]:
    """A thousand small files, beside tar through ssh: to a new place, and over what is there."""
    tree = small_files(place / "tree", 1000, 20_000)
    piped = 'tar cf - -C "$1" . | ssh -F "$2" pve1 "$3"'

    def tar(there: str) -> Call:
        script = f"mkdir -p {there} && tar xf - -C {there}"
        line = f"/usr/sbin/pct exec {DEBIAN} -- sh -c '{script}'"
        return Call(["sh", "-c", piped, "sh", str(tree), str(ways.lab.ssh_config), line])

    def push(there: str, transport: str) -> Call:
        words = ("push", "--transport", transport, str(tree), f"{TARGET}:{there}")
        return ways.launchpad(ways.user, *words)

    def to_new(call: Callable[[str], Call], there: str) -> float:
        ways.lab.sh(DEBIAN, f"rm -rf {there}")
        return call(there).seconds()

    calls: dict[str, Callable[[str], Call]] = {
        "tar": tar,
        "paramiko": partial(push, transport="paramiko"),
        "openssh": partial(push, transport="openssh"),
    }
    actions: dict[str, Callable[[], float]] = {}
    for name, call in calls.items():
        actions[name] = partial(to_new, call, f"/root/bench-new-{name}")
        actions[f"{name}, again"] = call(f"/root/bench-again-{name}").seconds
    times = in_turn(rounds, actions)
    ways.lab.sh(DEBIAN, "rm -rf /root/bench-new-* /root/bench-again-*")
    for transport in ("paramiko", "openssh"):
        what = f"push of 1000 files, 20 MB, {transport} ÷ tar | ssh … tar"
        yield ratio(what, times, (transport, "tar"), 1.3, 1.1)
        again = (f"{transport}, again", "tar, again")
        yield ratio(f"push over 1000 files that are there, {transport} ÷ tar", times, again)
