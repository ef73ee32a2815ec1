"""What cannot be meant is refused before anything is sent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from launchpad import Client, UsageError


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("LAUNCHPAD_CONFIG", raising=False)
    return Client()


@pytest.mark.parametrize(
    ("command", "options", "said"),
    [
        (None, {}, "either a command"),
        (["true"], {"shell": "true"}, "either a command"),
        ("python3 train.py", {}, "a list of arguments"),
        (b"true", {}, "a list of arguments"),
        ([], {}, "no command"),
        (["true"], {"cwd": "relative"}, "absolute"),
        (["true"], {"env": {"a-b": "1"}}, "environment variable"),
        (["true"], {"env": {"LR": 0.1}}, "LR is no text"),
        (["true"], {"env": {"NOT_HERE_AT_ALL": None}}, "not in your environment"),
        (["true"], {"env_file": "/no/such/file"}, "No such file"),
        (["true"], {"ready": "["}, "not a regular expression"),
        (["true"], {"ready_timeout": 3.0}, "needs ready"),
        (["true"], {"name": "-x"}, "cannot be a job's name"),
        (["true"], {"append": True}, "needs --log"),
    ],
)
def test_what_cannot_be_meant(
    client: Client, command: Any, options: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        client.run("pve1:101", command, **options)
    assert caught.value.started == "no"


def test_a_target_that_is_none(client: Client) -> None:
    with pytest.raises(UsageError, match="not a target"):
        client.run("pve1", ["true"])


def test_a_number_is_no_argument(client: Client) -> None:
    with pytest.raises(TypeError, match="not float"):
        client.run("pve1:101", ["train", 0.1])  # type: ignore[list-item]


def test_an_alias_and_its_settings_count(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "launchpad/config.toml"
    file.parent.mkdir()
    file.write_text('[targets.gpu]\ntarget = "pve1:101"\ncwd = "relative"\n')
    with pytest.raises(Exception, match=r"config\.toml, line 3"):
        client.run("gpu", ["true"])


def test_environment_variables_name_the_files(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAUNCHPAD_CONFIG", "/no/such/config.toml")
    with pytest.raises(Exception, match=r"no configuration file /no/such/config\.toml"):
        client.status()
