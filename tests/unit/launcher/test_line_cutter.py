"""Several jobs on one screen: whole lines, and nothing lost."""

from hypothesis import given, strategies as st

from launchpad.launcher.tail import LineCutter


@given(st.lists(st.binary(max_size=30)))
def test_what_comes_out_early_is_whole_lines(chunks: list[bytes]) -> None:
    cutter = LineCutter()
    shown = [cutter.feed(chunk) for chunk in chunks]
    assert all(text.endswith(b"\n") for text in shown if text)
    assert b"".join(shown) + cutter.rest() == b"".join(chunks)


@given(st.binary(max_size=30))
def test_the_last_line_gets_an_end(data: bytes) -> None:
    cutter = LineCutter()
    text = cutter.feed(data) + cutter.last()
    assert text == data if data.endswith(b"\n") or not data else text == data + b"\n"


def test_no_line_is_held_for_ever() -> None:
    cutter = LineCutter()
    shown = b"".join(cutter.feed(b"x" * 1000) for _ in range(1000))
    assert len(shown) > 900_000
