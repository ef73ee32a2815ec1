"""What a kill says it did."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from launchpad.frames import Frame
from launchpad.job import JobId
from launchpad.kill_reply import Ended, Survivor, kill_sentence, parse_ended
from launchpad.state import Exited, Job, JobState, Killed, Lost, Reason, Running

ID = JobId("train-k3f7ab")


def job(state: JobState) -> Job:
    return Job(ID, "pve1:101", "pve1", "pve1", 101, state, None, "/log")


def ended(text: str) -> Ended:
    return parse_ended([Frame("ended", (ID.text,), text.encode())])[ID]


BY_US = Killed(15, Reason.LAUNCHPAD)

SENTENCES = [
    (
        "main 15 310\nrest 0 8 0\ntook 330\n",
        Exited(0, Reason.LAUNCHPAD),
        "killed train-k3f7ab: 9 processes ended (1 on TERM after saving for 3.1 s, 8 after it)"
        " in 3.3 s; exit code 0 kept",
    ),
    (
        "main 15 3\nrest 0 0 0\ntook 5\n",
        BY_US,
        "killed train-k3f7ab: 1 process ended (1 on TERM) in 0.1 s",
    ),
    (
        "main 15 3\nrest 1 2 4\ntook 1003\n",
        BY_US,
        "killed train-k3f7ab: 8 processes ended (1 on TERM, 3 after it, 4 on KILL) in 10.0 s",
    ),
    (
        "main 9 1000\nrest 0 2 4\ntook 1010\n",
        Killed(9, Reason.LAUNCHPAD),
        "killed train-k3f7ab: 7 processes ended (2 on TERM, 5 on KILL) in 10.1 s",
    ),
    (
        "rest 0 7 0\ntook 20\n",
        Killed(9, Reason.OTHER),
        "killed train-k3f7ab: 7 processes ended (7 on TERM) in 0.2 s",
    ),
    (
        "rest 0 0 0\ntook 3\n",
        Exited(3),
        "train-k3f7ab has ended already (exited with code 3); nothing of it is left",
    ),
    (
        "once 10 4711\nrest 0 0 0\ntook 3\n",
        Running(),
        "sent SIGUSR1 to train-k3f7ab, PID 4711; it runs on",
    ),
    (
        "rest 0 0 0\ntook 1\n",
        Lost(Reason.NEVER_STARTED),
        "train-k3f7ab was never started on pve1:101: there is nothing to end",
    ),
    (
        "main 15 3\nrest 0 7 0\ntook 1503\nleft 4720 D python3 -m x\n",
        BY_US,
        "train-k3f7ab: 1 of 9 processes is left: PID 4720 python3 -m x, state D"
        " (in the kernel: driver or dead mount). Repeat later, or restart container 101.",
    ),
]


@pytest.mark.parametrize(("payload", "state", "sentence"), SENTENCES)
def test_sentences(payload: str, state: JobState, sentence: str) -> None:
    assert kill_sentence(ended(payload), job(state)) == sentence


def test_a_process_name_cannot_reach_the_terminal() -> None:
    left = Ended(left=(Survivor(7, "D", "\x1b[2Jx"),))
    assert "\x1b" not in kill_sentence(left, job(Running()))


def test_many_survivors_are_counted_not_listed() -> None:
    left = Ended(left=tuple(Survivor(pid, "D", "x") for pid in range(100, 120)))
    said = kill_sentence(left, job(Running()))
    assert "20 of 20 processes are left" in said
    assert "and 12 more" in said


@given(st.binary(max_size=200))
def test_no_payload_raises(payload: bytes) -> None:
    kill_sentence(Ended.parse(payload), job(Running()))
