"""What `import launchpad` gives, and what it costs."""

import ast
import dataclasses
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import launchpad
from launchpad import api, errors
from launchpad.api.snapshot import Status
from launchpad.document import job_document
from launchpad.errors import LaunchpadError
from launchpad.job import JobId
from launchpad.state import Exited, Job

SOURCE = Path(launchpad.__file__)


def test_all_names_what_there_is() -> None:
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, LaunchpadError)
    }
    expected = {*api.__all__, *raised, "Layer", "__version__"} - {"default"}
    assert set(launchpad.__all__) == expected
    assert len(launchpad.__all__) == len(expected)
    for name in launchpad.__all__:
        assert getattr(launchpad, name) is not None


def test_type_checkers_see_the_same_names() -> None:
    """What stands under TYPE_CHECKING is all that they know."""
    imported = {
        alias.name
        for node in ast.walk(ast.parse(SOURCE.read_text()))
        if isinstance(node, ast.ImportFrom)
        and node.module
        in {
            "launchpad.api",
            "launchpad.errors",
            "launchpad.version",
        }
        for alias in node.names
    }
    assert imported == set(launchpad.__all__)
    assert (SOURCE.parent / "py.typed").exists()


def test_unknown_names_are_no_attributes() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'start'"):
        _ = launchpad.start
    assert set(launchpad.__all__) <= set(dir(launchpad))


def test_importing_loads_nothing_else() -> None:
    script = (
        "import sys; before = set(sys.modules); import launchpad;"
        "print(sorted(m for m in set(sys.modules) - before if m.startswith('launchpad')"
        " or m in {'paramiko', 'click', 'rich', 'sqlite3', 'json', 'logging'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=SOURCE.parents[1],
    )
    assert done.stdout.strip() == "['launchpad']"


def test_the_api_needs_no_command_line_and_no_screen() -> None:
    script = (
        "import sys, launchpad.api; print(sorted({'click', 'rich', 'paramiko'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=SOURCE.parents[1],
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", sorted(set(api.__all__) - {"default"}))
def test_everything_is_documented_and_typed(name: str) -> None:
    thing = getattr(launchpad, name)
    assert inspect.getdoc(thing)
    callables = [thing] if callable(thing) else []
    if isinstance(thing, type):
        members = vars(thing).items()
        callables = [value for key, value in members if not key.startswith("_") and callable(value)]
    for function in callables:
        assert inspect.getdoc(function), function
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty, function
        for parameter in signature.parameters.values():
            if parameter.name != "self":
                assert parameter.annotation is not inspect.Parameter.empty, (function, parameter)


def _job() -> Job:
    return Job(
        id=JobId("train-k3f9ab"),
        target="pve1:101",
        host="pve1",
        node="pve1",
        ctid=101,
        state=Exited(3),
        spec=None,
        log="/log",
        started_at=1_700_000_000.0,
    )


def test_a_status_has_the_fields_of_the_document() -> None:
    document = job_document(_job())
    assert {item.name for item in dataclasses.fields(Status)} == set(document) - {"schema"}


def test_a_status_is_a_value() -> None:
    status = Status.of(_job())
    assert status == Status.of(_job())
    assert (status.state, status.exit_code, status.is_ended) == ("exited", 3, True)
    assert status.started_at is not None
    assert status.started_at.isoformat() == "2023-11-14T22:13:20+00:00"
    assert pickle.loads(pickle.dumps(status)) == status  # noqa: S301


def test_a_job_can_be_sent_to_another_process() -> None:
    job = launchpad.Job("train-k3f9ab", "pve1:101", Status.of(_job()), (b"first",))
    again = pickle.loads(pickle.dumps(job))  # noqa: S301
    assert again == job
    assert (again.start, again.first_lines) == (job.start, job.first_lines)
    assert repr(job) == "Job(id='train-k3f9ab', target='pve1:101')"
    assert job.name == "train"


def test_an_error_says_all_of_it() -> None:
    error = errors.LoginRefused(
        "pve1 refused the login", details="tried: \x1b[31mkey", advice="ssh-add"
    )
    assert str(error) == "pve1 refused the login [login]\ntried: \\x1b[31mkey\nhelp: ssh-add"
