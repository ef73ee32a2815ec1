"""launchpad as a user without root runs it on the target ``local``."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from support.client import Client

if TYPE_CHECKING:
    from support.client import Outcome


class LocalClient:
    """A user without root, whose target is ``local``."""

    def __init__(self, home: Path, prefix: tuple[str, ...]) -> None:
        self.client = Client(home)
        self.prefix = prefix

    @property
    def home(self) -> Path:
        return self.client.home

    def __call__(
        self,
        *words: str | bytes,
        env: dict[str, str | None] | None = None,
        stdin: bytes | None = None,
        cwd: Path | None = None,
        timeout: float = 60.0,
    ) -> Outcome:
        return self.client.run(
            *words, env=env, stdin=stdin, prefix=self.prefix, cwd=cwd, timeout=timeout
        )

    def end(self) -> None:
        """End what is left: the calls, and the sessions of the jobs, if they are still those."""
        self.client.end_processes()
        if not self.client.index.exists():
            return
        with closing(sqlite3.connect(self.client.index)) as connection:
            rows = connection.execute("SELECT identity FROM job WHERE identity NOT NULL").fetchall()
        for (identity,) in rows:
            pid, ticks, *_ = json.loads(identity)
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
                if int(fields[19]) == ticks:
                    os.killpg(pid, signal.SIGKILL)
