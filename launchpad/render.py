"""Jobs → text: a table for a terminal, plain lines for a pipe. Pure.

Text that comes from jobs, hosts and containers is data: it is made printable, and never markup.
Programs read the JSON of :mod:`launchpad.document` instead.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from launchpad.document import signal_word
from launchpad.printable import printable
from launchpad.state import (
    Exited,
    Job,
    JobState,
    Killed,
    Lost,
    Reason,
    Running,
    Starting,
    Unreachable,
    is_ended,
)
from launchpad.wording import reason_words

if TYPE_CHECKING:
    from rich.console import RenderableType

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

# Between two columns.
_GAP = 2

# A last line narrower than this tells nothing: other columns go first.
_LAST_LINE = 24

# Beyond this nobody reads a last line in a table (characters).
_LINE_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class View:
    """What rendering depends on besides the jobs.

    ``now``: seconds since the epoch. ``name_of``: how the user calls a target. ``me``: who is at
    this keyboard; jobs of others say whose they are.
    """

    now: float
    name_of: Callable[[str], str] = str
    me: str = ""


def span(seconds: float) -> str:
    """A length of time for a narrow column: ``0.4s``, ``41s``, ``6m 12s``, ``3d 2h``."""
    if seconds < 10:  # noqa: PLR2004
        return f"{max(0.0, seconds):.1f}s"
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def ago(then: float, now: float) -> str:
    """How long ago: ``just now``, ``6 min ago``, ``4 h ago``, ``3 d ago``."""
    passed = now - then
    if passed < _MINUTE:
        return "just now"
    if passed < _HOUR:
        return f"{int(passed / _MINUTE)} min ago"
    if passed < 2 * _DAY:
        return f"{int(passed / _HOUR)} h ago"
    return f"{int(passed / _DAY)} d ago"


def size(count: int) -> str:
    """Bytes for people: ``12M``, ``3.4G`` (powers of 1024)."""
    value = float(count)
    for unit in ("", "K", "M", "G", "T"):
        if value < 1024 or unit == "T":  # noqa: PLR2004
            return f"{value:.1f}{unit}" if unit in {"G", "T"} else f"{value:.0f}{unit}"
        value /= 1024
    raise AssertionError


def state_cell(state: JobState) -> str:
    """``killed SIGKILL, out of memory``."""
    match state:
        case Starting():
            return "starting"
        case Running(reason):
            word = "running"
        case Exited(code, reason):
            word = f"exited {code}"
        case Killed(number, reason):
            word = f"killed {signal_word(number)}"
        case Lost(reason):
            word = "lost"
        case Unreachable(layer, _what, _advice, reason):
            return f"unreachable, {reason_words(reason) if reason else layer}"
        case _:
            assert_never(state)
    return word if reason in {None, Reason.OTHER} else f"{word}, {reason_words(reason)}"


def state_style(state: JobState) -> str:
    """The colour that a state has on a terminal."""
    match state:
        case Running(None):
            return "green"
        case Starting():
            return "cyan"
        case Exited(0):
            return ""
        case Killed(_, Reason.LAUNCHPAD) | Exited(_, Reason.LAUNCHPAD) | Running() | Unreachable():
            return "yellow"
        case Exited() | Killed() | Lost():
            return "red"
        case _:
            assert_never(state)


def _ran(job: Job, _view: View) -> str:
    if job.elapsed_s is not None:
        return span(job.elapsed_s)
    if isinstance(job.state, Lost) and job.started_at and job.last_output_at:
        # It ran at least until it wrote its last line.
        return f">= {span(job.last_output_at - job.started_at)}"
    return "-"


def _ended(job: Job, view: View) -> str:
    if job.ended_at is not None:
        return ago(job.ended_at, view.now)
    return "-" if is_ended(job.state) else ""


def _gpu(job: Job, _view: View) -> str:
    cells = []
    for gpu in job.gpus or ():
        use, memory = gpu.get("utilization_percent"), gpu.get("memory_used_bytes")
        if isinstance(use, int) and isinstance(memory, int):
            cells.append(f"{use}% {size(memory)}")
    return ", ".join(cells)


def _by(job: Job, view: View) -> str:
    by = job.spec.started_by if job.spec else ""
    return "" if by == view.me else printable(by)


def _last_line(job: Job, view: View) -> str:
    if isinstance(job.state, Unreachable):
        if not job.last_known:
            return ""
        at = job.last_known.get("at")
        when = f" {ago(at, view.now)}" if isinstance(at, int | float) else ""
        return f"(last known: {job.last_known.get('state')}{when})"
    return printable((job.last_line or "")[:_LINE_LIMIT]).replace("\t", " ")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it says of a job. ``rank``: those with the highest go first, None: never."""

    title: str
    cell: Callable[[Job, View], str]
    rank: int | None = None
    right: bool = False


