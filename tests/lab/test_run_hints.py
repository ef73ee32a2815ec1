"""What run says when a word was meant for this machine, or for a shell that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.client import Client


def test_a_path_of_this_machines_home_gets_the_hint_to_quote_the_tilde(launchpad: Client) -> None:
    there = f"{launchpad.home}/my proj"
    outcome = launchpad("run", "-C", there, "pve1:101", "--", "true")
    assert outcome.code == 125, str(outcome)
    assert "cannot be entered in pve1:101" in outcome.err
    assert "the home of THIS machine" in outcome.err
    assert "help: quote it: -C '~/my proj'" in outcome.err
    assert outcome.out == ""
    other = launchpad("run", "-C", "/nosuch", "pve1:101", "--", "true")
    assert "THIS machine" not in other.err


def test_a_quoted_tilde_is_the_home_of_the_containers_user(launchpad: Client) -> None:
    for user, home in (("root", "/root"), ("worker", "/home/worker")):
        outcome = launchpad.succeed("run", "-u", user, "-C", "~/", "pve1:101", "--", "pwd")
        assert f"| {home}\n" in outcome.err


@pytest.mark.parametrize("ctid", [101, 102])
def test_conda_that_is_not_found_names_conda_run(launchpad: Client, ctid: int) -> None:
    outcome = launchpad("run", f"pve1:{ctid}", "--", "conda", "activate", "x")
    assert outcome.code == 127, str(outcome)
    assert "conda run --no-capture-output -n x" in outcome.err
    document = launchpad("run", "--json", f"pve1:{ctid}", "--", "conda", "activate", "x").json()
    assert (document["started"], document["error"]["exit_code"]) == ("no", 127)


def test_a_loop_over_targets_is_not_eaten(launchpad: Client) -> None:
    """stdin belongs to the caller: `while read target` must make a job for each line."""
    for _ in range(2):
        outcome = launchpad("run", "--confirm", "0", "pve1:102", "--", "cat", stdin=b"x\n" * 9)
        assert outcome.code == 0, str(outcome)
        launchpad.expect_end(outcome.out.strip(), code=0)
        assert launchpad.log(outcome.out.strip()) == b""
