"""The bytes of a command go through whole, however they are cut, and nothing of ours with them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hypothesis import assume, given, strategies as st

from launchpad.execstream import Beginning, Begun, Ending, OneTerminal
from launchpad.screenmodes import ScreenModes

if TYPE_CHECKING:
    from collections.abc import Iterable

MARKER = b"launchpad-0123456789abcdef"

# Bytes that look like ours are more likely than any others.
tricky = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from([b"\x1e", b"\n", MARKER, b"\x1e" + MARKER, b" exit ", b" begin 1 2\n"]),
        st.integers(1, len(MARKER)).map(lambda size: b"\x1e" + MARKER[:size]),
        st.sampled_from([b"\x1e" + MARKER + b" exit", b"\x1e" + MARKER + b" exit 1"]),
    )
).map(b"".join)


def pieces(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(places)]


@given(tricky, st.integers(0, 255), st.lists(st.integers(0, 5000)))
def test_what_comes_before_the_mark_is_passed_on_whole(
    data: bytes, code: int, cuts: list[int]
) -> None:
    mark = b"\x1e%s exit %d\x1e" % (MARKER, code)
    # Who knows the marker could say it too.
    assume(b" exit 1\x1e" not in data + b"\x1e")
    beat = b"\x1e%s beat\x1e" % MARKER
    ending = Ending(MARKER)
    whole = beat + data[: len(data) // 2] + beat + data[len(data) // 2 :] + mark
    assume(b" exit 1\x1e" not in whole.removesuffix(mark))
    shown = b"".join(ending.feed(piece) for piece in pieces(whole, cuts))
    assert shown == data
    assert ending.code == code
    assert ending.feed(b"later") == b""


@given(tricky, st.lists(st.integers(0, 5000)))
def test_nothing_is_lost_without_a_mark(data: bytes, cuts: list[int]) -> None:
    ending = Ending(MARKER)
    shown = b"".join(ending.feed(piece) for piece in pieces(data, cuts))
    if ending.code is None:
        assert shown + ending.rest() == data


def test_the_end_of_a_line_is_never_held_back() -> None:
    ending = Ending(MARKER)
    assert ending.feed(b"ready\n") == b"ready\n"
    assert ending.feed(b"$ ") == b"$ "


@given(st.binary(max_size=200), tricky, st.lists(st.integers(0, 5000)), st.integers(0, 3))
def test_noise_before_the_beginning_is_left_out(
    noise: bytes, data: bytes, cuts: list[int], terminals: int
) -> None:
    newline = b"\r" * terminals + b"\n"
    frame = newline + MARKER + b" begin 4711 99" + newline
    beginning = Beginning(MARKER)
    own = b"".join(beginning.feed(piece) for piece in pieces(noise + frame + data, cuts))
    assert own == data
    assert beginning.begun == Begun(4711, 99, terminals)


@given(
    st.lists(st.sampled_from([b"\r", b"\n", b"a", b"\r\n"])).map(b"".join),
    st.integers(0, 3),
    st.lists(st.integers(0, 5000)),
)
def test_what_the_terminals_between_have_added_is_taken_back(
    data: bytes, between: int, cuts: list[int]
) -> None:
    arrived = data.replace(b"\n", b"\r" * between + b"\n")
    newlines = OneTerminal(1 + between)
    shown = b"".join(newlines.feed(piece) for piece in pieces(arrived, cuts))
    assert shown + newlines.rest() == data


def test_noise_without_end_takes_no_memory() -> None:
    beginning = Beginning(MARKER)
    for _ in range(100):
        assert beginning.feed(b"x" * 65536) == b""
    assert len(beginning.noise) <= 65536
    assert beginning.feed(b"\n" + MARKER + b" begin 1 2\nown") == b"own"


def test_modes_are_undone_if_they_were_changed() -> None:
    modes = ScreenModes()
    modes.feed(b"\x1b[?1049h\x1b[?25l\x1b[?1000;1006h\x1b[?20")
    modes.feed(b"04h hello \x1b=")
    modes.feed(b"\x1b[?1000l")
    undo = modes.undo()
    for expected in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b>"):
        assert expected in undo
    assert b"?1000" not in undo


def test_a_program_that_cleared_up_leaves_nothing_to_undo() -> None:
    modes = ScreenModes()
    modes.feed(b"\x1b[?1049h\x1b[?25l text \x1b[31mred\x1b[0m \x1b[?25h\x1b[?1049l\x1b=\x1b>")
    assert modes.undo() == b""
