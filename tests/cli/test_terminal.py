"""What only a person at a terminal sees: questions, bars; each on a pty of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from support.typing import Screen, at_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.local_client import LocalClient

SECRET = "s3cr3t-of-the-keyboard"


@pytest.fixture
def screen(local: LocalClient) -> Iterator[Callable[..., Screen]]:
    screens: list[Screen] = []

    def sit_down(*words: str, env: dict[str, str] | None = None) -> Screen:
        screens.append(at_terminal(local.client, *words, env=env, prefix=local.prefix))
        return screens[-1]

    yield sit_down
    for each in screens:
        each.close()


def test_rerun_asks_for_a_value_that_is_nowhere_and_never_shows_it(
    local: LocalClient, screen: Callable[..., Screen]
) -> None:
    script = 'echo "it has ${#TOKEN} characters"'
    words = ("run", "--wait", "-e", "TOKEN", "-n", "asks", "local", "-c", script)
    assert local(*words, env={"TOKEN": "abc"}).code == 0
    typed = screen("rerun", "asks", "--wait")
    typed.expect(rb"value of TOKEN \(not shown\): ")
    typed.type(SECRET.encode() + b"\r")
    typed.expect(b"it has %d characters" % len(SECRET))
    assert typed.end() == 0
    assert SECRET.encode() not in typed.seen
    kept = [file for file in local.home.rglob("*") if file.is_file()]
    assert kept
    assert not [file for file in kept if SECRET.encode() in file.read_bytes()]


def test_ctrl_c_at_that_question_starts_nothing(
    local: LocalClient, screen: Callable[..., Screen]
) -> None:
    words = ("run", "--wait", "-e", "TOKEN", "-n", "asks", "local", "--", "true")
    assert local(*words, env={"TOKEN": "abc"}).code == 0
    typed = screen("rerun", "asks")
    typed.expect(rb"value of TOKEN")
    typed.type(b"\x03")
    assert typed.end() == 130
    assert len(local.client.known_jobs()) == 1


@pytest.mark.parametrize("verb", ["push", "pull"])
def test_copying_has_a_bar_that_goes_away(
    verb: str, local: LocalClient, screen: Callable[..., Screen], tmp_path: Path
) -> None:
    source, there = tmp_path / "source", tmp_path / "there"
    source.mkdir()
    with (source / "weights").open("wb") as file:
        file.truncate(200_000_000)
    words = [str(source), f"local:{there}"] if verb == "push" else [f"local:{source}", str(there)]
    shown = screen(verb, *words)
    # How much, how fast, how long still.
    shown.expect(rb"[0-9.]+/200\.0 MB|[0-9.]+ MB")
    shown.expect(rb"[0-9.]+ [kMG]?B/s")
    shown.expect(rb"0:00:[0-9]{2}|-:--:--")
    assert shown.end() == 0
    assert re.search(rb"(pushed|pulled) 1 file, 200\.0 MB", shown.seen)
    # It has been taken away again, and the cursor is back.
    assert shown.seen.rindex(b"\x1b[2K") < shown.seen.rindex(b"1 file")
    assert b"\x1b[?25h" in shown.seen
    assert (there / "weights").stat().st_size == 200_000_000


def test_nothing_moves_in_a_pipe(local: LocalClient, tmp_path: Path) -> None:
    # Longer than the patience after which a terminal is told what is being waited for.
    script = "sleep 1.4; echo ready; sleep 60"
    waited = local("run", "--ready", "ready", "local", "-c", script, env={"TERM": "xterm"})
    assert waited.code == 0
    assert waited.seconds > 1.4
    (tmp_path / "big").write_bytes(bytes(30_000_000))
    copied = local("push", str(tmp_path / "big"), f"local:{tmp_path}/copy", env={"TERM": "xterm"})
    assert copied.code == 0
    shown = waited.stdout + waited.stderr + copied.stdout + copied.stderr
    assert b"\x1b" not in shown
    assert b"\r" not in shown


def test_no_colour_where_nobody_wants_it(
    local: LocalClient, screen: Callable[..., Screen], tmp_path: Path
) -> None:
    local("run", "--wait", "-n", "grey", "local", "--", "sh", "-c", "exit 3")
    coloured = screen("status", "--all")
    coloured.expect(b"exited 3")
    assert coloured.end() == 0
    assert re.search(rb"\x1b\[[0-9;]*m", coloured.seen)
    (tmp_path / "c.toml").write_text("[defaults]\nno_color = true\n")
    for words, env in (
        (("status", "--all"), {"NO_COLOR": "1"}),
        (("status", "--all"), {"TERM": "dumb"}),
        (("--no-color", "status", "--all"), {}),
        (("--config", str(tmp_path / "c.toml"), "status", "--all"), {}),
    ):
        plain = screen(*words, env=env)
        plain.expect(b"exited 3")
        assert plain.end() == 0
        assert b"\x1b" not in plain.seen
