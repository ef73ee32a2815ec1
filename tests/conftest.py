"""Fixtures for all tests: the lab, the command line, the shells."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from support.client import Client
from support.lab import Lab, lab_share, why_no_lab
from support.shells import SHELL_NAMES, Shell, ShellName, make_shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# How long an example takes says more about what else the machine does than about the example.
settings.register_profile(
    "tests",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("tests")

# As in pyproject.toml (seconds).
_USUAL_TIMEOUT = 180

_NO_LAB = "no lab here: "
_LAB_FIXTURES = frozenset({"lab", "launchpad", "make_client"})


# Before xdist looks at the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the lab; skip it where there is none, except where it must run."""
    found = False
    for item in items:
        if _LAB_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.lab)
        found = found or item.get_closest_marker("lab") is not None
        if item.get_closest_marker("exclusive"):
            # One worker has them all, so that no other one waits for its turn.
            item.add_marker(pytest.mark.xdist_group("exclusive"))
    items.sort(key=_turn)
    why = why_no_lab() if found else None
    if why is None or os.environ.get("CI") == "true":
        return
    skip = pytest.mark.skip(reason=_NO_LAB + why)
    for item in items:
        if item.get_closest_marker("lab"):
            item.add_marker(skip)


def _turn(item: pytest.Item) -> int:
    """When it should run. What needs no lab goes on beside those who want the lab alone."""
    if item.get_closest_marker("exclusive"):
        return 0
    if not item.get_closest_marker("lab"):
        return 1
    # What takes long must not be what all wait for in the end.
    timeout = item.get_closest_marker("timeout")
    is_long = timeout is not None and timeout.args[0] > _USUAL_TIMEOUT
    return 2 if is_long or item.get_closest_marker("xdist_group") else 3


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Forget the groups in the names of what failed: without xdist, tests do not bear them."""
    cache = getattr(session.config, "cache", None)
    if cache is None or hasattr(session.config, "workerinput"):
        return
    failed = cache.get("cache/lastfailed", {})
    cache.set("cache/lastfailed", dict.fromkeys(map(_without_group, failed), True))


def _without_group(name: str) -> str:
    # As xdist tells a group from an @ in a parameter.
    at = name.rfind("@")
    return name[:at] if at > name.rfind("]") else name


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple) and _NO_LAB in report.longrepr[2]
    ]
    if skipped:
        terminalreporter.section("NOT TESTED", sep="!", red=True, bold=True)
        terminalreporter.line(
            f"{len(skipped)} TESTS WITH REAL SSH AND REAL CONTAINERS DID NOT RUN:"
            f" {skipped[0].longrepr[2].partition(_NO_LAB)[2]}",
            red=True,
            bold=True,
        )
    if os.environ.get("LAUNCHPAD_SECOND_TRY"):
        passed = terminalreporter.stats.get("passed", ())
        terminalreporter.section("PASSED ONLY ALONE", sep="!", yellow=True, bold=True)
        for report in passed:
            terminalreporter.line(report.nodeid, yellow=True)
    if failed := os.environ.get("LAUNCHPAD_FAILED_CHECKS"):
        terminalreporter.section("FAILED CHECKS", sep="!", red=True, bold=True)
        terminalreporter.line(f"{failed}: see above", red=True, bold=True)


@pytest.fixture(scope="session")
def running_lab() -> Lab:
    """The shared lab, brought up once (by one of the workers; the others wait for it)."""
    lab = Lab()
    lab.up()
    return lab


@pytest.fixture
def lab(running_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The shared lab, for this test alone where it is marked ``exclusive``."""
    exclusive = request.node.get_closest_marker("exclusive") is not None
    with lab_share(running_lab.settings.home, exclusive=exclusive):
        yield running_lab
        if exclusive:
            running_lab.up()  # whatever the test ended runs again for the next one


@pytest.fixture
def make_client(lab: Lab, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """Make users with homes of their own: ``make_client("other", LC_ALL="de_DE.UTF-8")``."""
    clients: list[Client] = []

    def make(name: str = "home", **environment: str) -> Client:
        settings = {"LAUNCHPAD_SSH_CONFIG": str(lab.ssh_config), **environment}
        clients.append(Client(tmp_path / name, settings))
        return clients[-1]

    yield make
    for client in clients:
        client.end_processes()
    started: dict[int, dict[str, tuple[int, int] | None]] = {}
    for client in clients:
        identities = client.identities()
        for job, target in client.known_jobs():
            ctid = target.replace("/", ":").rpartition(":")[2]
            if ctid.isdigit():
                started.setdefault(int(ctid), {})[job] = identities[job]
    for number, jobs in started.items():
        lab.end_jobs(number, jobs)


@pytest.fixture
def launchpad(make_client: Callable[..., Client]) -> Client:
    """The command line as a user of the lab has it; jobs it starts end with the test."""
    return make_client()


@pytest.fixture(scope="session", params=SHELL_NAMES)
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Each of the shells that remote scripts must work under, with nothing but its own tools."""
    name: ShellName = request.param
    return make_shell(name, tmp_path_factory.mktemp(f"userland-{name}") / "bin")
