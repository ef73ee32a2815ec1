"""The schemas of docs/schema hold for what launchpad really prints."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from launchpad.document import job_document, status_document
from launchpad.errors import ContainerStopped, Layer
from launchpad.job import Identity, JobId, Launcher
from launchpad.replies import spec_of
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
from support import schemas
from support.schemas import check
from support.waiting import wait_until

if TYPE_CHECKING:
    from support.client import Client

TARGET = "pve1:101"

STATES: list[JobState] = [
    Starting(),
    Running(),
    Running(Reason.SUPERVISOR_LOST),
    Exited(0),
    Exited(0, Reason.LAUNCHPAD),
    Killed(9, Reason.OUT_OF_MEMORY),
    Killed(34, Reason.OTHER),
    *(Lost(reason) for reason in Reason),
    Unreachable(Layer.SSH, "no way"),
    Unreachable(Layer.CONTAINER, "it is stopped", "start it", Reason.CONTAINER_STOPPED),
]


def _job(state: JobState) -> Job:
    return Job(
        id=JobId("train-k3f9ab"),
        target="pve1:101",
        host=None,
        node=None,
        ctid=None,
        state=state,
        spec=None,
        log="/log",
    )


def _full(state: JobState) -> Job:
    spec = spec_of(
        {
            "command": ["python3", "\udcff"],
            "shell": None,
            "cwd": "/w",
            "user": "worker",
            "env_names": ["KEY"],
            "log": None,
            "launcher": "tmux",
            "login": True,
            "started_by": "user@laptop",
            "time_limit_s": 3.5,
            "git": {"commit": "0" * 40, "dirty": False},
        }
    )
    gpu = {
        "index": 0,
        "name": "A100",
        "utilization_percent": None,
        "memory_used_bytes": 1,
        "memory_total_bytes": 2,
    }
    known = isinstance(state, Unreachable)
    return replace(
        _job(state),
        host="pve1",
        node="pve2",
        ctid=101,
        spec=spec,
        identity=Identity(4711, 1, 4711, "boot", 2),
        launcher=Launcher.SETSID,
        launcher_reason="no PTY",
        processes=3,
        log_bytes=10,
        last_line="\udcff",
        last_output_at=1.0,
        ready=True,
        started_at=1.0,
        ended_at=2.5,
        elapsed_s=1.5,
        cpu_percent=400.0,
        rss_bytes=10,
        oom_kills=1,
        gpus=[gpu],
        last_known={"state": "running", "at": 5.0} if known else None,
        notes=("it moved",),
    )


@pytest.mark.parametrize("name", sorted(schemas.load()))
def test_the_schemas_are_schemas(name: str) -> None:
    document = schemas.load()[name]
    Draft202012Validator.check_schema(document)
    assert document["$id"] == name
    for field, schema in document.get("properties", {}).items():
        assert field == "schema" or "description" in schema or "$ref" in schema, field


@pytest.mark.parametrize("state", STATES, ids=str)
def test_every_state(state: JobState) -> None:
    for job in (_job(state), _full(state)):
        document = json.loads(json.dumps(job_document(job)))
        check("job", document)
        check("status", json.loads(json.dumps(status_document([job], []))))


@pytest.mark.parametrize(
    "change",
    [
        {"unheard_of": 1},
        {"id": "train"},
        {"exit_code": None},
        {"signal": "SIGTERM"},
        {"started_at": "yesterday"},
        {"git": {"commit": "1"}},
        {"layer": "ssh"},
        {"state": "dead"},
    ],
    ids=str,
)
def test_the_check_can_fail(change: dict[str, Any]) -> None:
    document = json.loads(json.dumps(job_document(_full(Exited(0)))))
    check("job", document)
    with pytest.raises(AssertionError):
        check("job", {**document, **change})
    with pytest.raises(AssertionError):
        check("run", document)
    document.pop("node")
    with pytest.raises(AssertionError):
        check("job", document)


def test_errors_of_targets() -> None:
    error = ContainerStopped("stopped", details="d", advice="a")
    check("status", json.loads(json.dumps(status_document([], [("pve1:103", error)]))))


def test_a_start_and_its_end(launchpad: Client) -> None:
    words = ["run", "--json", "-e", "KEY=1", "--ready", "up", TARGET, "--"]
    started = launchpad.succeed(*words, "sh", "-c", "echo up; printf '\\377'; sleep 60").json()
    check("run", started)
    assert (started["state"], started["ready"]) == ("running", True)
    check("status", launchpad.succeed("status", "--json", started["id"]).json())
    launchpad.succeed("kill", started["id"])
    ended = launchpad.succeed("status", "--json").json()
    check("status", ended)
    assert [job["signal"] for job in ended["jobs"]] == ["SIGTERM"]


def test_a_crash_and_a_key(launchpad: Client) -> None:
    key = f"schema-{launchpad.home}"
    words = ["run", "--json", "--idempotency-key", key, TARGET, "--", "sh", "-c", "exit 3"]
    crashed = launchpad.run(*words)
    assert crashed.code == 3, str(crashed)
    check("run", crashed.json())
    again = launchpad.run(*words)
    check("run", again.json())
    assert again.json()["created"] is False
    refused = launchpad.run(*words[:-1], "exit 4")
    check("failure", refused.json())


def test_a_shell_line_with_a_time_limit(launchpad: Client) -> None:
    words = ["run", "--json", "--wait", "--time-limit", "1", "pve1:102", "-c", "sleep 60"]
    ended = launchpad.run(*words)
    check("run", ended.json())
    assert ended.json()["reason"] == "time_limit"


def test_everybodys_jobs(launchpad: Client) -> None:
    job = launchpad.start_job(TARGET, "--", "sleep", "60")
    document = launchpad.succeed("status", "--json", TARGET).json()
    check("status", document)
    assert job in {each["id"] for each in document["jobs"]}
    launchpad.succeed("kill", "-s", "KILL", job)


def test_once_more(launchpad: Client) -> None:
    job = launchpad.start_job(TARGET, "-e", "KEY=1", "--", "true")
    launchpad.expect_end(job, code=0)
    again = launchpad.run("rerun", "--json", "--wait", "-e", "KEY=2", job)
    check("run", again.json())
    assert again.json()["env_names"] == ["KEY"]
    check("failure", launchpad.run("rerun", "--json", job).json())
    check("dry-run", launchpad.succeed("rerun", "--json", "--dry-run", "-e", "KEY=2", job).json())


def test_what_cannot_be_asked(launchpad: Client) -> None:
    job = launchpad.start_job(TARGET, "--", "sleep", "60")
    nowhere = launchpad.home / "ssh_config"
    nowhere.write_text("Host pve1\n  HostName 127.0.0.1\n  Port 1\n")
    outcome = launchpad.run("status", "--json", "-F", str(nowhere), job)
    document = outcome.json()
    check("status", document)
    assert outcome.code == 125, str(outcome)
    assert [each["state"] for each in document["jobs"]] == ["unreachable"]
    assert document["jobs"][0]["last_known"]["state"] == "running"
    assert [each["layer"] for each in document["errors"]] == ["ssh"]


@pytest.mark.parametrize(
    ("words", "layer", "code"),
    [
        (["run", "--json", TARGET], "client", 125),
        (["run", "--json", TARGET, "--", "/no/such/program"], "job", 127),
        (["run", "--json", "-C", "/no/such/place", TARGET, "--", "true"], "job", 125),
        (["run", "--json", "pve1:103", "--", "true"], "container", 125),
        (["run", "--json", "pve1:999", "--", "true"], "container", 125),
        (["run", "--json", "127.0.0.1:101", "--", "true"], "ssh", 125),
        (["run", "--json", "guest@pve1:101", "--", "true"], "sudo", 125),
        (["run", "--json", "--no-such-option"], "client", 125),
        (["status", "--json", "no-such-job"], "job", 125),
        (["status", "--json", "--no-such-option"], "client", 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_failures(launchpad: Client, words: list[str], layer: str, code: int) -> None:
    outcome = launchpad.run(*words)
    document = outcome.json()
    check("failure", document)
    assert outcome.code == code, str(outcome)
    assert document["started"] == "no"
    assert (document["error"]["layer"], document["error"]["exit_code"]) == (layer, code)


def test_a_dry_run(launchpad: Client) -> None:
    words = ["run", "--json", "--dry-run", "-e", "KEY=s3cr3t", TARGET, "--", "echo", "a b"]
    document = launchpad.succeed(*words).json()
    check("dry-run", document)
    assert document["needs"] == ["KEY"]


@pytest.mark.parametrize(
    ("target", "ok"), [(TARGET, True), ("pve1:102", True), ("pve1:103", False), ("nowhere:1", None)]
)
def test_an_examination(launchpad: Client, target: str, ok: bool | None) -> None:
    outcome = launchpad.run("doctor", "--json", target)
    document = outcome.json()
    if ok is None:
        check("failure", document)
        return
    check("doctor", document)
    assert document["ok"] is ok
    assert outcome.code == (0 if ok else 125), str(outcome)
    assert ("fault" in {each["verdict"] for each in document["checks"]}) is not ok


def test_nothing_is_asked_twice_of_a_known_end(launchpad: Client) -> None:
    job = launchpad.start_job(TARGET, "--", "true")
    wait_until(lambda: launchpad.status(job)["state"] == "exited")
    check("job", launchpad.status(job))
