"""``run``: what its words mean, and what is refused before anything is started."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from support.client import Client
    from support.local_client import LocalClient


def refused(client: Client, *words: str, env: dict[str, str | None] | None = None) -> str:
    """A usage error that started nothing, not even an entry in the index; what it says."""
    outcome = client("run", *words, env=env)
    assert outcome.code == 125, str(outcome)
    assert outcome.out == ""
    assert not client.index.exists()
    return outcome.err


@pytest.mark.parametrize(
    ("words", "corrected"),
    [
        (
            ["local", "python3", "train.py", "--name", "x", "--follow"],
            "launchpad run local -- python3 train.py --name x --follow",
        ),
        (
            ["-C", "/w", "-fn", "x", "local", "-e", "A=1", "sleep", "5"],
            "launchpad run -C /w -fn x local -e A=1 -- sleep 5",
        ),
        (["local", "sh", "-c", "a && b"], "launchpad run local -- sh -c 'a && b'"),
        (["--cwd=/w", "local", "--login", "x"], "launchpad run --cwd=/w local --login -- x"),
    ],
)
def test_without_the_dashes_the_corrected_line_is_shown(
    launchpad_words: Client, words: list[str], corrected: str
) -> None:
    assert f"help: {corrected}\n" in refused(launchpad_words, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["local"], "no command given"),
        (["local", "--"], "no command given"),
        (["local", "--", ""], "first word is empty"),
        (["local", "-c", "  "], "shell line is empty"),
        (["local", "-c", "true", "--", "true"], "exclude each other"),
        (["local", "-n", "../x", "--", "true"], "cannot be a job's name"),
        (["local", "-n", "", "--", "true"], "-n is empty"),
        (["local", "-C", "proj", "--", "true"], "-C '~/proj'"),
        (["local", "-C", "", "--", "true"], "-C is empty"),
        (["local", "-u", "", "--", "true"], "-u is empty"),
        (["local", "-u", "a b", "--", "true"], "not a user name"),
        (["local", "--log", "a.txt", "--", "true"], "must be absolute"),
        (["local", "--append", "--", "true"], "--append needs --log"),
        (["local", "--ready-timeout", "5", "--", "true"], "needs --ready"),
        (["local", "--ready", "(", "--", "true"], "not a regular expression"),
        (["local", "--time-limit", "0", "--", "true"], "would end the job at once"),
        (["local", "--on-exit", " ", "--", "true"], "--on-exit is empty"),
        (["local", "--idempotency-key", "", "--", "true"], "--idempotency-key is empty"),
        (["local", "--confirm", "soon", "--", "true"], "is not a time"),
        (["local", "-e", "A-B=1", "--", "true"], "no POSIX shell can export"),
        (["local", "-e", "LP_NOT_SET", "--", "true"], "not in your environment"),
        (["local", "--env-file", "/nosuch", "--", "true"], "/nosuch"),
        (["pve1", "--", "true"], "did you mean pve1:CTID?"),
        (["-oProxyCommand=x:102", "--", "true"], "no such option"),
        (["pve1:102;id", "--", "true"], "is not a target"),
        (["--", "true"], "no target is named"),
        (["local", "--", "FOO=1", "python3", "-c", "pass"], "run -e FOO=1 local -- python3"),
        (["local", "--", "cd", "/tmp"], "-C /tmp"),
        (["local", "--", "cd /tmp && pwd"], "-c 'cd /tmp && pwd'"),
    ],
)
def test_what_cannot_mean_anything_is_refused(
    launchpad_words: Client, words: list[str], said: str
) -> None:
    assert said.lower() in refused(launchpad_words, *words).lower()


def test_with_json_a_refusal_is_a_document_too(launchpad_words: Client) -> None:
    for words in (
        ["--json", "local", "--", "cd", "/tmp"],
        ["--json", "--nosuch", "local", "--", "true"],
        ["local", "true", "--json"],
        ["-f", "--json", "local", "--", "true"],
    ):
        outcome = launchpad_words("run", *words)
        assert outcome.code == 125
        document = outcome.json()
        assert (document["schema"], document["id"], document["started"]) == (1, None, "no")
        assert document["error"]["layer"] == "client"
        assert document["error"]["exit_code"] == 125
        assert document["error"]["what"] in outcome.err
        assert document["error"]["advice"]


def test_json_behind_the_dashes_is_the_commands(launchpad_words: Client) -> None:
    assert launchpad_words("run", "local", "-u", "a b", "--", "x", "--json").out == ""


def test_a_value_on_the_command_line_is_warned_about_once(launchpad_words: Client) -> None:
    words = ["run", "--dry-run", "-e", "KEY=s3cr3t", "-e", "B=2", "local", "--", "true"]
    outcome = launchpad_words.succeed(*words)
    assert outcome.err.count("visible to other users") == 1
    assert "use -e KEY" in outcome.err
    assert "s3cr3t" not in outcome.err
    own = launchpad_words.succeed(
        *["run", "--dry-run", "-e", "KEY", "local", "--", "true"], env={"KEY": "s3cr3t"}
    )
    assert own.err == ""


def test_dry_run_starts_nothing_and_shows_no_value(launchpad_words: Client, tmp_path: Path) -> None:
    (tmp_path / "job.env").write_text("FROM_FILE=s3cr3t\n")
    words = ["run", "--dry-run", "-e", "KEY", "--env-file", str(tmp_path / "job.env")]
    outcome = launchpad_words.succeed(*words, "local", "--", "true", env={"KEY": "s3cr3t"})
    assert '"${FROM_FILE}" "${KEY}"' in outcome.out
    assert "s3cr3t" not in outcome.out + outcome.err
    first, *others = outcome.out.splitlines()
    assert not first.startswith("#")
    assert all(line.startswith("#") for line in others)
    assert not launchpad_words.index.exists()
    document = launchpad_words.succeed(
        *words, "--json", "local", "--", "true", env={"KEY": "s3cr3t"}
    )
    assert json.loads(document.out)["needs"] == ["FROM_FILE", "KEY"]


def test_what_an_alias_says_holds_unless_it_is_said_otherwise(
    launchpad_words: Client, tmp_path: Path
) -> None:
    (tmp_path / "job.env").write_text("A=file\nB=file\nC=file\n")
    config = tmp_path / "config/launchpad/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(
        '[targets.here]\ntarget = "local"\ncwd = "/usr"\nlogin = false\n'
        f'env_file = "{tmp_path}/job.env"\nenv = {{ B = "alias", D = "alias" }}\n'
    )
    env: dict[str, str | None] = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    plain = launchpad_words.succeed("run", "--dry-run", "here", "--", "true", env=env).out
    assert "cd /usr || exit" in plain
    assert "-lc" not in plain
    assert '"${A}" "${B}" "${C}" "${D}"' in plain
    words = ["run", "--dry-run", "-C", "/etc", "--login", "here", "--", "true"]
    changed = launchpad_words.succeed(*words, env=env).out
    assert "cd /etc || exit" in changed
    assert "-lc" in changed


def test_a_mistyped_alias_has_a_nearest_one(launchpad_words: Client, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[targets.trainer]\ntarget = "pve1:101"\n')
    env: dict[str, str | None] = {"LAUNCHPAD_CONFIG": str(tmp_path / "c.toml")}
    outcome = launchpad_words("run", "trianer", "--", "true", env=env)
    assert outcome.code == 125
    assert "did you mean trainer?" in outcome.err


def test_the_launcher_of_the_configuration_holds_unless_it_is_said_otherwise(
    local: LocalClient, tmp_path: Path
) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        '[defaults]\nlauncher = "tmux"\n[targets.plain]\ntarget = "local"\nlauncher = "setsid"\n'
    )
    job_file = tmp_path / "job.toml"
    job_file.write_text('launcher = "setsid"\n')

    def launcher(*words: str) -> str:
        line = ["--config", str(config), "run", "--confirm", "0", *words, "--", "true"]
        job = local(*line).out.strip()
        # What was wanted, whether or not there is a tmux here.
        with closing(sqlite3.connect(local.client.index)) as index:
            ((record,),) = index.execute("SELECT record FROM job WHERE id = ?", (job,)).fetchall()
        return str(json.loads(record)["launcher"])

    assert launcher("local") == "tmux"
    assert launcher("--no-tmux", "local") == "setsid"
    assert launcher("plain") == "setsid"
    assert launcher("--tmux", "plain") == "tmux"
    assert launcher("--file", str(job_file), "local") == "setsid"
    assert launcher("--file", str(job_file), "--tmux", "local") == "tmux"


def test_habits_of_verbs_hold_unless_it_is_said_otherwise(
    local: LocalClient, tmp_path: Path
) -> None:
    config = tmp_path / "c.toml"
    config.write_text(
        "[defaults.run]\nconfirm = 0.3\nfollow = true\nready_timeout = 5\ntime_limit = 30\n"
        "[defaults.tail]\nlines = 1\n[defaults.wait]\ntimeout = 0.2\n"
    )
    env: dict[str, str | None] = {"LAUNCHPAD_CONFIG": str(config)}
    script = "echo one; echo two; exit 3"
    followed = local("run", "local", "-c", script, env=env)
    assert (followed.code, followed.out) == (3, "one\ntwo\n")
    document = local("run", "--json", "local", "-c", "echo one; echo two; sleep 60", env=env).json()
    assert (document["state"], document["time_limit_s"]) == ("running", 30)
    job = document["id"]
    assert local("tail", job, env=env).out == "two\n"
    assert local("tail", "-n", "all", job, env=env).out == "one\ntwo\n"
    assert local("wait", job, env=env).code == 124
    assert re.fullmatch(
        r"sh?[\w-]*-[a-z2-7]{6}\n",
        local("run", "--no-follow", "local", "-c", "sleep 9; true", env=env).out,
    )


def test_run_never_reads_stdin(local: LocalClient) -> None:
    words = b"local\n" * 3
    outcome = local("run", "--confirm", "0", "local", "--", "cat", stdin=words)
    assert outcome.code == 0, str(outcome)
    job = outcome.out.strip()
    assert local("wait", job).code == 0
    assert local("tail", job).stdout == b""
