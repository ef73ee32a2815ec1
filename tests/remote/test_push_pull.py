"""push and pull against the real scripts, under each shell and its own tar."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from launchpad.archive import Kind, Member, header, padding
from launchpad.errors import ClientError, ContainerError, LaunchpadError
from launchpad.frames import parse_frames
from launchpad.launcher.packing import Packer
from launchpad.launcher.transfer import Pull, Push, Transferred, pull_over, push_over
from launchpad.scripts import RemoteCall, remote_call
from launchpad.target import ThisMachine
from support.shells import make_shell
from support.trees import Directory, look, make, trees
from support.userland import userland_contact
from support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.shells import Shell, ShellName

HERE = ThisMachine()


def push(
    shell: Shell, source: Path, path: Path | str, *excludes: str, gitignore: bool = True
) -> Transferred:
    request = Push(source, HERE, str(path), excludes=excludes, gitignore=gitignore)
    with closing(userland_contact(shell)) as contact:
        return push_over(contact, request)


def pull(shell: Shell, path: Path | str, destination: Path, *excludes: str) -> Transferred:
    with closing(userland_contact(shell)) as contact:
        return pull_over(contact, Pull(HERE, str(path), destination, excludes=excludes))


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@contextmanager
def mounted(place: Path, options: str = "size=50m") -> Iterator[None]:
    """A file system of its own at ``place``."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], check=True)
    try:
        yield
    finally:
        # Busy for as long as the last process of a push is about to go.
        words = ["umount", str(place)]
        wait_until(
            lambda: subprocess.run(words, capture_output=True, check=False).returncode == 0,
            what="unmounted",
        )


def files(found: dict[bytes, tuple[object, ...]]) -> dict[bytes, tuple[object, ...]]:
    return {name: entry for name, entry in found.items() if entry[0] != "directory"}


def names_in(path: Path) -> list[str]:
    return sorted(str(each.relative_to(path)) for each in path.rglob("*"))


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(tree=trees())
def test_any_tree_is_the_same_after_push_and_pull(shell: Shell, tree: Directory) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        make(tree, place / "source")
        before = look(place / "source")
        push(shell, place / "source", place / "there/is/none/yet", gitignore=False)
        assert look(place / "there/is/none/yet") == before
        pull(shell, place / "there/is/none/yet", place / "back")
        assert look(place / "back") == before
        # Over what is there already: each file is replaced by itself.
        push(shell, place / "source", place / "back", gitignore=False)
        assert files(look(place / "back")) == files(before)
        assert [each.name for each in (place / "there/is/none").iterdir()] == ["yet"]


def test_a_directory_that_exists_keeps_what_it_has_besides(shell: Shell, tmp_path: Path) -> None:
    source, there = tmp_path / "source", tmp_path / "there"
    put(source / "a/new", "new")
    put(source / "a/both", "newer")
    put(source / "b/c/deep", "deep")
    put(there / "a/old", "old")
    put(there / "a/both", "older")
    put(there / "z", "z")
    there.chmod(0o711)
    with (there / "a/both").open() as reader:
        done = push(shell, source, f"{there}/")
        # Replaced, not written into: whoever has it open still reads the old one.
        assert reader.read() == "older"
    assert names_in(there) == ["a", "a/both", "a/new", "a/old", "b", "b/c", "b/c/deep", "z"]
    assert (there / "a/both").read_text() == "newer"
    assert there.stat().st_mode & 0o777 == 0o711
    assert done.tally.files == 3


def test_a_file_gets_the_name_that_was_asked_for(shell: Shell, tmp_path: Path) -> None:
    source = put(tmp_path / "source.bin", "text")
    source.chmod(0o640)
    place = tmp_path / "new/deep/-name"
    push(shell, source, place)
    assert place.read_text() == "text"
    assert place.stat().st_mode & 0o777 == 0o640
    put(source, "other")
    push(shell, source, place)
    assert place.read_text() == "other"
    pull(shell, place, tmp_path / "way/back")
    assert (tmp_path / "way/back").read_text() == "other"
    assert names_in(tmp_path / "new") == ["deep", "deep/-name"]


