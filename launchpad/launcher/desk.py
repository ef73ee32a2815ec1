"""What every verb is handed: this machine's index, how to reach hosts, whom to talk to."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from launchpad.settings import Config
from launchpad.target import Target, parse_target
from launchpad.transport.base import ConnectOptions, TransportChoice

if TYPE_CHECKING:
    from launchpad.index import Index


@dataclass(frozen=True, slots=True)
class Desk:
    """The place that verbs work from.

    ``say`` takes lines for the user (stderr, already safe to show on a terminal). ``now``: seconds
    since the epoch. ``aliases``: names of the configuration and the targets they stand for;
    ``options_by_target`` holds what differs from ``options`` for single targets (keyed by the
    target's text). ``index_file``: None for this user's own.
    """

    options: ConnectOptions
    say: Callable[[str], None]
    now: Callable[[], float] = time.time
    aliases: Mapping[str, str] = field(default_factory=dict)
    options_by_target: Mapping[str, ConnectOptions] = field(default_factory=dict)
    index_file: Path | None = None

    @property
    def index(self) -> "Index":
        """What this machine remembers of jobs."""
        # Late: sqlite loads while a container is being entered.
        from launchpad.index import Index

        return Index(self.index_file)

    def target(self, text: str) -> Target:
        """The target that ``text`` or the alias ``text`` names; raises :class:`UsageError`."""
        return parse_target(text, self.aliases)

    def options_for(self, target: Target) -> ConnectOptions:
        """How to reach ``target``."""
        return self.options_by_target.get(str(target), self.options)

    def name_of(self, target: str) -> str:
        """How the user calls that target: its alias, where exactly one stands for it."""
        names = [name for name, text in self.aliases.items() if text == target]
        return names[0] if len(names) == 1 else target


def make_desk(
    config: Config,
    options: ConnectOptions,
    say: Callable[[str], None],
    *,
    transport: TransportChoice | None = None,
) -> Desk:
    """The desk of somebody with that configuration, whose ``options`` hold for all targets.

    ``transport``: what was asked for in so many words, over whatever the configuration says.
    """
    by_target = {
        target: replace(
            options,
            choice=transport or settings.transport or options.choice,
            share=options.share if settings.share_connection is None else settings.share_connection,
        )
        for target, settings in config.by_target().items()
    }
    return Desk(
        options=options,
        say=say,
        aliases=config.aliases(),
        options_by_target=by_target,
    )
