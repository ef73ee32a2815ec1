"""The command line of the harness."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from faults.shaking import shake

from support.client import Client
from support.lab import Lab, lab_share


def main(words: list[str]) -> int:
    """The exit code: 1 where an invariant was broken."""
    parser = argparse.ArgumentParser(prog="tests/faults/run", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--first", type=int, default=1, help="number of the first step")
    options = parser.parse_args(words)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    lab = Lab()
    lab.up()
    with (
        lab_share(lab.settings.home, exclusive=True),
        tempfile.TemporaryDirectory(prefix="faults-") as place,
    ):
        client = Client(Path(place) / "home", {"LAUNCHPAD_SSH_CONFIG": str(lab.ssh_config)})
        tally = shake(
            lab,
            client,
            Path(place),
            seed=seed,
            seconds=options.minutes * 60,
            first=options.first,
            say=lambda line: print(line, flush=True),
        )
        client.end_processes()
    print("\n".join(tally.lines()))
    sys.stdout.flush()
    return 1 if tally.broken else 0
