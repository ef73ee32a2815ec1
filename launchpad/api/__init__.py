"""launchpad from Python: start jobs in Proxmox containers, and know what became of them.

    import launchpad

    job = launchpad.run("pve1:101", ["python3", "train.py"], cwd="/workspace")
    print(job.tail())
    if job.wait() != 0:
        print(job.status().reason)

Everything blocks, prints nothing and asks nothing; what a person would have been told goes to the
logger ``launchpad``. All of it may be called from any thread: a connection to a host is kept, and
serves many calls at once. Whatever fails raises a :class:`~launchpad.errors.LaunchpadError`, which
names the layer that failed and what to do. Jobs run on whatever happens to this process.
"""

from launchpad.api.client import Client, Copied
from launchpad.api.job import Job
from launchpad.api.snapshot import Status

__all__ = [
    "Client",
    "Copied",
    "Job",
    "Status",
    "close",
    "default",
    "find",
    "pull",
    "push",
    "rerun",
    "run",
    "status",
    "wait",
]

default = Client()
run = default.run
rerun = default.rerun
find = default.find
status = default.status
wait = default.wait
push = default.push
pull = default.pull
close = default.close
