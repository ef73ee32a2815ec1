"""Text from elsewhere cannot act on a terminal."""

from __future__ import annotations

from hypothesis import given, strategies as st

from launchpad.printable import printable, printable_lines


def test_what_a_terminal_would_act_on_becomes_visible() -> None:
    assert printable("\033[2J\033]0;pwn\007ok\n") == r"\x1b[2J\x1b]0;pwn\x07ok\n"
    assert printable("\x9b2J \u202e \r\x7f") == r"\x9b2J \u202e \r\x7f"
    assert printable("caf\udce9") == r"caf\xe9"
    assert printable("a\tb é 漢 [bold] :x:") == "a\tb é 漢 [bold] :x:"


@given(st.text())
def test_no_control_character_ever_passes(text: str) -> None:
    shown = printable(text)
    assert shown.replace("\t", "").isprintable()
    shown.encode("utf-8")


def test_lines() -> None:
    assert printable_lines("a\r\nb\x1b\n\n10%\r20%") == ["a", r"b\x1b", "10%", "20%"]
