#!/usr/bin/env python3
"""Coverage-guided fuzzing of what reads text from elsewhere. See README.md beside this file."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["launchpad"]):
    from launchpad import config_reader
    from launchpad.archive import DamagedArchive, Reader
    from launchpad.command import to_text
    from launchpad.errors import LaunchpadError, ShellError
    from launchpad.frames import FrameReader, parse_frames
    from launchpad.kill_reply import parse_ended
    from launchpad.replies import parse_facts
    from launchpad.target import parse_target, split_path
    from launchpad.terminal import TerminalFilter

MARKER = b"m"
PATH = Path("/nowhere/config.toml")


def replies(data: bytes) -> None:
    with suppress(ShellError):
        frames = parse_frames(MARKER, data)
        parse_facts(frames)
        parse_ended(frames)
        list(FrameReader(MARKER).feed(data))


def targets(data: bytes) -> None:
    text = to_text(data)
    split_path(text)
    with suppress(LaunchpadError):
        target = parse_target(text)
        assert parse_target(str(target)) == target


def terminal(data: bytes) -> None:
    shown = TerminalFilter()
    text = shown.feed(data) + shown.flush()
    assert "\x1b]" not in text
    assert "\x07" not in text


def configuration(data: bytes) -> None:
    with suppress(LaunchpadError, UnicodeDecodeError):
        config_reader.parse(data.decode(), PATH).by_target()


def archive(data: bytes) -> None:
    with suppress(DamagedArchive):
        list(Reader().feed(data))


PARTS = {part.__name__: part for part in (replies, targets, terminal, configuration, archive)}

if __name__ == "__main__":
    atheris.Setup([sys.argv[0], *sys.argv[2:]], PARTS[sys.argv[1]])
    atheris.Fuzz()
