"""Jobs on a screen and in a pipe."""

from __future__ import annotations

import io
import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from rich.console import Console

from launchpad.errors import Layer
from launchpad.job import Identity, JobId
from launchpad.render import (
    COLUMNS,
    View,
    ago,
    fit,
    grid,
    plain_lines,
    remarks,
    size,
    span,
    state_cell,
    state_style,
    table,
)
from launchpad.replies import parse_spec
from launchpad.state import (
    Exited,
    Job,
    JobState,
    Killed,
    KillRequest,
    Lost,
    Reason,
    Running,
    Starting,
    Unreachable,
)

NOW = 1_769_860_800.0
VIEW = View(NOW, {"pve1:101": "gpu"}.get, "me@here")  # type: ignore[arg-type]
VIEW = replace(VIEW, name_of=lambda target: "gpu" if target == "pve1:101" else target)


def job(state: JobState = Running(), **changes: object) -> Job:  # noqa: B008 - frozen
    made = Job(
        id=JobId("train-k3f7ab"),
        target="pve1:101",
        host="pve1",
        node="pve1",
        ctid=101,
        state=state,
        spec=parse_spec('{"started_by": "user@laptop"}'),
        log="/log",
        identity=Identity(4711, 1, 4711, "b", 1),
        processes=9,
        last_line="step 81200 loss 2.1",
        elapsed_s=18_600.0,
        cpu_percent=412.0,
        rss_bytes=3 * 1024**3,
        gpus=[{"index": 0, "utilization_percent": 97, "memory_used_bytes": 40 * 1024**3}],
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def on_terminal(jobs: list[Job], width: int) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=False, color_system=None)
    console.print(table(jobs, VIEW, width))
    return file.getvalue().splitlines()


def test_plain_text_tells_everything_on_one_line() -> None:
    header, line = plain_lines([job()], VIEW)
    assert header.split() == "ID STATE TARGET RAN PROCS CPU MEM GPU BY LAST LINE".split()
    for cell in ("train-k3f7ab", "running", "gpu", "5h 10m", "9", "412%", "3.0G", "97% 40.0G"):
        assert cell in line
    assert line.endswith("step 81200 loss 2.1")


def test_a_job_of_mine_does_not_say_so() -> None:
    mine = job(spec=parse_spec('{"started_by": "me@here"}'))
    assert "BY" not in "\n".join(plain_lines([mine], VIEW))


@pytest.mark.parametrize("width", [80, 100, 132, 200])
def test_every_job_is_one_line_of_the_terminal(width: int) -> None:
    jobs = [job(), job(Killed(9, Reason.OUT_OF_MEMORY), last_line="x" * 500, ended_at=NOW - 14_400)]
    lines = on_terminal(jobs, width)
    assert len(lines) == 3
    assert all(len(line) <= width for line in lines)
    assert all("train-k3f7ab" in line for line in lines[1:])
    assert "killed SIGKILL, out of memory" in lines[2]


def test_columns_are_dropped_in_a_fixed_order_and_the_id_never() -> None:
    whole = grid([job(Exited(1), ended_at=NOW - 360)], VIEW)
    titles = [{column.title for column in fit(whole, width).columns} for width in range(200, 0, -1)]
    dropped: list[str] = []
    for wider, narrower in itertools.pairwise(titles):
        assert narrower <= wider
        dropped += wider - narrower
    assert dropped == ["BY", "GPU", "CPU", "MEM", "PROCS", "ENDED", "RAN", "TARGET", "LAST LINE"]
    assert titles[-1] == {"ID", "STATE"}


@settings(deadline=None)
@given(st.text(max_size=200), st.integers(40, 160))
def test_no_text_from_a_job_can_leave_its_place(text: str, width: int) -> None:
    made = job(last_line=text, target=f"host{text}:101")
    lines = on_terminal([made], width)
    assert len(lines) == 2
    assert all(ord(character) >= 32 and character != "\x7f" for line in lines for character in line)
    plain = list(plain_lines([made], VIEW))
    assert len(plain) == 2


def test_nothing_is_markup() -> None:
    text = "[red]x[/] :boom: [link=file:///]y[/link] [/]"
    assert text in on_terminal([job(last_line=text)], 200)[1]
    assert text in list(plain_lines([job(last_line=text)], VIEW))[1]


