"""The ``--`` of verbs that take a command: what stands behind the first one is not ours.

click would swallow one ``--``, and take options of the command for its own where there is none.
So the arguments are divided before click sees them.
"""

from collections.abc import Sequence

import click

from launchpad.cli.common import Verb, join_words
from launchpad.errors import UsageError

_KEY = "launchpad.command"


class CommandVerb(Verb):
    """A verb with ``TARGET -- COMMAND [ARG...]``; :func:`command_words` gives the words behind.

    Without ``--`` a word behind TARGET is an error that shows the corrected line.
    """

    command_usage = "-- COMMAND [ARG...]"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what stands behind the first ``--``, untouched; click parses the rest."""
        words: tuple[str, ...] | None = None
        if "--" in args:
            at = args.index("--")
            words, args = tuple(args[at + 1 :]), args[:at]
        elif not ctx.resilient_parsing:
            self._check_divided(ctx, args)
        ctx.meta[_KEY] = words
        return super().parse_args(ctx, args)

    def _check_divided(self, ctx: click.Context, args: list[str]) -> None:
        at = self._second_positional(args)
        if at is not None:
            self.note(ctx, args)
            raise UsageError(
                f"-- is missing in front of {args[at]!r}: it says where the command begins",
                advice=join_words([*ctx.command_path.split(), *args[:at], "--", *args[at:]]),
            )

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line, with the command."""
        return [*super().collect_usage_pieces(ctx), self.command_usage]

    def _second_positional(self, args: Sequence[str]) -> int | None:
        """Where the second word stands that is neither an option nor its value."""
        takes_value = {
            name: not (option.is_flag or option.count)
            for option in self.params
            if isinstance(option, click.Option)
            for name in (*option.opts, *option.secondary_opts)
        }
        found, at = 0, 0
        while at < len(args):
            word = args[at]
            if word.startswith("--"):
                at += 2 if takes_value.get(word) else 1
            elif word.startswith("-") and len(word) > 1:
                at += 2 if _needs_next_word(word, takes_value) else 1
            else:
                found += 1
                if found == 2:  # noqa: PLR2004
                    return at
                at += 1
        return None


def _needs_next_word(word: str, takes_value: dict[str, bool]) -> bool:
    """Whether the value of a cluster of short options (``-fn NAME``) is the next word."""
    for position, letter in enumerate(word[1:], 2):
        if takes_value.get(f"-{letter}"):
            return position == len(word)
    return False


def command_words(ctx: click.Context) -> tuple[str, ...] | None:
    """The words behind ``--``; None where there was none."""
    words: tuple[str, ...] | None = ctx.meta[_KEY]
    return words