def test_links_that_were_named_are_followed_and_those_inside_stay(
    shell: Shell, tmp_path: Path
) -> None:
    put(tmp_path / "real/file", "f")
    (tmp_path / "real/link").symlink_to("file")
    (tmp_path / "source").symlink_to("real")
    (tmp_path / "named").symlink_to("real/file")
    put(tmp_path / "target/kept", "k")
    (tmp_path / "there").symlink_to("target")
    push(shell, tmp_path / "source", tmp_path / "there")
    assert names_in(tmp_path / "target") == ["file", "kept", "link"]
    assert (tmp_path / "target/link").readlink() == Path("file")
    push(shell, tmp_path / "named", tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "f"
    assert not (tmp_path / "copy").is_symlink()
    pull(shell, tmp_path / "source", tmp_path / "back")
    assert (tmp_path / "back/link").readlink() == Path("file")
    pull(shell, tmp_path / "named", tmp_path / "single")
    assert (tmp_path / "single").read_text() == "f"
    assert not (tmp_path / "single").is_symlink()


@pytest.mark.parametrize("obstacle", ["file", "link", "link to a directory"])
def test_a_directory_takes_no_other_things_place(
    shell: Shell, tmp_path: Path, obstacle: str
) -> None:
    put(tmp_path / "source/a/sub/file")
    put(tmp_path / "source/first")
    there = tmp_path / "there"
    put(there / "a/kept")
    (tmp_path / "elsewhere").mkdir()
    match obstacle:
        case "file":
            put(there / "a/sub")
        case "link":
            (there / "a/sub").symlink_to("nowhere")
        case _:
            (there / "a/sub").symlink_to(tmp_path / "elsewhere")
    before = look(there)
    with pytest.raises(ContainerError, match="a/sub is a link or a file"):
        push(shell, tmp_path / "source", there)
    after = look(there)
    # The staging directory came and went.
    assert {k: v for k, v in after.items() if k} == {k: v for k, v in before.items() if k}
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_file_takes_no_directorys_place(shell: Shell, tmp_path: Path) -> None:
    put(tmp_path / "source/a/file")
    put(tmp_path / "there/a/file/inside")
    with pytest.raises(ContainerError, match=r"a/file/ is a directory"):
        push(shell, tmp_path / "source", tmp_path / "there")
    assert names_in(tmp_path / "there") == ["a", "a/file", "a/file/inside"]
    with pytest.raises(ContainerError, match="is a directory") as caught:
        push(shell, tmp_path / "source/a/file", tmp_path / "there/a/")
    assert caught.value.advice.endswith("there/a/file")
    with pytest.raises(ClientError, match="is a directory"):
        pull(shell, tmp_path / "source/a/file", tmp_path / "there")
    with pytest.raises(ContainerError, match="not a directory"):
        push(shell, tmp_path / "source", tmp_path / "there/a/file/inside")
    with pytest.raises(ContainerError, match="not a directory"):
        push(shell, tmp_path / "source", tmp_path / "there/a/file/inside/deeper")


def test_what_cannot_be_had_is_said(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(ContainerError, match="there is no"):
        pull(shell, tmp_path / "nothing", tmp_path / "back")
    with pytest.raises(ContainerError, match="neither a file nor a directory"):
        pull(shell, "/dev/null", tmp_path / "back")
    with pytest.raises(ClientError, match="there is no"):
        push(shell, tmp_path / "nothing", tmp_path / "there")
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("name", ["bash", "dash"])
def test_a_container_without_tar_is_told(name: ShellName, tmp_path: Path) -> None:
    shell = make_shell(name, tmp_path / "rich")
    (shell.path / "tar").unlink()
    with pytest.raises(ContainerError, match="no tar"):
        push(shell, tmp_path, tmp_path / "never")


def test_special_files_are_left_out_and_named(shell: Shell, tmp_path: Path) -> None:
    put(tmp_path / "source/file")
    os.mkfifo(tmp_path / "source/fifo")
    done = push(shell, tmp_path / "source", tmp_path / "there")
    assert names_in(tmp_path / "there") == ["file"]
    assert "fifo" in " ".join(done.remarks)
    done = pull(shell, tmp_path / "source", tmp_path / "back")
    assert names_in(tmp_path / "back") == ["file"]
    assert "fifo" in " ".join(done.remarks)


def test_hard_links_come_as_files_with_the_same_contents(shell: Shell, tmp_path: Path) -> None:
    put(tmp_path / "source/a", "same")
    (tmp_path / "source/b/c").parent.mkdir()
    (tmp_path / "source/b/c").hardlink_to(tmp_path / "source/a")
    push(shell, tmp_path / "source", tmp_path / "there")
    pull(shell, tmp_path / "source", tmp_path / "back")
    pull(shell, tmp_path / "source", tmp_path / "back")
    for copy in ("there", "back"):
        assert names_in(tmp_path / copy) == ["a", "b", "b/c"]
        assert (tmp_path / copy / "b/c").read_text() == "same"


def test_set_id_bits_stay_with_the_owner_they_were_given_to(shell: Shell, tmp_path: Path) -> None:
    put(tmp_path / "source/tool").chmod(0o6755)
    (tmp_path / "source").chmod(0o3775)
    push(shell, tmp_path / "source", tmp_path / "there")
    pull(shell, tmp_path / "source", tmp_path / "back")
    for copy in ("there", "back"):
        assert (tmp_path / copy / "tool").stat().st_mode & 0o7777 == 0o755
        assert (tmp_path / copy).stat().st_mode & 0o7777 == 0o775


def test_excludes_are_heeded_on_the_way_back_too(shell: Shell, tmp_path: Path) -> None:
    for name in (
        "keep.txt",
        "a/model.pt",
        "a/b.txt",
        "checkpoints/one",
        "a/checkpoints/two",
        "x/y/z",
    ):
        put(tmp_path / "source" / name)
    wanted = ["a", "a/b.txt", "keep.txt", "x"]
    excludes = ("checkpoints", "*.pt", "x/y/")
    pull(shell, tmp_path / "source", tmp_path / "back", *excludes)
    assert names_in(tmp_path / "back") == wanted
    push(shell, tmp_path / "source", tmp_path / "there", *excludes)
    assert names_in(tmp_path / "there") == wanted
    pull(shell, tmp_path / "source", tmp_path / "some", "*.pt", "!model.pt", "checkpoints/")
    assert names_in(tmp_path / "some") == [
        "a",
        "a/b.txt",
        "a/model.pt",
        "keep.txt",
        "x",
        "x/y",
        "x/y/z",
    ]


# What happens when it does not come to its end.


def call_for(path: Path, kind: str = "directory") -> RemoteCall:
    return remote_call((), ("common", "user", "files", "push"), [str(path), "", kind])


def begin(shell: Shell, call: RemoteCall, data: bytes | None = None) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        shell.words(call.words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin
    process.stdin.write(data or call.data)
    process.stdin.flush()
    return process


def archive_of(source: Path) -> bytes:
    return b"".join(Packer(source, None).pieces())


def test_an_archive_that_is_cut_off_anywhere_changes_nothing(shell: Shell, tmp_path: Path) -> None:
    put(tmp_path / "source/a/file", "new")
    put(tmp_path / "source/b", "new" * 1000)
    put(tmp_path / "there/b", "old")
    whole = archive_of(tmp_path / "source")
    ends = [size for size in range(0, len(whole), 512) if whole[size - 512 : size].strip(b"\0")]
    assert len(ends) > 10
    for size in [*ends, 100, 700]:
        call = call_for(tmp_path / "there")
        process = begin(shell, call)
        out, _ = process.communicate(whole[:size], timeout=30)
        frames = parse_frames(call.marker, out)
        if "placed" in [frame.name for frame in frames]:
            # Nothing but zeros was missing.
            assert whole[size:].strip(b"\0") == b""
            assert (tmp_path / "there/a/file").read_text() == "new"
            shutil.rmtree(tmp_path / "there/a")
            put(tmp_path / "there/b", "old")
        else:
            assert frames[-2].name == "failed"
            assert names_in(tmp_path / "there") == ["b"]
            assert (tmp_path / "there/b").read_text() == "old"


def test_a_push_that_is_killed_leaves_no_half_file(shell: Shell, tmp_path: Path) -> None:
    put(tmp_path / "there/b", "old")
    process = begin(shell, call_for(tmp_path / "there"))
    assert process.stdin
    assert process.stdout
    name = b"tree/b"
    process.stdin.write(header(Member(Kind.DIRECTORY, b"tree", mode=0o755)))
    process.stdin.write(header(Member(Kind.FILE, name, 100_000)) + b"n" * 60_000)
    process.stdin.flush()
    wait_until(lambda: list((tmp_path / "there").glob(".launchpad-push-*/tree/b")), what="begun")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert (tmp_path / "there/b").read_text() == "old"
    (left,) = (tmp_path / "there").glob(".launchpad-*")
    assert left.stat().st_mode & 0o777 == 0o700
    # What it left is cleared up by a later push, once it is old enough to be nobody's.
    put(tmp_path / "source/c")
    push(shell, tmp_path / "source", tmp_path / "there")
    assert left.exists()
    os.utime(left, (1, 1))
    push(shell, tmp_path / "source", tmp_path / "there")
    assert names_in(tmp_path / "there") == ["b", "c"]


def test_who_owns_the_place_cannot_put_words_of_their_own_into_a_push(
    shell: Shell, tmp_path: Path
) -> None:
    """They may rename what is staged, and put another directory under its name."""
    put(tmp_path / "source/a/file", "new")
    (tmp_path / "source/a").chmod(0o500)
    there, marker = tmp_path / "there", tmp_path / "was-here"
    there.mkdir()
    call = call_for(there)
    process = begin(shell, call)
    (staging,) = wait_until(lambda: list(there.glob(".launchpad-push-*/pid")), what="begun")
    name = staging.parent.name
    staging.parent.rename(there / "moved-away")
    put(there / name / "modes", f"0700 $(touch {marker})")
    put(there / name / "tree/evil")
    out, _ = process.communicate(archive_of(tmp_path / "source"), timeout=30)
    assert not marker.exists()
    assert parse_frames(call.marker, out)[-2].name == "placed"
    assert (there / "a/file").read_text() == "new"
    assert not (there / "evil").exists()


def test_a_stream_that_stands_still_is_given_up(shell: Shell, tmp_path: Path) -> None:
    call = call_for(tmp_path / "there")
    script = call.data.replace(b"\npatience=60\n", b"\npatience=01\n")
    assert script != call.data
    process = begin(shell, call, script)
    assert process.stdin
    assert process.stdout
    process.stdin.write(header(Member(Kind.DIRECTORY, b"tree")))
    process.stdin.flush()
    # Nobody closes stdin: the line was lost without a word.
    assert process.wait(20) != 0
    frames = parse_frames(call.marker, process.stdout.read())
    assert [frame.name for frame in frames][-2:] == ["failed", "done"]
    assert names_in(tmp_path) == []
    process.communicate()


def test_nobody_waits_for_a_shell_that_was_killed(shell: Shell, tmp_path: Path) -> None:
    call = call_for(tmp_path / "there")
    process = begin(shell, call, call.data.replace(b"\npatience=60\n", b"\npatience=01\n"))
    assert process.stdin
    process.stdin.write(header(Member(Kind.DIRECTORY, b"tree", mode=0o755)))
    process.stdin.flush()
    # Not "tree": GNU tar makes nothing before it has read a whole record.
    wait_until(lambda: list(tmp_path.glob(".launchpad-push-*/pid")), what="begun")
    os.kill(process.pid, signal.SIGKILL)
    # stdin stays open: the line was lost without a word, and the shell is gone as well.
    wait_until(lambda: not session_members(process.pid), what="no process is left")
    process.communicate()
    assert not (tmp_path / "there").exists()


def test_nothing_is_left_running_or_lying_about(shell: Shell, tmp_path: Path) -> None:
    put(tmp_path / "source/a")
    call = call_for(tmp_path / "there")
    process = begin(shell, call)
    process.communicate(archive_of(tmp_path / "source"), timeout=30)
    wait_until(lambda: not session_members(process.pid), what="no process is left")
    assert names_in(tmp_path) == ["source", "source/a", "there", "there/a"]


def session_members(session: int) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if fields[3] == str(session) and fields[0] not in "ZX":
            found.append(entry.name)
    return found


def test_a_full_disk_in_the_container_changes_nothing(shell: Shell, tmp_path: Path) -> None:
    there = tmp_path / "small"
    there.mkdir()
    put(tmp_path / "source/big", "x" * 3_000_000)
    put(tmp_path / "source/a")
    with mounted(there, "size=1m"):
        put(there / "a", "old")
        with pytest.raises(ContainerError, match=r"tar in .* failed") as caught:
            push(shell, tmp_path / "source", there)
        assert "o space left" in caught.value.details
        assert names_in(there) == ["a"]
        assert (there / "a").read_text() == "old"


def test_directories_below_may_be_other_file_systems(shell: Shell, tmp_path: Path) -> None:
    there = tmp_path / "there"
    odd = there / "a b\\c/mount"
    odd.mkdir(parents=True)
    put(tmp_path / "source/a b\\c/mount/deep/file", "new")
    put(tmp_path / "source/a b\\c/mount/file", "new")
    put(tmp_path / "source/top", "new")
    with mounted(odd):
        put(odd / "deep/kept", "kept")
        put(odd / "file", "old")
        with (odd / "file").open() as reader:
            push(shell, tmp_path / "source", there)
            assert reader.read() == "old"
        assert names_in(odd) == ["deep", "deep/file", "deep/kept", "file"]
        assert (odd / "file").read_text() == "new"
        assert sorted(each.name for each in there.iterdir()) == ["a b\\c", "top"]


def test_a_file_that_shrinks_while_it_is_read_stops_the_push(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "source/a", "x" * 600_000)
    put(tmp_path / "source/z")

    def shrink(_done: int, _total: int | None) -> None:
        os.truncate(tmp_path / "source/a", 10)

    with closing(userland_contact(shell)) as contact:
        request = Push(tmp_path / "source", HERE, str(tmp_path / "there"), on_progress=shrink)
        with pytest.raises(ClientError, match="became shorter"):
            push_over(contact, request)
    wait_until(lambda: list(tmp_path.iterdir()) == [tmp_path / "source"], what="cleared up")


def test_refusals_are_errors_of_a_layer(shell: Shell, tmp_path: Path) -> None:
    with closing(userland_contact(shell)) as contact:
        request = Push(tmp_path, HERE, str(tmp_path / "there"), user="nobody-at-all")
        with pytest.raises(LaunchpadError, match="no user nobody-at-all"):
            push_over(contact, request)
    assert padding(512) == b""
