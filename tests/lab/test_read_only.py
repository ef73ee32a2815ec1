"""A state directory that can no longer be written when a job ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.lab import BUSYBOX, DEBIAN, SLEEPER

if TYPE_CHECKING:
    from support.client import Client
    from support.lab import Lab

STATE = "/var/lib/launchpad"


@pytest.mark.exclusive
@pytest.mark.parametrize("ctid", [DEBIAN, BUSYBOX, SLEEPER])
def test_an_end_survives_a_disk_that_became_read_only(
    lab: Lab, launchpad: Client, ctid: int
) -> None:
    # As they are after their start: only systemd mounts anything at /dev/shm.
    lab.sh(ctid, 'grep -q " /dev/shm " /proc/mounts || rm -rf /dev/shm')
    waits = "until [ -e /var/tmp/read-only ]; do sleep 0.1; done; exit 5"
    job = launchpad.start_job(f"pve1:{ctid}", "-c", waits)
    lab.sh(ctid, f"mount -o bind {STATE} {STATE} && mount -o remount,bind,ro {STATE}")
    try:
        lab.sh(ctid, ": >/var/tmp/read-only")
        launchpad.expect_end(job, code=5)
    finally:
        lab.sh(ctid, f"umount -l {STATE}; rm -f /var/tmp/read-only")
    status = launchpad.status(job)
    assert (status["state"], status["exit_code"]) == ("exited", 5)
    lab.sh(ctid, "rm -f /dev/shm/launchpad-0/$1,*", job)


@pytest.mark.exclusive
def test_a_prune_of_a_read_only_disk_removes_nothing_and_says_why(
    lab: Lab, launchpad: Client
) -> None:
    job = launchpad.start_job("pve1:101", "--", "true")
    launchpad.expect_end(job, code=0)
    lab.sh(DEBIAN, f"mount -o bind {STATE} {STATE} && mount -o remount,bind,ro {STATE}")
    try:
        pruned = launchpad.run("prune", "--yes", "--older-than", "0s", "pve1:101")
    finally:
        lab.sh(DEBIAN, f"umount -l {STATE}")
    assert pruned.code == 125, pruned
    assert "[container]" in pruned.err
    assert "help: is the disk read-only? nothing was removed" in pruned.err
    assert launchpad.status(job)["exit_code"] == 0
