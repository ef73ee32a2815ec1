"""One of the clients of a load test: a process of its own, with a home of its own.

Arguments: TARGET NAME COUNT WIDTH. A JSON line for each job: id, name, exit code.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import launchpad

WITNESS = "/var/tmp/faults-load"
CODES = 120


def main(target: str, name: str, count: str, width: str) -> None:
    with launchpad.Client() as client:

        def start(number: int) -> launchpad.Job:
            token = f"{name}-{number}"
            line = f"echo {token} >>{WITNESS}; echo {token}; exit {number % CODES}"
            return client.run(target, shell=line, name=token, confirm=0)

        with ThreadPoolExecutor(int(width)) as threads:
            jobs = list(threads.map(start, range(int(count))))
        for job, code in zip(jobs, client.wait(jobs, 300), strict=True):
            print(json.dumps({"id": job.id, "token": job.name, "code": code}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
