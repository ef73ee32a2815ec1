"""When a start counts as confirmed."""

import pytest
from hypothesis import given, strategies as st

from launchpad.errors import UsageError
from launchpad.watch import SILENCE, Confirmation, FirstLines, Readiness, compile_ready


def test_a_silent_job_is_watched_for_the_whole_time() -> None:
    watch = Confirmation(2.0, began=100.0)
    assert watch.remaining(100.0) == 2.0
    assert watch.remaining(101.5) == 0.5
    assert watch.remaining(103.0) == 0.0


def test_output_confirms_after_a_short_silence() -> None:
    watch = Confirmation(2.0, began=100.0)
    watch.feed(b"loading\n", 100.5)
    assert watch.remaining(100.5) == pytest.approx(SILENCE)
    watch.feed(b"more\n", 100.7)
    assert watch.remaining(100.9) == pytest.approx(SILENCE - 0.2)
    assert watch.remaining(101.0) == 0.0


def test_a_job_that_never_stops_writing_is_confirmed_when_the_time_is_over() -> None:
    watch = Confirmation(2.0, began=100.0)
    watch.feed(b"x", 101.95)
    assert watch.remaining(101.95) == pytest.approx(0.05)


def test_a_line_that_matches_makes_ready_at_once() -> None:
    watch = Readiness(compile_ready("step [0-9]+"), timeout=None, began=0.0)
    watch.feed(b"loading\nste", 1.0)
    assert watch.remaining(1.0) is None
    watch.feed(b"p 1", 2.0)
    assert watch.is_met
    assert watch.remaining(2.0) == 0.0


def test_readiness_looks_at_lines_one_by_one() -> None:
    watch = Readiness(compile_ready("^ready$"), timeout=5.0, began=0.0)
    watch.feed(b"not ready\nready", 1.0)
    assert watch.is_met
    late = Readiness(compile_ready("a.*b"), timeout=5.0, began=0.0)
    late.feed(b"a\nb\n", 1.0)
    assert not late.is_met
    assert late.remaining(4.0) == 1.0


@given(st.lists(st.binary(max_size=8), max_size=20))
def test_readiness_does_not_depend_on_how_the_bytes_are_cut(chunks: list[bytes]) -> None:
    whole = Readiness(compile_ready("^ab+c$"), timeout=None, began=0.0)
    whole.feed(b"".join(chunks) + b"\nabbc\n", 0.0)
    pieces = Readiness(compile_ready("^ab+c$"), timeout=None, began=0.0)
    for chunk in [*chunks, b"\na", b"bb", b"c\n"]:
        pieces.feed(chunk, 0.0)
    assert pieces.is_met
    assert whole.is_met


def test_a_pattern_that_is_none_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="--ready"):
        compile_ready("step (")


def test_first_lines_show_what_a_progress_bar_shows_now() -> None:
    first = FirstLines()
    first.feed(b"loading\n 1%\r 2%\r 99%\r\nhalf a li")
    assert first.lines == (b"loading", b" 99%", b"half a li")


def test_first_lines_are_ten_at_most_and_bounded() -> None:
    first = FirstLines()
    for _ in range(1000):
        first.feed(b"x" * 65536)
    assert len(first.lines) == 1
    assert len(first.lines[0]) <= 4096
    many = FirstLines()
    many.feed(b"".join(b"%d\n" % n for n in range(50)))
    assert many.lines == tuple(b"%d" % n for n in range(10))


def test_empty_lines_count() -> None:
    first = FirstLines()
    first.feed(b"\n\na\n")
    assert first.lines == (b"", b"", b"a")
