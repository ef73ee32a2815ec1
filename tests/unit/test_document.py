"""Jobs as JSON documents: the promise to programs, and the index's memory of ends."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from launchpad.document import job_document, job_from_document, status_document, timestamp
from launchpad.errors import ContainerStopped, Layer
from launchpad.job import Identity, JobId, Launcher
from launchpad.replies import parse_spec
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

# Names and order as they are promised; more may come behind.
FIELDS = (
    "schema id name target host node ctid state reason exit_code signal created started started_by"
    " pid processes launcher launcher_reason command shell cwd user env_names log log_bytes"
    " last_line last_output_at ready time_limit_s started_at ended_at elapsed_s cpu_percent"
    " rss_bytes oom_kills gpus git last_known"
).split()

SPEC = parse_spec(
    json.dumps(
        {
            "command": ["python3", "train.py", "\udcff"],
            "shell": None,
            "cwd": "/workspace",
            "user": "root",
            "env_names": ["WANDB_API_KEY"],
            "launcher": "setsid",
            "started_by": "user@laptop",
            "time_limit_s": 60,
            "git": {"commit": "abc", "dirty": False},
        }
    )
)


def job(state: JobState, **changes: object) -> Job:
    made = Job(
        id=JobId("train-k3f9ab".replace("9", "7")),
        target="pve1:101",
        host="pve1",
        node="pve1",
        ctid=101,
        state=state,
        spec=SPEC,
        log="/var/lib/launchpad/jobs/train-k3f7ab/log",
        identity=Identity(4711, 1, 4711, "b", 1),
        processes=9,
        log_bytes=123,
        last_line="step \udcff",
        last_output_at=1_769_860_800,
        started_at=1_769_860_800,
        elapsed_s=12.3,
        cpu_percent=412.0,
        rss_bytes=123_456,
        notes=("a note",),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_the_promised_fields() -> None:
    document = job_document(job(Running()))
    assert list(document)[: len(FIELDS)] == FIELDS
    assert document["state"] == "running"
    assert document["started_at"] == "2026-01-31T12:00:00Z"
    assert document["pid"] == 4711
    assert document["started_by"] == "user@laptop"
    assert document["command"] == ["python3", "train.py", "\udcff"]
    assert document["time_limit_s"] == 60


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (Starting(), ("starting", None, None, None)),
        (Exited(3), ("exited", None, 3, None)),
        (Killed(9, Reason.OUT_OF_MEMORY), ("killed", "out_of_memory", None, "SIGKILL")),
        (Killed(35, Reason.OTHER), ("killed", "other", None, "SIG35")),
        (Lost(Reason.CONTAINER_RESTARTED), ("lost", "container_restarted", None, None)),
    ],
)
def test_states(state: JobState, expected: tuple[object, ...]) -> None:
    document = job_document(job(state))
    assert tuple(document[key] for key in ("state", "reason", "exit_code", "signal")) == expected


def test_unreachable_names_the_layer_and_what_was_known() -> None:
    state = Unreachable(Layer.CONTAINER, "it is stopped", "pct start", Reason.CONTAINER_STOPPED)
    document = job_document(job(state, last_known={"state": "running", "at": 1_769_860_800}))
    assert document["layer"] == "container"
    assert document["what"] == "it is stopped"
    assert document["last_known"] == {"state": "running", "at": "2026-01-31T12:00:00Z"}


def test_bytes_that_are_not_utf_8_survive_json() -> None:
    text = json.dumps(job_document(job(Running())))
    assert text.isascii()
    assert "\\udcff" in text
    assert json.loads(text)["last_line"] == "step \udcff"


def test_a_failure_stands_beside_the_jobs() -> None:
    error = ContainerStopped("it is stopped", details="d", advice="pct start 101")
    document = status_document([job(Running())], [("pve1:102", error)])
    assert document["schema"] == 1
    assert [each["id"] for each in document["jobs"]] == ["train-k3f7ab"]
    assert document["errors"] == [
        {
            "target": "pve1:102",
            "layer": "container",
            "what": "it is stopped",
            "details": "d",
            "advice": "pct start 101",
            "exit_code": 125,
        }
    ]


REASONS = st.sampled_from(Reason)
ENDED = st.one_of(
    st.builds(Exited, st.integers(0, 255), st.none() | REASONS),
    st.builds(Killed, st.integers(1, 64), REASONS),
    st.builds(Lost, REASONS),
)
TIMES = st.none() | st.integers(0, 4_000_000_000)


@given(ENDED, TIMES, st.none() | st.text(), st.none() | st.integers(0, 2**63))
def test_an_end_comes_back_from_the_index_as_it_was(
    state: JobState, ended_at: int | None, last: str | None, size: int | None
) -> None:
    before = job(
        state,
        ended_at=ended_at,
        last_line=last,
        log_bytes=size,
        processes=0,
        launcher=Launcher.SETSID,
        identity=None,
    )
    after = job_from_document(json.loads(json.dumps(job_document(before))), SPEC)
    assert after == before


@given(
    st.dictionaries(
        st.sampled_from([*FIELDS, "layer", "notes"]),
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()),
    )
)
def test_no_document_whatever_raises(document: dict[str, object]) -> None:
    job_from_document({"id": "train-aaaaaa", "state": "exited", "exit_code": 0, **document})


@pytest.mark.parametrize("seconds", [None, 1e300, -1e300, 1e15])
def test_a_time_that_is_no_date_is_null(seconds: float | None) -> None:
    assert timestamp(seconds) is None
