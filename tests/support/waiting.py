"""Waiting on conditions, never on the clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def wait_until(condition: Callable[[], T], timeout: float = 10.0, what: str = "") -> T:
    """The first true value of ``condition``; AssertionError after ``timeout`` seconds without."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not so after {timeout:g} s: {what or condition}; last: {value!r}"
            )
        time.sleep(0.02)
