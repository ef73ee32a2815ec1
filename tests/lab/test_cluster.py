"""A container is found on whichever node of the cluster it lives, and found again when it moves."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from support.lab import DEBIAN, ON_PVE2, Lab

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.client import Client, Outcome

TRANSPORTS = pytest.mark.parametrize("transport", ["paramiko", "openssh"])


@pytest.fixture
def only_pve1(lab: Lab, tmp_path: Path, make_client: Callable[..., Client]) -> Client:
    """A user whose ssh knows pve1 and nothing else: neither the name nor the key of pve2."""
    (entry,) = re.findall(r"(?ms)^Host pve1$.*?(?=^Host |\Z)", lab.ssh_config.read_text())
    known = tmp_path / "known_hosts"
    lines = (lab.settings.ssh / "known_hosts").read_text().splitlines(keepends=True)
    known.write_text("".join(line for line in lines if line.startswith("pve1,")))
    config = tmp_path / "config"
    config.write_text(re.sub(r"UserKnownHostsFile .*", f"UserKnownHostsFile {known}", entry))
    return make_client("only-pve1", LAUNCHPAD_SSH_CONFIG=str(config))


def started(outcome: Outcome) -> str:
    assert outcome.code == 0, str(outcome)
    return outcome.out.strip()


@contextmanager
def cluster_file(lab: Lab, path: str, text: str) -> Iterator[None]:
    """Another content for a file of /etc/pve."""
    file = lab.settings.pve / path
    before = file.read_text()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(before)


@contextmanager
def moved(lab: Lab, ctid: int, node: str) -> Iterator[None]:
    """A container lives on another node meanwhile."""
    before = lab.node_of(ctid)
    lab.command("migrate", str(ctid), node)
    try:
        yield
    finally:
        lab.command("migrate", str(ctid), before)


@TRANSPORTS
@pytest.mark.parametrize("target", ["pve1:105", "pve1:worker"])
def test_a_job_starts_where_its_container_lives(
    lab: Lab, launchpad: Client, transport: str, target: str
) -> None:
    outcome = launchpad("run", "-v", "--transport", transport, target, "--", "sleep", "300")
    job = started(outcome)
    assert "going to pve2 directly" in outcome.err
    status = launchpad.status(job)
    assert (status["state"], status["host"], status["node"]) == ("running", "pve1", "pve2")
    assert status["target"] == target
    assert lab.alive(ON_PVE2, status["pid"])
    launchpad.succeed("kill", job)
    assert not lab.alive(ON_PVE2, status["pid"])


@TRANSPORTS
@pytest.mark.parametrize("target", ["pve1:105", "pve1:worker"])
def test_the_named_node_is_the_jump_host_to_one_that_ssh_does_not_know(
    lab: Lab, only_pve1: Client, transport: str, target: str
) -> None:
    outcome = only_pve1("run", "-v", "--transport", transport, target, "--", "sleep", "300")
    job = started(outcome)
    assert "through pve1" in outcome.err
    status = only_pve1.status(job)
    assert (status["state"], status["node"]) == ("running", "pve2")
    assert only_pve1.log(job) == b""
    only_pve1.succeed("kill", job)
    assert not lab.alive(ON_PVE2, status["pid"])
    only_pve1.expect_end(job, code=143)


@pytest.mark.exclusive
@TRANSPORTS
def test_what_is_where_it_was_last_seen_costs_no_trip(
    lab: Lab, only_pve1: Client, transport: str
) -> None:
    job = started(only_pve1("run", "--transport", transport, "pve1:105", "--", "sleep", "300"))
    for words in (["status", job], ["tail", job], ["run", "pve1:105", "--", "sleep", "300"]):
        pve1, pve2 = lab.watch("pve1"), lab.watch("pve2")
        only_pve1.succeed(*words, "--transport", transport) if words[0] != "run" else started(
            only_pve1("run", "--transport", transport, *words[1:])
        )
        assert (len(pve1.connections), len(pve1.sessions), len(pve1.pct_calls)) == (1, 0, 0)
        assert (len(pve2.connections), len(pve2.sessions), len(pve2.pct_calls)) == (1, 1, 1)


@pytest.mark.exclusive
def test_a_container_that_moved_is_found_again(lab: Lab, only_pve1: Client) -> None:
    script = "echo here; sleep 300"
    job = started(only_pve1("run", "pve1:101", "--", "sh", "-c", script))
    with moved(lab, DEBIAN, "pve2"):
        outcome = only_pve1("status", "--json", job)
        (status,) = outcome.json()["jobs"]
        # A migration stops a container: the job has ended, and that is what is said.
        assert (status["state"], status["reason"]) == ("lost", "container_restarted")
        assert status["node"] == "pve2"
        shown = only_pve1("run", "-n", "second", "pve1:101", "--", "sh", "-c", script)
        second = started(shown)
        assert only_pve1.log(job) == b"here\n"
        assert only_pve1.log(second) == b"here\n"
        pve1 = lab.watch("pve1")
        assert only_pve1.status(second)["state"] == "running"
        assert pve1.pct_calls == []
        only_pve1.succeed("kill", second)
        only_pve1.expect_end(second, code=143)
        third = started(only_pve1("run", "pve1:101", "--", "sh", "-c", script))
    # And back again.
    outcome = only_pve1("status", third)
    assert "moved from pve2 to pve1" in outcome.err + outcome.out, str(outcome)
    assert only_pve1.status(third)["node"] == "pve1"
    pve2 = lab.watch("pve2")
    assert only_pve1.log(third) == b"here\n"
    assert pve2.connections == []


@pytest.mark.exclusive
@TRANSPORTS
def test_a_follow_goes_with_its_container(lab: Lab, only_pve1: Client, transport: str) -> None:
    job = started(only_pve1("run", "pve1:101", "--", "sh", "-c", "echo one; sleep 300"))
    follow = only_pve1.start("tail", "-f", "-n", "all", "--transport", transport, job)
    assert follow.stdout is not None
    assert follow.stdout.readline() == b"one\n"
    with moved(lab, DEBIAN, "pve2"):
        out, err = follow.communicate(timeout=60)
        assert (follow.returncode, out) == (125, b""), err
        assert b"container restarted" in err
        only_pve1.expect_end(job, code=125)


def test_who_is_not_root_finds_it_too(lab: Lab, only_pve1: Client) -> None:
    # Without root nobody tells the key of pve2: it must be known.
    outcome = only_pve1("run", "ops@pve1:105", "--", "true")
    assert outcome.code == 125
    assert "lives on pve2" in outcome.err
    assert "host key of pve2 is not known" in outcome.err
    assert outcome.out == ""


def test_who_is_not_root_and_knows_the_key_gets_there(lab: Lab, launchpad: Client) -> None:
    job = started(launchpad("run", "ops@pve1:105", "--", "sleep", "300"))
    assert launchpad.status(job)["node"] == "pve2"


@pytest.mark.exclusive
@TRANSPORTS
def test_another_host_key_than_the_cluster_s_is_refused(
    lab: Lab, only_pve1: Client, transport: str
) -> None:
    wrong = (lab.settings.ssh / "host-pve1/ssh_host_rsa_key.pub").read_text()
    line = f"pve2 {' '.join(wrong.split()[:2])}\n"
    address = lab.settings.node("pve2").address
    with (
        cluster_file(lab, "nodes/pve2/ssh_known_hosts", line),
        cluster_file(lab, "priv/known_hosts", line + line.replace("pve2", address)),
    ):
        outcome = only_pve1("run", "--json", "--transport", transport, "pve1:105", "--", "true")
    assert outcome.code == 125
    document = outcome.json()
    assert document["started"] == "no"
    assert "lives on pve2" in document["error"]["what"]
    assert "host key" in document["error"]["what"]
    # Once the cluster tells the right one, all is well.
    started(only_pve1("run", "--transport", transport, "pve1:105", "--", "true"))


@pytest.mark.exclusive
@TRANSPORTS
def test_a_key_that_nobody_vouches_for_is_not_taken(
    lab: Lab, only_pve1: Client, transport: str
) -> None:
    with (
        cluster_file(lab, "nodes/pve2/ssh_known_hosts", ""),
        cluster_file(lab, "priv/known_hosts", ""),
    ):
        outcome = only_pve1("run", "--transport", transport, "pve1:105", "--", "true")
    assert outcome.code == 125
    assert "host key of pve2 is not known" in outcome.err
    assert "pvecm updatecerts" in outcome.err


@pytest.mark.exclusive
@TRANSPORTS
def test_a_node_that_cannot_be_reached_is_named(
    lab: Lab, only_pve1: Client, transport: str
) -> None:
    job = started(only_pve1("run", "--transport", transport, "pve1:105", "--", "sleep", "300"))
    with lab.cut("between"):
        outcome = only_pve1("run", "--transport", transport, "pve1:105", "--", "true")
        assert outcome.code == 125
        assert "lives on pve2, and there is no way in" in outcome.err
        assert outcome.seconds < 45
        # The container on the named node is none the worse.
        started(only_pve1("run", "--transport", transport, "pve1:101", "--", "true"))
    assert only_pve1.status(job)["state"] == "running"


@pytest.mark.exclusive
def test_two_containers_of_one_name_are_told_apart(lab: Lab, launchpad: Client) -> None:
    config = (lab.settings.pve / "nodes/pve2/lxc/105.conf").read_text()
    twin = config.replace("hostname: worker", "hostname: trainer")
    assert twin != config
    with cluster_file(lab, "nodes/pve2/lxc/105.conf", twin):
        outcome = launchpad("run", "pve1:trainer", "--", "true")
    assert outcome.code == 125
    assert "101 on pve1, 105 on pve2" in outcome.err
    assert outcome.out == ""


def test_a_virtual_machine_is_not_a_container(launchpad: Client) -> None:
    for words in (["run"], ["run", "--json"]):
        outcome = launchpad(*words, "pve1:200", "--", "true")
        assert outcome.code == 125
        assert "200 on pve1 is a virtual machine" in outcome.err


def test_status_of_a_target_finds_the_jobs_of_a_container_elsewhere(
    launchpad: Client, make_client: Callable[..., Client]
) -> None:
    job = started(launchpad("run", "pve1:105", "--", "sleep", "300"))
    other = make_client("other")
    ids = [each["id"] for each in other("status", "--json", "pve1:105").json()["jobs"]]
    assert job in ids
    assert other("tail", job).code == 0


@pytest.mark.exclusive
def test_a_job_stays_with_its_container_when_the_name_goes_to_another(
    lab: Lab, only_pve1: Client
) -> None:
    job = started(only_pve1("run", "pve1:worker", "--", "sleep", "300"))
    config = (lab.settings.pve / "nodes/pve2/lxc/105.conf").read_text()
    with cluster_file(lab, "nodes/pve2/lxc/105.conf", config.replace("worker", "renamed")):
        pve1, pve2 = lab.watch("pve1"), lab.watch("pve2")
        assert only_pve1.status(job)["state"] == "running"
        assert (len(pve1.sessions), len(pve2.sessions)) == (0, 1)
        only_pve1.succeed("kill", job)
        only_pve1.expect_end(job, code=143)
        assert only_pve1("run", "pve1:worker", "--", "true").code == 125
