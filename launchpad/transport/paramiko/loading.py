"""Importing paramiko in a third of the time.

A cold start is mostly imports. Two things that paramiko pulls in are never used here and cost
more than the rest of it: invoke (which its parser wants for ``Match exec`` only; ssh -G does
that for us), and importlib.metadata (to find out its own version).
"""

import contextlib
import importlib
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path

_lock = threading.Lock()


def load() -> types.ModuleType:
    """paramiko, silenced: what it logs is said again in our own errors."""
    with _lock:
        if "paramiko" not in sys.modules:
            with _without("invoke"), _quick_metadata():
                importlib.import_module("paramiko")
            _silence()
    return importlib.import_module("paramiko")


def _silence() -> None:
    import logging

    logger = logging.getLogger("paramiko")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False


@contextlib.contextmanager
def _without(name: str) -> Iterator[None]:
    """``import name`` fails in here, as if it were not installed; paramiko expects that."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]


@contextlib.contextmanager
def _quick_metadata() -> Iterator[None]:
    """In here ``importlib.metadata`` is a module that knows versions and nothing else."""
    name = "importlib.metadata"
    if name in sys.modules:
        yield
        return
    stand_in = types.ModuleType(name)
    stand_in.version = _version  # type: ignore[attr-defined]
    sys.modules[name] = stand_in
    try:
        yield
    finally:
        del sys.modules[name]


def _version(distribution: str) -> str:
    """The version in the name of the ``dist-info`` directory (PEP 376)."""
    for entry in sys.path:
        with contextlib.suppress(OSError):
            for found in Path(entry or ".").glob(f"{distribution}-*.dist-info"):
                return found.name.removesuffix(".dist-info").rpartition("-")[2]
    return "unknown"
