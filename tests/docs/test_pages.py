"""Every command block of README and docs, executed.

With LAUNCHPAD_UPDATE_DOCS=1 the pages are given what was printed, where that is something else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from labtool.settings import from_environment
from support.client import REPOSITORY, Client
from support.lab import BUSYBOX, DEBIAN, LAB_PROGRAM
from support.markdown import READ_ONLY, blocks
from support.pages import Page, Terminal
from support.receiver import receiver

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.lab import Lab

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("**/*.md"))]
TUTORIAL = REPOSITORY / "docs/tutorial.md"
ON_EXIT = REPOSITORY / "docs/howto/on-exit.md"

# Those that need more than a home and the lab.
OWN_TESTS = {TUTORIAL, ON_EXIT}

# Blocks that cannot be executed here, in all pages together: as few as can be.
NOT_RUN = 8

ALIASES = """\
[targets.gpu]
target = "pve1:101"

[targets.alpine]
target = "pve1:102"
"""


def _name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_block_is_executed_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        said = f"{page}:{block.line}: {block.language}: "
        if block.language == "setup":
            assert page != TUTORIAL, said + "whoever follows it needs what is written there"
        elif block.language == "console":
            assert block.commands(), said + "no command"
        elif block.language not in READ_ONLY:
            assert block.mark[0] in {"file", "not run"}, said + "neither a file nor executed"


def test_few_blocks_are_not_executed() -> None:
    skipped = [
        f"{_name(page)}:{block.line}: {block.mark[1]}"
        for page in PAGES
        for block in blocks(page)
        if block.mark[0] == "not run"
    ]
    assert len(skipped) <= NOT_RUN, "\n".join(skipped)


def _environment(client: Client, aliases: str = ALIASES) -> dict[str, str]:
    """That of somebody who has launchpad installed, and a configuration."""
    tools = client.home / ".local/bin"
    tools.mkdir(parents=True)
    # No links: a Python that is called by another name is not that of its virtual environment.
    for name, words in (("launchpad", "-m launchpad "), ("python3", "")):
        program = tools / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {words}"$@"\n')
        program.chmod(0o755)
    config = client.home / ".config/launchpad/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(aliases)
    environment = dict(client.environment)
    del environment["XDG_CONFIG_HOME"], environment["PYTHONWARNINGS"]
    return {**environment, "PATH": f"{tools}:{environment['PATH']}", "TERM": "xterm-256color"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", [page for page in PAGES if page not in OWN_TESTS], ids=_name)
def test_page(page: Path, make_client: Callable[..., Client]) -> None:
    if not any(block.is_run for block in blocks(page)):
        return
    _run(page, make_client())


def test_on_exit(lab: Lab, launchpad: Client) -> None:
    """In place of ntfy and of a webhook there are servers in the containers."""
    with (
        receiver(lab, BUSYBOX, "ntfy.lan") as phone,
        receiver(lab, DEBIAN, "hooks.lan") as chat,
    ):
        _run(ON_EXIT, launchpad)
        message = phone.next()
        assert (message.path, message.type) == ("/jobs", "application/x-www-form-urlencoded")
        assert re.fullmatch(rb"night-[a-z2-7]{6} exited 3", message.body)
        call = chat.next()
        assert (call.path, call.type) == ("/launchpad", "application/json")
        text = json.loads(call.body)["text"]
        assert re.fullmatch(r"night-[a-z2-7]{6} killed with 15", text)
    lab.sh(DEBIAN, "rm ~/notify.py")


@pytest.mark.lab
@pytest.mark.timeout(400)
def test_tutorial(tmp_path: Path) -> None:
    """From a clean home, with a lab that it brings up itself, for it ends with a prune."""
    client = Client(tmp_path / "home")
    place = Path(tempfile.mkdtemp(prefix="launchpad-tutorial-", dir="/var/tmp"))
    environment = {
        key: value
        for key, value in client.environment.items()
        if not key.startswith(("XDG_", "PYTHON", "LAUNCHPAD_"))
    }
    environment |= {
        "TERM": "xterm-256color",
        # Its lab is its own: no job of another test is to be told from these.
        "USER": "tester",
        "LOGNAME": "tester",
        "LAB_HOME": str(place),
        "LAB_CACHE": str(from_environment().cache),
    }
    # The lab may have to be built: that is no part of the two minutes.
    lab = [sys.executable, str(LAB_PROGRAM)]
    try:
        subprocess.run([*lab, "up"], env=environment, capture_output=True, check=True)
        began = time.monotonic()
        with Terminal(environment, REPOSITORY) as terminal:
            _execute(Page(TUTORIAL), terminal, client.home)
        assert time.monotonic() - began < 120
    finally:
        subprocess.run([*lab, "down"], env=environment, capture_output=True, check=False)
        shutil.rmtree(place)


def _run(page: Path, client: Client) -> None:
    # A page may show the files of a checkout.
    shutil.copytree(REPOSITORY / "examples", client.home / "examples")
    # Whoever reads the front page has set nothing up.
    aliases = ALIASES if page.parent != REPOSITORY else ""
    with Terminal(_environment(client, aliases), client.home) as terminal:
        _execute(Page(page), terminal, client.home)


def _execute(page: Page, terminal: Terminal, home: Path) -> None:
    page.execute(terminal, home)
    if os.environ.get("LAUNCHPAD_UPDATE_DOCS"):
        page.update()
    else:
        assert not page.differences, page.report()
