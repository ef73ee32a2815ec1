"""A call of launchpad that notes when it comes how far: run by benchmarks/spending.py.

Usage: phases.py FILE WORD... with the moment of its start (time.monotonic) in PHASES_BEGAN. The
stations go to FILE as JSON, in seconds since then. What is noted is in the way for some 5 ms.
"""

# ruff: noqa: E402 # the clock is read before anything else is loaded

import time

stations = {"interpreter": time.monotonic()}

import importlib.abc
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from functools import wraps
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any


def note(station: str) -> None:
    """It came this far, for the first time."""
    stations.setdefault(station, time.monotonic())


def notes(before: str, function: Callable[..., Any], after: str) -> Callable[..., Any]:
    """``function``, and a note before and after it."""

    @wraps(function)
    def noted(*arguments: Any, **options: Any) -> Any:
        note(before)
        try:
            return function(*arguments, **options)
        finally:
            note(after)

    return noted


def contact(module: ModuleType) -> None:
    """The way to the host, and into the container."""
    vars(module)["connect"] = notes("request", module.connect, "connected")
    start = module.Contact.start
    module.Contact.start = notes("connected", start, "opened")


def redirect(module: ModuleType) -> None:
    """The words that start the job."""
    send = module.FollowingChannel.send
    module.FollowingChannel.send = notes("index", send, "sent")


def frames(module: ModuleType) -> None:
    """What the container says."""
    feed = module.FrameReader.feed

    def heard(reader: Any, data: bytes) -> Any:
        note("inside")
        for frame in feed(reader, data):
            if frame.name == "launched":
                note("launched")
            yield frame

    module.FrameReader.feed = heard


CHANGES = {
    "launchpad.launcher.contact": contact,
    "launchpad.launcher.redirect": redirect,
    "launchpad.frames": frames,
}


class Changing(importlib.abc.MetaPathFinder):
    """Changes a module once it is loaded, whenever that is."""

    def find_spec(self, name: str, _path: object, _target: object = None) -> ModuleSpec | None:
        change = CHANGES.pop(name, None)
        spec = importlib.util.find_spec(name) if change is not None else None
        if spec is None or spec.loader is None or change is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


def end(code: int) -> None:
    """In the place of os._exit, with which launchpad ends."""
    note("end")
    began = float(os.environ["PHASES_BEGAN"])
    told = {name: moment - began for name, moment in stations.items()}
    Path(sys.argv[1]).write_text(json.dumps(told))
    leave(code)


if __name__ == "__main__":
    leave = os._exit
    os._exit = end  # type: ignore[assignment]
    sys.meta_path.insert(0, Changing())
    from launchpad.__main__ import main

    main(sys.argv[2:])
