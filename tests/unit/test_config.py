"""The configuration file: what it may say, and what is said when it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from launchpad.config import default_path, load
from launchpad.config_reader import parse
from launchpad.errors import ClientError
from launchpad.job import Launcher
from launchpad.settings import Config, Settings

FILE = Path("/home/me/.config/launchpad/config.toml")

WHOLE = """
[defaults]
transport = "openssh"
env = { MODE = "fast" }
ssh_config = "~/jump.conf"

[targets.gpu]
target = "pve1:101"
cwd = "~/proj"
user = "worker"
env = ["WANDB_API_KEY", "MODE=slow"]
env_file = "secrets.env"
login = false
launcher = "setsid"
transport = "paramiko"
share_connection = true

[targets."a.b"]
target = "local"
"""


def test_a_whole_file() -> None:
    config = parse(WHOLE, FILE)
    assert config.aliases() == {"gpu": "pve1:101", "a.b": "local"}
    assert config.targets["gpu"].settings == Settings(
        cwd="~/proj",
        user="worker",
        env=(("WANDB_API_KEY", None), ("MODE", "slow")),
        env_file=FILE.parent / "secrets.env",
        login=False,
        launcher=Launcher.SETSID,
        transport="paramiko",
        share_connection=True,
    )
    assert config.defaults.ssh_config == Path("~/jump.conf").expanduser()


def test_an_alias_goes_before_the_defaults_and_variables_add_up() -> None:
    config = parse(WHOLE, FILE)
    settings = config.settings_for("gpu")
    assert settings.transport == "paramiko"
    assert settings.env == (("MODE", "fast"), ("WANDB_API_KEY", None), ("MODE", "slow"))
    assert config.settings_for("a.b").transport == "openssh"
    assert config.settings_for("pve1:101") == config.defaults
    assert config.by_target()["pve1:101"].share_connection is True


def test_a_false_in_an_alias_beats_a_true_in_the_defaults() -> None:
    text = '[defaults]\nlogin = true\n[targets.x]\ntarget = "local"\nlogin = false\n'
    assert parse(text, FILE).settings_for("x").login is False


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[defaults]\n\ntransprot = "auto"', 3, "did you mean transport?"),
        ('[target.gpu]\ntarget = "pve1:101"', 1, "did you mean targets?"),
        ("[defaults.run]\nconfrim = 3", 2, "did you mean confirm?"),
        ("[defaults.rum]\nconfirm = 3", 1, "did you mean run?"),
        ('[defaults.run]\nconfirm = "soon"', 2, 'write 90, "90s"'),
        ('[defaults.tail]\nlines = "ten"', 2, 'write 10, "+10" or "all"'),
        ("[defaults.prune]\nyes = true", 2, "is not a setting"),
        ('[targets.gpu]\ntarget = "pve1:101"\ncwdd = "/"', 3, "did you mean cwd?"),
        ('[targets.gpu]\ntarget = "pve1"', 2, "is not a target"),
        ('[targets.gpu]\ncwd = "/w"', 1, "names no target"),
        ('[targets.gpu]\ntarget = "pve1:101"\ncwd = "proj"', 3, "must be absolute"),
        ('[targets.gpu]\ntarget = "pve1:101"\nlogin = "no"', 3, "must be true or false"),
        ('[targets.gpu]\ntarget = "pve1:101"\nenv = ["A B=1"]', 3, "no POSIX shell can export"),
        ('[targets.gpu]\ntarget = "pve1:101"\nuser = ""', 3, "empty"),
        ('[targets.local]\ntarget = "pve1:101"', 1, "cannot be an alias"),
        ('[targets."pve1:101"]\ntarget = "pve1:101"', 1, "cannot be an alias"),
        ('[defaults]\ntransport = "telnet"', 2, "one of auto, paramiko, openssh"),
        ('[defaults]\ntarget = "pve1:101"', 2, "'target' is not a setting"),
        ("targets = 3", 1, "must be a table"),
        ("[defaults]\nx = = 1", 2, "is not TOML"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(text: str, line: int, words: str) -> None:
    with pytest.raises(ClientError) as caught:
        parse(text, FILE)
    error = caught.value
    said = f"{error.what} {error.details} {error.advice}"
    assert str(FILE) in said
    assert f"line {line}" in said
    assert words in said


def test_no_file_is_no_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load() == Config()


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="there is no configuration file"):
        load(tmp_path / "config.toml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ClientError, match="cannot be read"):
        load(tmp_path / "config.toml")
    with pytest.raises(ClientError, match="cannot be read"):
        load(tmp_path)


def test_nothing_is_taken_from_the_current_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("config.toml", "launchpad.toml", ".launchpad.toml", "launchpad/config.toml"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("[targets.evil]\ntarget = 'evil.example:101'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", "launchpad")  # relative: invalid, and ignored
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert load().targets == {}
    assert default_path() == tmp_path / "home/.config/launchpad/config.toml"


def test_values_of_variables_are_in_no_repr() -> None:
    assert "s3cr3t" not in repr(parse('[defaults]\nenv = ["KEY=s3cr3t"]', FILE))


def test_options_of_verbs() -> None:
    config = parse(
        '[defaults]\nno_color = true\n[defaults.run]\nconfirm = "5s"\nfollow = true\n'
        '[defaults.tail]\nlines = 50\n[defaults.push]\nexclude = ["*.pt"]\n',
        FILE,
    )
    assert config.verbs["run"] == {"confirm": 5.0, "follow": True}
    assert config.verbs["tail"] == {"lines": "50"}
    assert config.verbs["push"] == {"exclude": ("*.pt",)}
    assert (config.no_color, config.verbose) == (True, False)
    assert config.defaults == Settings()
