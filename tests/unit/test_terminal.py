"""The terminal filter: what passes, what does not, and that chunks make no difference."""

import re

import pytest
from hypothesis import given, strategies as st

from launchpad.terminal import TerminalFilter, width_of

# Pieces that mean something to terminals, whole and cut off, so that random joins hit the seams.
_PIECES = st.sampled_from(
    [
        b"a",
        b"word ",
        b"\n",
        b"\r",
        b"\r\n",
        b"\b",
        b"\t",
        b"\x07",
        b"\x00",
        b"\x1b",
        b"\x1b[",
        b"[",
        b"\\",
        b"m",
        b"\x1b[31m",
        b"\x1b[0m",
        b"\x1b[m",
        b"\x1b[2J",
        b"\x1b[2K",
        b"\x1b[K",
        b"\x1b[1;1H",
        b"\x1b[1A",
        b"\x1b[?1049h",
        b"\x1b[6n",
        b"\x1b[>4;1m",
        b"\x1b]0;title\x07",
        b"\x1b]52;c;eA==\x07",
        b"\x1b]8;;http://x\x1b\\",
        b"\x1bP",
        b"\x1bc",
        b"\x1b(0",
        b"\x9b2J",
        b"\xc2\x9b2J",
        b"\xe2\x82",
        b"\xe2\x82\xac",
        b"\xff",
        "漢".encode(),
        b"x" * 9000,
        b"\x1b[38;5;" + b"1" * 100,
        b"\x1b]" + b"t" * 5000,
    ]
)
_STREAMS = st.lists(_PIECES | st.binary(max_size=20), max_size=30).map(b"".join)

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


def _show(data: bytes, *cuts: int, flush: bool = False) -> str:
    screen = TerminalFilter()
    text = ""
    begin = 0
    for cut in (*sorted(cut % (len(data) + 1) for cut in cuts), len(data)):
        text += screen.feed(data[begin:cut])
        if flush:
            text += screen.flush()
        begin = cut
    return text + screen.finish()


def _on_screen(text: str) -> list[str]:
    """The lines that an endlessly wide terminal would hold, colours left out."""
    lines = []
    for line in _COLOUR.sub("", text).split("\n"):
        row: list[str] = []
        column = 0
        for character in line:
            if character == "\r":
                column = 0
                continue
            row[column : column + 1] = character
            column += 1
        lines.append("".join(row).rstrip())
    return lines


@given(_STREAMS, st.lists(st.integers(min_value=0), max_size=8))
def test_chunks_make_no_difference(data: bytes, cuts: list[int]) -> None:
    assert _show(data, *cuts) == _show(data)


@given(_STREAMS, st.lists(st.integers(min_value=0), max_size=8))
def test_nothing_but_colours_and_redrawn_lines_comes_out(data: bytes, cuts: list[int]) -> None:
    for text in (_show(data, *cuts), _show(data, *cuts, flush=True)):
        rest = _COLOUR.sub("", text)
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", rest)
    assert "\r" not in _show(data, *cuts)


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\b", b"\x1b[31m", b"\x1b[0m"])),
    st.lists(st.integers(min_value=0), max_size=8),
)
def test_what_was_shown_early_is_corrected_on_the_screen(
    pieces: list[bytes], cuts: list[int]
) -> None:
    data = b"".join(pieces)
    assert _on_screen(_show(data, *cuts, flush=True)) == _on_screen(_show(data))


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"])))
def test_plain_text_passes_unchanged(text: str) -> None:
    assert _show(text.encode()) == text


@given(st.lists(st.integers(min_value=1, max_value=40000), max_size=3))
def test_long_lines_are_neither_cut_nor_wrapped(lengths: list[int]) -> None:
    text = "".join("x" * length + "\n" for length in lengths)
    assert _show(text.encode(), 7, 20000, flush=True) == text


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\x1b[2J\x1b]0;pwn\x07\x1b]52;c;eA==\x07ok\n", "ok\n"),
        (b"\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"),
        (b"\x1b[31mred\n", "\x1b[31mred\n\x1b[0m"),
        (b"50%\r100%\n", "100%\n"),
        (b"50%\r\n", "50%\n"),
        (b"50%\r", "50%"),
        (b"\r50%\x1b[K\r51%\x1b[K", "51%"),
        (b"a\x1b[2Kb\n", "b\n"),
        (b"a\x1b[1Gb\n", "b\n"),
        (b"work |\b/\b-\b\\\bdone\n", "work done\n"),
        (b"ab\b\n", "ab\n"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        (b"\x1b]0;no end\nlog goes on\n", "␛]0;no end\nlog goes on\n"),
        (b"bell\x07 nul\x00 del\x7f\n", "bell␇ nul␀ del␡\n"),
        (b"latin1 \xe9t\xe9\n", "latin1 �t�\n"),
        (b"\xc2\x9b2J\n", "�2J\n"),
        (b"\x1b[3\n", "␛[3\n"),
        (b"end \x1b", "end ␛"),
        (b"\x1b[31mred\rstill red\x1b[0m\n", "\x1b[31mstill red\x1b[0m\n"),
    ],
)
def test_what_is_shown(data: bytes, shown: str) -> None:
    assert _show(data) == shown


def test_colours_can_be_left_out() -> None:
    assert TerminalFilter(colour=False).feed(b"\x1b[1;31mred\x1b[0m\n") == "red\n"


def test_an_unfinished_line_shows_when_flushed_and_is_redrawn() -> None:
    screen = TerminalFilter()
    shown, in_line = [], []
    for data, flush in ((b"10%", False), (b"", True), (b"\r9%", True), (b" done\n", False)):
        shown.append(screen.feed(data) + (screen.flush() if flush else ""))
        in_line.append(screen.in_line)
    assert shown == ["", "10%", "\r   \r9%", " done\n"]
    assert in_line == [False, True, True, False]


def test_a_line_that_the_terminal_wrapped_is_drawn_afresh() -> None:
    screen = TerminalFilter(columns=10)
    text = screen.feed(b"0123456789abc") + screen.flush()
    assert text + screen.feed(b"\rshort\n") == "0123456789abc\nshort\n"


def test_memory_is_bounded_without_any_newline() -> None:
    screen = TerminalFilter()
    for chunk in (b"x" * 100_000, b"\x1b[1m" * 50_000, b"\r50%" * 50_000, b"\b" * 100_000):
        screen.feed(chunk)
        held = [value for slot in vars(screen).values() for value in ([slot] if slot else [])]
        assert sum(len(value) for value in held if isinstance(value, str | list)) < 20_000


def test_width_counts_columns() -> None:
    assert width_of("\x1b[31mab\x1b[0m") == 2
    assert width_of("漢e\u0301") == 3