def test_control_sequences_become_visible() -> None:
    _, line = plain_lines([job(last_line="\x1b[2J\x1b]0;pwn\x07\x1b]52;c;eA==\x07ok")], VIEW)
    assert "\x1b" not in line
    assert line.endswith("ok")


STATES: list[tuple[JobState, str]] = [
    (Starting(), "starting"),
    (Running(), "running"),
    (Running(Reason.SUPERVISOR_LOST), "running, its supervisor is gone"),
    (Exited(0), "exited 0"),
    (Exited(0, Reason.LAUNCHPAD), "exited 0, by launchpad"),
    (Killed(9, Reason.OUT_OF_MEMORY), "killed SIGKILL, out of memory"),
    (Killed(15, Reason.OTHER), "killed SIGTERM"),
    (Lost(Reason.CONTAINER_RESTARTED), "lost, container restarted"),
    (Unreachable(Layer.SSH, "no route"), "unreachable, ssh"),
    (
        Unreachable(Layer.CONTAINER, "stopped", reason=Reason.CONTAINER_STOPPED),
        "unreachable, container stopped",
    ),
]


@pytest.mark.parametrize(("state", "cell"), STATES)
def test_states_in_words(state: JobState, cell: str) -> None:
    assert state_cell(state) == cell
    assert isinstance(state_style(state), str)


def test_success_and_failure_have_different_colours() -> None:
    assert state_style(Exited(1)) == "red"
    assert state_style(Exited(0)) != "red"
    assert state_style(Running()) == "green"
    assert state_style(Lost(Reason.SUPERVISOR_LOST)) == "red"


def test_a_lost_job_ran_at_least_until_its_last_line() -> None:
    lost = job(
        Lost(Reason.CONTAINER_RESTARTED),
        elapsed_s=None,
        started_at=NOW - 10_000,
        last_output_at=NOW - 2_620,
    )
    assert ">= 2h 03m" in list(plain_lines([lost], VIEW))[1]
    (remark,) = remarks([lost], VIEW)
    assert "launchpad tail train-k3f7ab" in remark
    assert "launchpad rerun train-k3f7ab" in remark


def test_who_asked_for_the_kill_is_told_where_it_was_somebody_else() -> None:
    ended = job(
        Killed(15, Reason.LAUNCHPAD), kill_request=KillRequest("eve@desk\x1b", 15, NOW - 600)
    )
    mine = replace(ended, kill_request=KillRequest(VIEW.me or "me@here", 15, NOW - 600))
    view = replace(VIEW, me="me@here")
    (remark,) = remarks([ended, replace(mine, kill_request=None)], view)
    assert remark.endswith(r"eve@desk\x1b sent it SIGTERM through launchpad, 10 min ago")
    mine = replace(mine, kill_request=KillRequest("me@here", 15, NOW - 600))
    assert list(remarks([mine, mine], view)) == []
    assert "me@here sent it SIGTERM" in next(remarks([mine], view))


def test_unreachable_shows_what_was_known_last() -> None:
    gone = job(
        Unreachable(Layer.CONTAINER, "stopped", reason=Reason.CONTAINER_STOPPED),
        last_known={"state": "running", "at": NOW - 7_800},
        elapsed_s=None,
    )
    assert "(last known: running 2 h ago)" in list(plain_lines([gone], VIEW))[1]


def test_no_jobs_no_lines() -> None:
    assert list(plain_lines([], VIEW)) == []


def test_short_forms() -> None:
    assert [span(x) for x in (0, 9.94, 59, 372, 18_600, 180_000)] == [
        "0.0s",
        "9.9s",
        "59s",
        "6m 12s",
        "5h 10m",
        "2d 2h",
    ]
    assert [ago(NOW - x, NOW) for x in (-5, 5, 360, 14_400, 400_000)] == [
        "just now",
        "just now",
        "6 min ago",
        "4 h ago",
        "4 d ago",
    ]
    assert [size(x) for x in (0, 1023, 1024, 5 * 1024**2, 3 * 1024**3, 2**53)] == [
        "0",
        "1023",
        "1K",
        "5M",
        "3.0G",
        "8192.0T",
    ]


def test_every_column_can_be_computed_of_a_job_that_is_hardly_known() -> None:
    bare = Job(JobId("x-aaaaaa"), "t:101", None, None, None, Starting(), None, "")
    assert len([column.cell(bare, VIEW) for column in COLUMNS]) == len(COLUMNS)
