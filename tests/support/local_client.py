"""launchpad as a user without root runs it on the target ``local``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.client import Client

if TYPE_CHECKING:
    from pathlib import Path

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
        for job, _target in self.client.known_jobs():
            self("kill", "-s", "KILL", job)
        self.client.end_processes()
