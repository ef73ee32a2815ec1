"""What a job's record tells of what was asked for, whoever wrote it."""

from __future__ import annotations

import json

import pytest

from launchpad.job import Launcher
from launchpad.replies import parse_spec
from launchpad.state import Spec

RECORD = {
    "command": ["python3", "train.py"],
    "shell": "echo $HOME",
    "cwd": "/srv",
    "user": "worker",
    "env_names": ["TOKEN", "LR"],
    "log": "/var/log/train",
    "launcher": "tmux",
    "login": False,
    "started_by": "me@laptop",
    "time_limit_s": 90.5,
    "on_exit": "rm -f lock",
    "ready": "epoch 1",
    "git": {"commit": "c0ffee", "dirty": True},
    "idempotency_key": "once",
}


def test_a_whole_spec() -> None:
    assert parse_spec(json.dumps(RECORD)) == Spec(  # noqa: S604 # that is not subprocess
        command=("python3", "train.py"),
        shell="echo $HOME",
        cwd="/srv",
        user="worker",
        env_names=("TOKEN", "LR"),
        log="/var/log/train",
        launcher=Launcher.TMUX,
        login=False,
        started_by="me@laptop",
        time_limit_s=90.5,
        on_exit="rm -f lock",
        ready="epoch 1",
        git={"commit": "c0ffee", "dirty": True},
        idempotency_key="once",
        record=RECORD,
    )


def test_a_spec_that_tells_nothing() -> None:
    assert parse_spec("{}") == Spec(
        command=None,
        shell=None,
        cwd=None,
        user=None,
        env_names=(),
        log=None,
        launcher=Launcher.SETSID,
        login=True,
        started_by="",
    )


@pytest.mark.parametrize("value", [True, 7, None, ["x", 7], {"x": "y"}])
@pytest.mark.parametrize("key", RECORD)
def test_a_value_that_is_of_another_kind_is_not_told(key: str, value: object) -> None:
    nothing, rest = parse_spec("{}"), parse_spec(json.dumps(RECORD | {key: value}))
    assert nothing is not None
    assert rest is not None
    if (key, value) == ("time_limit_s", 7) or (key == "git" and isinstance(value, dict)):
        assert getattr(rest, key) == value
    else:
        assert getattr(rest, key) == getattr(nothing, key)
    others = set(RECORD) - {key}
    whole = parse_spec(json.dumps(RECORD))
    assert all(getattr(rest, other) == getattr(whole, other) for other in others)
