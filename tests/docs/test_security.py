"""docs/security.md: every promise has a test, and every test that it names exists."""

from __future__ import annotations

import re

from support.client import REPOSITORY

PAGE = REPOSITORY / "docs/security.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_test_that_is_named_exists() -> None:
    named = NAMED.findall(PAGE.read_text())
    assert len(named) > 40
    for file, name in named:
        text = (REPOSITORY / file).read_text()
        assert not name or re.search(rf"^def {name}\(", text, re.MULTILINE), f"{file}::{name}"


def test_every_promise_names_a_test() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    promises = [row for row in rows if not re.match(r"\|(-+\||.* test \|$)", row)]
    assert len(promises) > 20
    assert [row for row in promises if not NAMED.search(row)] == []


def test_the_readme_leads_there() -> None:
    assert "(docs/security.md)" in (REPOSITORY / "README.md").read_text()
