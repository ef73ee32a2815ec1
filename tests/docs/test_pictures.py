"""The pictures of the README: rendered from a real run, by a script that works."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from support.client import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

    from support.client import Client

SCRIPT = REPOSITORY / "docs/make_pictures.py"
PICTURES = REPOSITORY / "docs/pictures"


def words_of(picture: Path) -> str:
    """What one reads in it."""
    tree = ET.fromstring(picture.read_text())  # noqa: S314 # our own
    lines = ["".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    return " ".join(lines).replace("\xa0", " ")


def check(directory: Path) -> None:
    life, crash = words_of(directory / "life.svg"), words_of(directory / "crash.svg")
    job = re.search(r"started (train-[a-z2-7]{6}) on pve1:101", life)
    assert job, life
    assert "$ launchpad status train" in life
    assert re.search(r"running +pve1:101", life)
    assert f"killed {job[1]}: 1 process ended" in life
    assert "ModuleNotFoundError: No module named 'nosuchmodule'" in crash
    assert re.search(r"exited 1 +pve1:101", crash)


def test_the_script_draws_what_happens(launchpad: Client, tmp_path: Path) -> None:
    words = [sys.executable, str(SCRIPT), "--output", str(tmp_path)]
    subprocess.run(words, env=launchpad.environment, check=True, timeout=120)
    check(tmp_path)


def test_the_readme_shows_what_it_drew() -> None:
    shown = re.findall(
        r"!\[[^]]+\]\(docs/pictures/([a-z]+\.svg)\)", (REPOSITORY / "README.md").read_text()
    )
    assert sorted(shown) == sorted(path.name for path in PICTURES.iterdir())
    check(PICTURES)


@pytest.mark.parametrize("picture", sorted(PICTURES.iterdir()), ids=lambda path: str(path.name))
def test_a_picture_loads_nothing(picture: Path) -> None:
    text = picture.read_text()
    assert set(re.findall(r"https?://[^\s\"']+", text)) <= {
        "http://www.w3.org/2000/svg",
        "https://www.textualize.io",
    }
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text)
