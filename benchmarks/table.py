"""Rows of the table, and what becomes of measured times: medians, spread, ratios, verdicts."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HEAD = "| what | measured | must | stretch | | |\n|---|---|---|---|---|---|"
NOT_MET = "not met"

# Of fewer values there are no quarters worth telling.
_ENOUGH = 4


@dataclass(frozen=True, slots=True)
class Row:
    """``value``: what was measured. ``must``, ``stretch``: what it should not be above.

    ``at_least``: these limits are what it should not be below. ``samples``: all single times
    (seconds) behind it, by what was timed.
    """

    what: str
    value: float
    must: float | None = None
    stretch: float | None = None
    unit: str = ""
    detail: str = ""
    at_least: bool = False
    samples: Mapping[str, list[float]] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Whether it is as it should be."""
        if self.must is None:
            return ""
        if not self._keeps(self.must):
            return NOT_MET
        return "stretch" if self.stretch is not None and self._keeps(self.stretch) else "met"

    def _keeps(self, limit: float) -> bool:
        return self.value >= limit if self.at_least else self.value <= limit

    def __str__(self) -> str:
        sign = "≥" if self.at_least else "≤"
        limits = ["" if each is None else f"{sign} {each:g}" for each in (self.must, self.stretch)]
        value = f"{self.value:g}" if self.value == round(self.value) else f"{self.value:.2f}"
        verdict = f"**{self.verdict}**" if self.verdict == NOT_MET else self.verdict
        cells = (self.what, value + self.unit, *limits, verdict, self.detail)
        # A bar in a cell would be the end of it.
        escaped = [cell.replace("|", r"\|") for cell in cells]
        return f"| {' | '.join(escaped)} |"

    def document(self) -> dict[str, object]:
        """For the JSON."""
        return {**asdict(self), "verdict": self.verdict}


def in_turn(rounds: int, actions: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Time all of them in each round, so that what else the machine does is shared by all.

    Each round begins with another one: nobody has always the same neighbour before.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    for action in actions.values():
        action()  # caches are warm for everybody
    names = list(actions)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(actions[name]())
    return times


def spread(times: list[float]) -> str:
    """Median and the middle half, in milliseconds."""
    if len(times) < _ENOUGH:
        return f"{statistics.median(times) * 1000:.0f} ms"
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle * 1000:.0f} ms ({low * 1000:.0f} to {high * 1000:.0f})"


def percentile(times: list[float], hundredths: int) -> float:
    """The smallest of the values that so many hundredths of all are not above."""
    rank = -(-len(times) * hundredths // 100)
    return sorted(times)[max(rank, 1) - 1]


def ratio(
    what: str,
    times: Mapping[str, list[float]],
    pair: tuple[str, str],
    must: float | None = None,
    stretch: float | None = None,
    *,
    at_least: bool = False,
) -> Row:
    """The medians of two things, divided."""
    one, other = (times[name] for name in pair)
    value = statistics.median(one) / statistics.median(other)
    detail = f"{spread(one)} ÷ {spread(other)}"
    samples = {name: [round(each, 4) for each in times[name]] for name in pair}
    return Row(what, value, must, stretch, "", detail, at_least, samples)