COLUMNS = (
    Column("ID", lambda job, _view: job.id.text),
    Column("STATE", lambda job, _view: state_cell(job.state)),
    Column("TARGET", lambda job, view: printable(view.name_of(job.target)), 1),
    Column("RAN", _ran, 2),
    Column("ENDED", _ended, 3),
    Column("PROCS", lambda job, _view: str(job.processes or ""), 4, right=True),
    Column(
        "CPU",
        lambda job, _view: "" if job.cpu_percent is None else f"{job.cpu_percent:.0f}%",
        6,
        right=True,
    ),
    Column("MEM", lambda job, _view: size(job.rss_bytes) if job.rss_bytes else "", 5, right=True),
    Column("GPU", _gpu, 7),
    Column("BY", _by, 8),
    Column("LAST LINE", _last_line, 0),
)


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of finished cells; columns that say nothing are left out."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]

    def widths(self, measure: Callable[[str], int]) -> list[int]:
        """How wide each column would have to be."""
        cells = [[column.title for column in self.columns], *self.rows]
        return [max(map(measure, own)) for own in zip(*cells, strict=True)]

    def without(self, index: int) -> "Grid":
        """The same without one column."""
        return Grid(
            self.columns[:index] + self.columns[index + 1 :],
            tuple(row[:index] + row[index + 1 :] for row in self.rows),
        )


def grid(jobs: Sequence[Job], view: View) -> Grid:
    """What there is to say about the jobs."""
    rows = [tuple(column.cell(job, view) for column in COLUMNS) for job in jobs]
    kept = [
        number
        for number, column in enumerate(COLUMNS)
        if column.rank is None or any(row[number] for row in rows)
    ]
    return Grid(
        tuple(COLUMNS[number] for number in kept),
        tuple(tuple(row[number] for number in kept) for row in rows),
    )


def fit(whole: Grid, width: int, measure: Callable[[str], int] = len) -> Grid:
    """Leave out columns, always in the same order, until the others fit and leave a last line."""
    while True:
        needed = 0
        for column, own in zip(whole.columns, whole.widths(measure), strict=True):
            needed += _GAP + (min(own, _LAST_LINE) if column.title == "LAST LINE" else own)
        ranks = [-1 if column.rank is None else column.rank for column in whole.columns]
        if needed - _GAP <= width or max(ranks) < 0:
            return whole
        whole = whole.without(ranks.index(max(ranks)))


def plain_lines(jobs: Sequence[Job], view: View) -> Iterator[str]:
    """Lines for a pipe: everything, each job on one line, nothing cut off."""
    if not jobs:
        return
    whole = grid(jobs, view)
    widths = whole.widths(len)
    for row in ([column.title for column in whole.columns], *whole.rows):
        cells = [
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(row, widths, whole.columns, strict=True)
        ]
        yield (" " * _GAP).join(cells).rstrip()


def table(jobs: Sequence[Job], view: View, width: int) -> "RenderableType":
    """A table for a terminal that is ``width`` columns wide: every job on one line of it."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    whole = fit(grid(jobs, view), width, cell_len)
    made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column in whole.columns:
        made.add_column(
            column.title,
            justify="right" if column.right else "left",
            no_wrap=True,
            overflow="ellipsis",
            # Only the last line gives way: an id that is cut off cannot be typed.
            min_width=None
            if column.title == "LAST LINE"
            else whole.widths(cell_len)[whole.columns.index(column)],
        )
    for job, row in zip(jobs, whole.rows, strict=True):
        style = state_style(job.state)
        made.add_row(
            *(
                Text(cell, style if column.title == "STATE" else "", no_wrap=True)
                for cell, column in zip(row, whole.columns, strict=True)
            )
        )
    return made


def remarks(jobs: Sequence[Job], view: View) -> Iterator[str]:
    """What a table has no room for: one line each, safe to show."""
    for job in jobs:
        request = job.kill_request
        # What I did myself I know, unless I ask about this job alone.
        if request is not None and request.by and (request.by != view.me or len(jobs) == 1):
            word = signal_word(request.signal)
            who, when = printable(request.by), ago(request.at, view.now)
            yield f"{job.id}: {who} sent it {word} through launchpad, {when}"
        for note in job.notes:
            yield f"{job.id}: {printable(note)}"
        match job.state:
            case Lost(Reason.CONTAINER_RESTARTED | Reason.SUPERVISOR_LOST):
                yield (
                    f"{job.id}: nobody saw how it ended; its log is whole: launchpad tail {job.id}"
                    f" · again: launchpad rerun {job.id}"
                )
            case Unreachable(layer, what, advice) if layer == "job":
                yield f"{job.id}: {what}. {advice}"
            case _:
                pass
