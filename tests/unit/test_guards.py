"""Words that only a shell would understand are caught, and the option that was meant is shown."""

from __future__ import annotations

import pytest

from launchpad.cli.guards import check_command, check_environment_word
from launchpad.command import Argv
from launchpad.errors import UsageError


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["FOO=1", "python3", "x.py"], "launchpad run -e FOO=1 T -- python3 x.py"),
        (["A=1", "B=x y", "run"], "launchpad run -e A=1 -e 'B=x y' T -- run"),
        (["FOO=1"], "launchpad run -e FOO=1 T -- COMMAND"),
        (["FOO=1 printenv FOO"], "launchpad run -e FOO=1 T -- printenv FOO"),
        (["cd", "/tmp"], "launchpad run T -C /tmp -- COMMAND"),
        (["cd", "/my dir", "&&", "pwd"], "launchpad run T -C '/my dir' -- pwd"),
        (["cd /tmp && pwd"], "launchpad run T -c 'cd /tmp && pwd'"),
        (["python3 train.py"], "launchpad run T -- python3 train.py"),
        (["python3 train.py"], "launchpad run T -c 'python3 train.py'"),
        (["/opt/my app"], "-- env '/opt/my app'"),
        (["export", "A=1"], "launchpad run T -c 'export A=1'"),
        (["source", "venv/bin/activate"], "-- venv/bin/python"),
        ([".", "setup.sh"], "launchpad run T -c '. setup.sh && COMMAND'"),
        (["for", "x"], "-c"),
        (["(sleep", "1)"], "-c"),
        (["a|b"], "launchpad run T -c 'a|b'"),
        (["$HOME/bin/x", "y z"], """launchpad run T -c '$HOME/bin/x '"'"'y z'"'"''"""),
        (["~/bin/x"], "launchpad run T -c '~/bin/x'"),
        (["conda activate x && python3"], "conda run --no-capture-output -n x"),
    ],
)
def test_shell_is_caught(words: list[str], shown: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_command(Argv(tuple(words)), "T")
    assert shown.replace("""'"'"'""", "'\\''") in caught.value.advice


@pytest.mark.parametrize(
    "words",
    [
        ["python3", "-c", "import os; os.system('a && b')"],
        ["sh", "-c", "cd /tmp && pwd"],
        ["env", "FOO=1", "printenv"],
        ["echo", "FOO=1", "cd", "&&"],
        ["/opt/my app/run", "--fast"],
        ["./run.sh"],
        ["test", "-f", "x"],
        ["[", "-f", "x", "]"],
        ["--help"],
        ["time", "ls"],
        ["git", "log", "--", "file"],
        ["näme"],
        ["conda", "activate", "x"],  # the container alone knows whether there is a conda
    ],
)
def test_programs_pass(words: list[str]) -> None:
    check_command(Argv(tuple(words)), "T")


@pytest.mark.parametrize("word", ["", "=1"])
def test_a_variable_needs_a_name(word: str) -> None:
    with pytest.raises(UsageError):
        check_environment_word(word)
