"""The line of --dry-run: pasted into a shell it must do what a launch would have done."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from launchpad.command import Argv, Secret, ShellLine, to_bytes, to_text
from launchpad.dryrun import LINE_LIMIT, Way, dry_run
from launchpad.job import JobSpec, new_job_id
from support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

HARD_WORDS = (
    "a b",
    'it\'s "quoted"',
    "$HOME `id` $(id) *",
    "back\\slash \\\\ \\'",
    "ends in newlines\n\n",
    "two\nlines",
    "!bang!",
    "-x",
    "-",
    "",
    "%s %d",
    "é 漢",
    "\x01\x7f\x1b[2J",
    to_text(b"\xff\xfe\xe9"),
    "=x",
    "~",
    "#",
    "a;touch pwned",
)

# As if ssh had handed the line to that login shell.
HOSTS = ((), ("sh", "-c"), ("bash", "-c"), ("dash", "-c"))


def way(state: Path, ssh: tuple[str, ...] = ()) -> Way:
    return Way(ssh, (), "root on pve1", "container 101", str(state))


def spec(*words: str, **rest: object) -> JobSpec:
    return JobSpec(new_job_id("test"), Argv(words), **{"login": False, **rest})  # type: ignore[arg-type]


def paste(line: str, job: JobSpec, state: Path, *, env: dict[str, str] | None = None) -> bytes:
    """What the job has written once it wrote the last word of these tests."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **(env or {})}
    subprocess.run(["sh", "-c", to_bytes(line)], env=environment, check=True, timeout=30, cwd="/")
    log = state / f"{job.id}.log"
    wait_until(lambda: log.exists() and log.read_bytes().endswith(b"\0."))
    return log.read_bytes()


# Writes its arguments, each with a NUL behind it.
ECHO = ("sh", "-c", 'for word; do printf "%s\\0" "$word"; done; printf "\\0."', "sh")


def echoed(data: bytes) -> list[str]:
    return [to_text(word) for word in data.removesuffix(b"\0.").split(b"\0")[:-1]]


@pytest.mark.parametrize("ssh", HOSTS, ids=lambda words: words[0] if words else "no-ssh")
def test_words_arrive_byte_for_byte(tmp_path: Path, ssh: tuple[str, ...]) -> None:
    job = spec(*ECHO, *HARD_WORDS)
    line = dry_run(job, way(tmp_path, ssh)).line
    assert line.isprintable()
    assert echoed(paste(line, job, tmp_path)) == list(HARD_WORDS)


_TEXT = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30),
    st.binary(max_size=30).map(lambda data: to_text(data.replace(b"\0", b""))),
    st.text(st.sampled_from("'\"\\$`!\n %-"), max_size=12),
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.lists(_TEXT, max_size=4), ssh=st.sampled_from(HOSTS))
def test_any_words_arrive(tmp_path: Path, words: list[str], ssh: tuple[str, ...]) -> None:
    job = spec(*ECHO, *words)
    line = dry_run(job, way(tmp_path, ssh)).line
    assert line.isprintable()
    assert echoed(paste(line, job, tmp_path)) == words


@pytest.mark.parametrize(
    "values",
    [
        {"KEY": "s3cr3t 'x' \"y\" $z \\n"},
        {"KEY": "line 1\nline 2\n\n", "OTHER": "plain", "EMPTY": ""},
        {"HOME": "/tmp", "KEY": "-n"},
    ],
)
def test_values_come_from_the_shell_it_is_pasted_into(
    tmp_path: Path, values: dict[str, str]
) -> None:
    script = 'printenv -0 "$@"; printf "\\0."'
    job = spec(
        *("sh", "-c", script, "sh", *values),
        environment=tuple((name, Secret(value)) for name, value in values.items()),
    )
    dry = dry_run(job, way(tmp_path, ("sh", "-c")))
    assert dry.needs == tuple(values)
    for name, value in values.items():
        assert f'"${{{name}}}"' in dry.line
        assert len(value) < 5 or value.splitlines()[0] not in dry.line
    assert echoed(paste(dry.line, job, tmp_path, env=values)) == list(values.values())


def test_a_shell_line_is_read_by_the_containers_shell_once(tmp_path: Path) -> None:
    line = """x='a  b'; printf '%s\\0' "$x" '$x' "$0"; printf '\\0.'"""
    job = JobSpec(new_job_id("test"), ShellLine(line), login=False)
    data = paste(dry_run(job, way(tmp_path, ("bash", "-c"))).line, job, tmp_path)
    assert echoed(data) == ["a  b", "$x", "bash"]


def test_the_job_has_a_session_of_its_own_and_no_input(tmp_path: Path) -> None:
    script = (
        'read -r pid _ _ _ _ sid _ </proc/self/stat; printf "%s\\0" "$$" "$sid"'
        ' "$(readlink /proc/$$/fd/0)" "$(ls /proc/$$/fd | tr -d "\\n")" "$PWD"; printf "\\0."'
    )
    job = spec("sh", "-c", script, cwd="/usr")
    pid, session, stdin, descriptors, cwd = echoed(
        paste(dry_run(job, way(tmp_path)).line, job, tmp_path)
    )
    assert pid == session
    # 3 is the shell's own, for reading what ls says.
    assert (stdin, descriptors, cwd) == ("/dev/null", "0123", "/usr")


def test_a_log_of_ones_own_is_not_overwritten(tmp_path: Path) -> None:
    log = tmp_path / "it's a log"
    job = spec("sh", "-c", "echo once", log=str(log))
    line = dry_run(job, way(tmp_path)).line
    subprocess.run(["sh", "-c", line], check=True, timeout=30)
    wait_until(lambda: log.exists() and log.read_text() == "once\n")
    refused = subprocess.run(["sh", "-c", line], capture_output=True, timeout=30, check=False)
    assert b"it's a log" in refused.stderr
    assert log.read_text() == "once\n"
    more = dry_run(spec("sh", "-c", "echo twice", log=str(log), append=True), way(tmp_path)).line
    subprocess.run(["sh", "-c", more], check=True, timeout=30)
    wait_until(lambda: log.read_text() == "once\ntwice\n")


def test_each_layer_is_shown() -> None:
    reached = Way(
        ("ssh", "-p", "22", "root@pve1"),
        ("/usr/sbin/pct", "exec", "101", "--"),
        "root on pve1",
        "container 101",
        "/var/lib/launchpad",
    )
    dry = dry_run(spec("python3", "it's.py"), reached)
    assert dry.line.startswith("ssh -p 22 root@pve1 '/usr/sbin/pct exec 101 -- env -i PATH=")
    assert "bash -c" in dry.line
    host, shell, program = dry.sights
    assert host.sees[0].startswith("/usr/sbin/pct exec 101 -- ")
    assert "python3 'it'\"'\"'s.py'" in shell.sees[0]
    assert program.sees == ("0: python3", "1: it's.py")


def test_what_no_command_line_can_carry_says_so(tmp_path: Path) -> None:
    assert not dry_run(spec("true"), way(tmp_path)).is_too_long
    assert dry_run(spec("true", "x" * LINE_LIMIT), way(tmp_path)).is_too_long
