"""One of the clients of a load test: a process of its own, with a home of its own.

Arguments: TARGET NAME COUNT WIDTH. A JSON line for each job: id, exit code, log.
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

        def one(number: int) -> str:
            token = f"{name}-{number}"
            line = f"echo {token} >>{WITNESS}; echo {token}; exit {number % CODES}"
            job = client.run(target, shell=line, name=token, confirm=0)
            code = job.wait(120)
            return json.dumps(
                {"id": job.id, "token": token, "code": code, "log": job.log().decode()}
            )

        with ThreadPoolExecutor(int(width)) as threads:
            for line in threads.map(one, range(int(count))):
                print(line, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
