"""Commands as people type them, through real ssh, LXC and shells, over both transports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.lab import BUSYBOX, DEBIAN

if TYPE_CHECKING:
    from support.client import Client

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "commands.json").read_bytes())
CALLS = [
    pytest.param(case, ctid, transport, id=f"{case['id']}-{ctid}-{transport}")
    for case in CASES
    for ctid in ([DEBIAN, BUSYBOX] if case["containers"] == "both" else [DEBIAN])
    for transport in ("paramiko", "openssh")
]


@pytest.mark.parametrize(("case", "ctid", "transport"), CALLS)
def test_log_and_exit_code_are_exactly_the_command_s_own(
    launchpad: Client, case: dict[str, Any], ctid: int, transport: str
) -> None:
    to = ("--transport", transport)
    words = [*to, f"pve1:{ctid}", "--", *case["argv"]]
    job = launchpad.start_job(*words, code=case["exit_code"], confirm="2s")
    launchpad.expect_end(job, *to, code=case["exit_code"])
    assert launchpad.log(job, *to) == case["log"].encode()


def test_the_cases_are_all_there() -> None:
    assert len(CASES) >= 20
    assert {case["containers"] for case in CASES} == {"both", "deb"}
