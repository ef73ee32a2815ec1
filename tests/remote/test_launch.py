"""What a start proves, and what a job inherits: under bash, dash and busybox, on this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from launchpad.command import Argv, Secret, ShellLine
from launchpad.frames import Frame, is_whole, parse_frames
from launchpad.job import JobId, JobSpec, Launcher, new_job_id
from launchpad.replies import parse_end
from launchpad.scripts import remote_call
from support.calls import launch_call
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.shells import Shell

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a private /root and /etc need root")

# A home and an /etc/profile of the test's own, in a mount namespace that ends with it.
_PRIVATE = (
    'mount --bind "$1" /root && mount --bind "$2" /etc/profile || exit 99; shift 2; exec "$@"'
)


@dataclass(slots=True)
class Launches:
    """Launches under one shell, with a state directory, a home and a profile of their own."""

    shell: Shell
    place: Path
    jobs: list[JobId] = field(default_factory=list)

    @property
    def state(self) -> Path:
        return self.place / "state"

    @property
    def home(self) -> Path:
        return self.place / "home"

    @property
    def profile(self) -> Path:
        return self.place / "profile"

    def directory(self, job: JobId) -> Path:
        return self.state / "jobs" / job.text

    def launch(self, command: Argv | ShellLine, **options: object) -> tuple[JobId, list[Frame]]:
        spec = JobSpec(new_job_id("test"), command, **options)  # type: ignore[arg-type]
        self.jobs.append(spec.id)
        call = launch_call((), str(self.state), spec, "{}", follow=False)
        return spec.id, self.call(call.words, call.data, call.marker)

    def call(self, words: tuple[str, ...], data: bytes, marker: bytes) -> list[Frame]:
        private = ["unshare", "--mount", "sh", "-c", _PRIVATE]
        private += ["sh", str(self.home), str(self.profile)]
        done = subprocess.run(
            [*private, *self.shell.words(words)],
            input=data,
            capture_output=True,
            timeout=60,
            check=False,
        )
        frames = parse_frames(marker, done.stdout)
        assert is_whole(frames), (done.stdout, done.stderr)
        return frames

    def run(self, *words: str, **options: object) -> JobId:
        job, frames = self.launch(Argv(words), **options)
        assert frames[-2].name == "launched", frames
        return job

    def line(self, text: str, **options: object) -> str:
        """The log of a line of shell that ends by itself."""
        job, frames = self.launch(ShellLine(text), **options)
        assert frames[-2].name == "launched", frames
        self.end(job)
        return self.log(job)

    def refused(self, *words: str, **options: object) -> tuple[str, int, str]:
        """Reason, code and detail of a start that must be refused and leave nothing behind."""
        job, frames = self.launch(Argv(words), **options)
        frame = frames[-2]
        assert frame.name == "refused", frames
        assert not self.directory(job).exists(), "a half-made job stays"
        assert not processes_of(job), "something runs"
        return frame.words[0], int(frame.words[1]), frame.payload.decode()

    def log(self, job: JobId) -> str:
        return (self.directory(job) / "log").read_text()

    def main(self, job: JobId) -> list[str]:
        return (self.directory(job) / "main").read_text().split()

    def pid(self, job: JobId) -> int:
        return int(self.main(job)[1])

    def end(self, job: JobId) -> str:
        found = wait_until(lambda: list(self.directory(job).glob("end,1,*")), what="an end record")
        record = parse_end(found[0].name)
        assert record is not None
        return f"{'killed' if record.killed else 'exited'} {record.code}"


def processes_of(job: JobId) -> list[int]:
    mark = f"LAUNCHPAD_JOB_ID={job}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes().split(b"\0"):
                found.append(int(place.name))
        except OSError:
            continue
    return found


@pytest.fixture
def launches(shell: Shell, tmp_path: Path) -> Iterator[Launches]:
    made = Launches(shell, tmp_path)
    made.home.mkdir()
    made.profile.write_text("")
    tmp_path.chmod(0o755)
    yield made
    for job in made.jobs:
        for pid in processes_of(job):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    for job in made.jobs:
        if (made.directory(job) / "main").exists():
            supervisor = Path(f"/proc/{made.main(job)[7]}")
            wait_until(partial(_is_gone, supervisor), what="supervisor gone")


def _is_gone(path: Path) -> bool:
    return not path.exists()


def test_the_main_process_leads_its_own_session_and_is_what_was_reported(
    launches: Launches,
) -> None:
    job, frames = launches.launch(Argv(("sleep", "300")))
    pid, ticks, session, *_ = frames[-2].words
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    assert (stat[3], stat[19]) == (pid, ticks)
    assert session == pid
    assert Path(f"/proc/{pid}/cmdline").read_bytes() == b"sleep\x00300\x00"
    assert launches.main(job)[1:4] == [pid, ticks, session]


def test_a_job_has_nothing_but_dev_null_and_its_log(launches: Launches) -> None:
    job = launches.run("sleep", "300")
    links = {
        int(link.name): str(link.readlink())
        for link in Path(f"/proc/{launches.pid(job)}/fd").iterdir()
    }
    log = str(launches.directory(job) / "log")
    assert links == {0: "/dev/null", 1: log, 2: log}


def test_descriptors_that_lxc_attach_hands_on_do_not_reach_the_job(
    launches: Launches,
) -> None:
    """dash cannot name descriptors above 9, and is used only where there is no bash."""
    number = 7 if launches.shell.name == "dash" else 17
    spec = JobSpec(new_job_id("test"), Argv(("sleep", "300")))
    launches.jobs.append(spec.id)
    call = launch_call((), str(launches.state), spec, "{}", follow=False)
    reader, writer = os.pipe()
    # The number must be free only in the child: here it may be pytest's.
    renumber = f'exec "$@" {number}>&{writer} {writer}>&-'
    done = subprocess.run(
        ["bash", "-c", renumber, "bash", *launches.shell.words(call.words)],
        input=call.data,
        capture_output=True,
        pass_fds=(writer,),
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert b"launched" in done.stdout, done
    os.set_blocking(reader, False)
    assert os.read(reader, 1) == b"", "somebody still holds the inherited descriptor"
    os.close(reader)


def test_signals_are_at_their_defaults_but_for_hangup(launches: Launches) -> None:
    status = Path(f"/proc/{launches.pid(launches.run('sleep', '300'))}/status").read_text()
    ignored = int(re.search(r"^SigIgn:\s*(\S+)", status, re.MULTILINE)[1], 16)  # type: ignore[index]
    assert ignored == 1 << (signal.SIGHUP - 1)


def test_the_environment_is_built_from_nothing(launches: Launches) -> None:
    words = dict(
        line.partition("=")[::2] for line in launches.line("env").splitlines() if "=" in line
    )
    wanted = {"HOME": "/root", "USER": "root", "LOGNAME": "root", "LANG": "C.UTF-8"}
    assert {key: words.get(key) for key in wanted} == wanted
    assert words["PYTHONUNBUFFERED"] == "1"
    assert words["LAUNCHPAD_JOB_ID"].startswith("test-")
    shells_own = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert set(words) - shells_own == {
        *wanted,
        "SHELL",
        "PATH",
        "PYTHONUNBUFFERED",
        "LAUNCHPAD_JOB_ID",
    }


def test_the_umask_is_the_usual_one_and_the_records_are_private(launches: Launches) -> None:
    job, _ = launches.launch(ShellLine("umask; sleep 300"))
    wait_until(lambda: launches.log(job), what="output")
    assert launches.log(job).strip() in {"022", "0022"}
    for path in launches.directory(job).iterdir():
        assert path.lstat().st_mode & 0o077 == 0, path
    assert launches.directory(job).stat().st_mode & 0o777 == 0o700


def test_the_directory_is_the_home_unless_another_is_wanted(launches: Launches) -> None:
    assert launches.line("pwd") == "/root\n"
    (launches.home / "a b").mkdir()
    assert launches.line("pwd", cwd="~/a b") == "/root/a b\n"
    assert launches.line("pwd", cwd="/usr") == "/usr\n"


def test_values_reach_the_job_whole(launches: Launches) -> None:
    value = "a'b\"c\n$(x) `y` \\ ü\udcff "
    text = launches.line(
        "printf '<%s>' \"$KEY\" | od -An -tx1", environment=(("KEY", Secret(value)),)
    )
    assert (
        bytes.fromhex(text.replace("\n", ""))
        == b"<" + value.encode("utf-8", "surrogateescape") + b">"
    )


def test_values_stand_neither_in_files_nor_in_the_supervisor(launches: Launches) -> None:
    job = launches.run("sleep", "300", environment=(("KEY", Secret("s3cr3t-value")),))
    supervisor = launches.main(job)[7]
    for name in ("cmdline", "environ"):
        assert b"s3cr3t-value" not in Path(f"/proc/{supervisor}/{name}").read_bytes()
    for path in launches.state.rglob("*"):
        assert not path.is_file() or b"s3cr3t-value" not in path.read_bytes()
    assert b"s3cr3t-value" in Path(f"/proc/{launches.pid(job)}/environ").read_bytes()


@pytest.mark.parametrize(
    ("words", "options", "answer"),
    [
        (("no-such-program",), {}, ("not-found", 127, "no-such-program")),
        (("/no/such",), {}, ("not-found", 127, "/no/such")),
        (("/etc/passwd",), {}, ("not-executable", 126, "/etc/passwd")),
        (("/etc",), {}, ("is-directory", 126, "/etc")),
        (("true",), {"cwd": "/no such"}, ("directory", 125, "/no such")),
        (("true",), {"user": "nosuchuser"}, ("user", 125, "nosuchuser")),
        (("true",), {"log": "/no/such/log"}, ("log", 125, "/no/such/log")),
        (("true",), {"log": "/etc/passwd"}, ("log-exists", 125, "/etc/passwd")),
    ],
)
def test_what_cannot_start_is_told_and_leaves_nothing(
    launches: Launches,
    words: tuple[str, ...],
    options: dict[str, object],
    answer: tuple[str, int, str],
) -> None:
    assert launches.refused(*words, **options) == answer


def test_an_interpreter_that_does_not_exist_is_a_start_that_failed(launches: Launches) -> None:
    script = launches.home / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert launches.refused("/root/script") == ("exec", 126, "/root/script")


def test_a_script_without_a_first_line_runs_as_in_a_shell(launches: Launches) -> None:
    script = launches.home / "script"
    script.write_text("echo $1\n")
    script.chmod(0o755)
    job = launches.run("/root/script", "hello")
    assert launches.end(job) == "exited 0"
    assert launches.log(job) == "hello\n"


def test_a_program_whose_name_begins_with_a_dash_is_no_option(launches: Launches) -> None:
    script = launches.home / "-c"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    launches.profile.write_text("PATH=/root:$PATH\n")
    job = launches.run("-c", "echo no")
    assert launches.end(job) == "exited 0"
    assert launches.log(job) == "ran\n"


# dash and busybox take no functions of those names: a syntax error, which ends them.
_BAD_NAMES = "export() { :; }; cd() { false; }; exec() { false; }; printf() { :; }"
HONEST = {"exit 3": "profile-left", "exec true": "profile-left", "exec sleep 1000": "profile-left"}


@pytest.mark.parametrize(
    "profile",
    [
        "echo PID=1; printf '{\"pid\": 999}'; echo noise >&2",
        "set -e",
        "set -u; set -f; set -x",
        "set -- a b c; shift",
        "cd /tmp; umask 077; IFS=:",
        "alias exec=false; alias cd=false; alias sleep=false",
        _BAD_NAMES,
        "readonly TMOUT=1",
        "trap 'echo bye' EXIT; trap '' TERM",
        "sleep 300 & ",
        "read answer",
        "unset HOME PATH; PATH=/usr/bin:/bin",
        "exec >/dev/null 2>&1 3>&- 4>&- 5>&-",
        "if then fi",
        "return 7",
        *HONEST,
    ],
)
def test_hostile_profiles_give_a_right_start_or_an_honest_error(
    launches: Launches, profile: str
) -> None:
    launches.profile.write_text(profile + "\n")
    job, frames = launches.launch(Argv(("sh", "-c", "echo started; exit 7")))
    answer = frames[-2]
    if answer.name == "refused":
        assert profile in {*HONEST, "if then fi", _BAD_NAMES}, answer
        assert profile != _BAD_NAMES or launches.shell.name != "bash"
        assert answer.words[0] in {"profile-left", "shell"}
        assert not launches.directory(job).exists()
        assert not processes_of(job)
    else:
        assert profile not in HONEST, answer
        assert launches.end(job) == "exited 7"
        assert launches.log(job) == "started\n"


def test_a_profile_that_hangs_is_given_up_and_ended(
    launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launchpad.scripts.PROFILE_DEADLINE", 1)
    launches.profile.write_text("sleep 1000\n")
    assert launches.refused("true") == ("profile-hangs", 125, "1")
    launches.profile.write_text("")
    launches.profile.write_text("sleep 1000\n")
    assert launches.end(launches.run("true", login=False)) == "exited 0"


def test_the_profile_sets_what_the_job_sees_and_values_win(launches: Launches) -> None:
    launches.profile.write_text("export A=profile B=profile PYTHONUNBUFFERED=0\n")
    text = launches.line('echo "$A $B $PYTHONUNBUFFERED"', environment=(("B", Secret("given")),))
    assert text == "profile given 0\n"
    assert launches.line('echo "${A-unset}"', login=False) == "unset\n"


def test_a_name_that_the_shell_holds_read_only_is_refused(launches: Launches) -> None:
    launches.profile.write_text("readonly TMOUT=3\n")
    answer = launches.refused("true", environment=(("TMOUT", Secret("9")),))
    assert answer == ("environment", 125, "TMOUT")


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("exit 0", "exited 0"),
        ("exit 255", "exited 255"),
        ("exit 137", "exited 137"),
        ("kill -9 $$", "killed 9"),
        ("kill -11 $$", "killed 11"),
        ("kill -15 $$", "killed 15"),
        ("kill -USR1 $$", "killed 10"),
        ("sh -c 'kill -9 $$'; exit 137", "exited 137"),
    ],
)
def test_a_real_signal_is_told_from_an_exit_code(launches: Launches, line: str, end: str) -> None:
    job, _ = launches.launch(ShellLine(line), login=False)
    assert launches.end(job) == end


# busybox's own way to another user needs its programs where that user may look: tested in the lab.
@pytest.mark.parametrize("shell", ["bash", "dash"], indirect=True)
def test_another_user_keeps_the_pid_and_owns_the_log(launches: Launches) -> None:
    for path in (launches.place, *launches.place.parents):
        if path.stat().st_mode & 0o001 == 0 and str(path).startswith("/tmp/pytest"):
            path.chmod(path.stat().st_mode | 0o001)
    line = 'id -un; echo "$HOME $USER"; echo err >>/dev/stderr; exec sleep 300'
    job, frames = launches.launch(ShellLine(line), user="daemon")
    assert frames[-2].name == "launched", frames
    wait_until(lambda: launches.log(job).count("\n") == 3, what="three lines")
    name, rest, error = launches.log(job).splitlines()
    assert (name, error) == ("daemon", "err")
    assert rest.endswith(" daemon")
    status = Path(f"/proc/{launches.pid(job)}/status").read_text()
    assert re.search(r"^Uid:\s+1\s+1\s+1\s+1$", status, re.MULTILINE)
    assert frames[-2].words[0] == str(launches.pid(job))


def test_a_log_elsewhere_is_new_or_appended_to_and_never_a_planted_link(
    launches: Launches,
) -> None:
    log = launches.home / "run.log"
    job = launches.run("echo", "one", log="~/run.log")
    launches.end(job)
    assert log.read_text() == "one\n"
    assert launches.refused("echo", "two", log="~/run.log")[0] == "log-exists"
    launches.end(launches.run("echo", "two", log="~/run.log", append=True))
    assert log.read_text() == "one\ntwo\n"
    (launches.home / "link").symlink_to("/root/victim")
    assert launches.refused("echo", "x", log="~/link")[0] in {"log-exists", "log"}
    assert not (launches.home / "victim").exists()


def test_a_full_disk_is_told_and_leaves_nothing(launches: Launches) -> None:
    launches.state.mkdir(mode=0o700)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "nr_inodes=6,mode=700", "none", launches.state], check=True
    )
    try:
        reason, code, detail = launches.refused("true")
    finally:
        subprocess.run(["umount", "-l", launches.state], check=True)
    assert (reason, code) == ("state-directory", 125)
    assert "space" in detail


def test_the_end_survives_a_disk_that_became_full(launches: Launches) -> None:
    launches.state.mkdir(mode=0o700)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "none", launches.state], check=True
    )
    try:
        job = launches.run("sh", "-c", "dd if=/dev/zero bs=1024 count=4096; exit 3")
        assert launches.end(job) == "exited 3"
    finally:
        subprocess.run(["umount", "-l", launches.state], check=True)


def test_a_state_directory_of_somebody_else_is_refused(launches: Launches) -> None:
    launches.state.mkdir()
    os.chown(launches.state, 1, 1)
    assert launches.refused("true")[0] == "state-owner"
    assert not list(launches.state.iterdir())
    os.chown(launches.state, 0, 0)
    elsewhere = launches.place / "elsewhere"
    elsewhere.mkdir()
    (launches.state / "jobs").symlink_to(elsewhere)
    assert launches.refused("true")[0] == "state-owner"
    assert not list(elsewhere.iterdir())


def test_one_key_starts_one_job(launches: Launches) -> None:
    job, frames = launches.launch(Argv(("sleep", "300")), idempotency_key="exp 42")
    assert frames[-2].name == "launched"
    other, frames = launches.launch(Argv(("sleep", "300")), idempotency_key="exp 42")
    assert (frames[-2].name, frames[-2].words) == ("existing", (job.text,))
    assert not launches.directory(other).exists()
    _, frames = launches.launch(Argv(("sleep", "300")), idempotency_key="exp 43")
    assert frames[-2].name == "launched"


def test_a_refused_start_gives_its_key_back(launches: Launches) -> None:
    assert launches.refused("no-such", idempotency_key="k")[0] == "not-found"
    assert not list((launches.state / "keys").iterdir())
    launches.run("true", idempotency_key="k")


def lookup(launches: Launches, job: JobId) -> list[Frame]:
    call = remote_call(
        (), ("common", "members", "facts", "lookup"), [job.text, str(launches.state), "5"]
    )
    return launches.call(call.words, call.data, call.marker)


def test_a_lookup_finds_the_job_that_was_started(launches: Launches) -> None:
    job = launches.run("sleep", "300")
    names = [frame.name for frame in lookup(launches, job)]
    assert "job" in names
    assert "absent" not in names


def test_a_start_that_was_looked_up_too_early_is_forbidden_for_ever(launches: Launches) -> None:
    spec = JobSpec(new_job_id("test"), Argv(("sleep", "300")))
    launches.jobs.append(spec.id)
    assert [frame.name for frame in lookup(launches, spec.id)] == ["begin", "absent", "done"]
    call = launch_call((), str(launches.state), spec, "{}", follow=False)
    frames = launches.call(call.words, call.data, call.marker)
    assert (frames[-2].name, frames[-2].words[0]) == ("refused", "forbidden")
    assert not launches.directory(spec.id).exists()
    assert not processes_of(spec.id)


@pytest.mark.parametrize("cut", [0, 1, 100, -1, -5])
def test_a_script_that_was_cut_off_on_its_way_does_nothing(launches: Launches, cut: int) -> None:
    spec = JobSpec(new_job_id("test"), Argv(("touch", f"{launches.place}/ran")))
    call = launch_call((), str(launches.state), spec, "{}", follow=False)
    size = int(re.search(r"bs=([0-9]+)", " ".join(call.words))[1])  # type: ignore[index]
    data = call.data[: size + cut if cut <= 0 else cut]
    subprocess.run(
        launches.shell.words(call.words), input=data, capture_output=True, timeout=30, check=False
    )
    assert not launches.state.exists()


@pytest.mark.parametrize("left", ["python3", "perl", "nohup"])
def test_without_setsid_something_else_detaches_and_says_so(
    launches: Launches, left: str, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    gone = {"setsid", "python3", "perl", "nohup"} - {left}
    for program in launches.shell.path.iterdir():
        if program.name not in gone and not (
            program.name.startswith(("python", "pypy")) and left != "python3"
        ):
            (bare / program.name).symlink_to(
                program.resolve() if launches.shell.name != "busybox" else program.readlink()
            )
    if not (bare / left).exists():
        (bare / left).symlink_to(Path("/usr/bin") / left)
    launches.shell = type(launches.shell)(launches.shell.name, bare)
    job, frames = launches.launch(Argv(("sleep", "300")), login=False)
    frame = frames[-2]
    assert frame.name == "launched", frames
    if launches.shell.name == "busybox":
        # Debian's busybox takes its own setsid, whatever PATH holds.
        assert frame.words[-1] == "setsid"
        return
    assert frame.words[-1] == ("nohup" if left == "nohup" else "setsid")
    assert left.encode() in frame.payload or left == "nohup"
    if left != "nohup":
        assert frame.words[2] == frame.words[0]
    os.kill(launches.pid(job), signal.SIGTERM)
    assert launches.end(job) == "killed 15"


def test_tmux_pane(launches: Launches) -> None:
    if launches.shell.name == "busybox":
        job, frames = launches.launch(Argv(("sleep", "300")), launcher=Launcher.TMUX)
        assert frames[-2].words[-1] == "setsid"
        assert frames[-2].payload.endswith(b"log\nno tmux in the container")
        return
    line = 'tty; read word; echo "got $word"; exec sleep 300'
    job, frames = launches.launch(ShellLine(line), launcher=Launcher.TMUX, login=False)
    assert frames[-2].words[-1] == "tmux", frames
    socket = str(launches.directory(job) / "tmux")
    subprocess.run(["tmux", "-S", socket, "send-keys", "-t", "job:", "hello", "Enter"], check=True)
    wait_until(lambda: "got hello" in launches.log(job), what="what was typed")
    assert launches.log(job).startswith("/dev/pts/")

    def interrupted() -> bool:
        subprocess.run(
            ["tmux", "-S", socket, "send-keys", "-t", "job:", "C-c"],
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return bool(list(launches.directory(job).glob("end,1,*")))

    wait_until(interrupted, what="Ctrl-C has reached the job")
    assert launches.end(job) == "exited 130"
