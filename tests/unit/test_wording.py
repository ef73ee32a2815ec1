"""How states and times are said."""

from __future__ import annotations

import pytest

from launchpad.errors import Layer
from launchpad.job import JobId
from launchpad.state import (
    Exited,
    Job,
    JobState,
    Killed,
    Lost,
    Reason,
    Running,
    Starting,
    Unreachable,
)
from launchpad.wording import duration_words, end_sentence, reason_words, signal_name, state_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0.0 s"),
        (0.64, "0.6 s"),
        (41.2, "41.2 s"),
        (372, "6 m 12 s"),
        (18605, "5 h 10 m"),
        (266400, "3 d 2 h"),
    ],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration_words(seconds) == words


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (Starting(), "is starting"),
        (Running(), "is running"),
        (Running(Reason.SUPERVISOR_LOST), "is running, its supervisor is gone"),
        (Exited(1), "exited with code 1"),
        (Exited(0, Reason.LAUNCHPAD), "exited with code 0, by launchpad"),
        (Killed(9, Reason.OUT_OF_MEMORY), "was killed by SIGKILL, out of memory"),
        (Lost(Reason.CONTAINER_RESTARTED), "is lost, container restarted"),
        (Unreachable(Layer.SSH, "no\x1broute"), "is unreachable (ssh: no\\x1broute)"),
    ],
)
def test_states(state: JobState, words: str) -> None:
    assert state_words(state) == words


def test_every_reason_has_words() -> None:
    assert all(reason_words(reason) for reason in Reason)


def test_signals() -> None:
    assert [signal_name(number) for number in (9, 15, 35)] == ["SIGKILL", "SIGTERM", "signal 35"]


def test_the_time_stands_with_the_end_and_the_reason_last() -> None:
    state = Killed(9, Reason.OUT_OF_MEMORY)
    job = Job(JobId("train-k3f9ab"), "gpu", None, None, None, state, None, "/log", elapsed_s=41.2)
    assert end_sentence(job) == "train-k3f9ab was killed by SIGKILL after 41.2 s, out of memory"
