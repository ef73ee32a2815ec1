"""Nothing that a container sends is written anywhere but below the destination."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from launchpad.archive import Kind, Member
from launchpad.errors import ClientError, ContainerError
from launchpad.launcher import unpacking
from launchpad.launcher.placing import NewFile
from launchpad.launcher.unpacking import Unpacker, leads_out
from support.trees import look

if TYPE_CHECKING:
    from collections.abc import Iterator

Item = Member | bytes


def unpack(destination: Path, *items: Item, directory: bool = True) -> Unpacker:
    with Unpacker(destination, directory=directory) as unpacker:
        for item in items:
            unpacker.take(item)
        unpacker.finish()
    return unpacker


def file(name: bytes, data: bytes = b"evil", mode: int = 0o644) -> tuple[Item, ...]:
    return Member(Kind.FILE, name, len(data), mode), *([data] if data else [])


def folder(name: bytes, mode: int = 0o755) -> Member:
    return Member(Kind.DIRECTORY, name, mode=mode)


def link(name: bytes, target: bytes) -> Member:
    return Member(Kind.SYMLINK, name, link=target)


def hard(name: bytes, target: bytes) -> Member:
    return Member(Kind.HARD_LINK, name, link=target)


ROOT = folder(b"./")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A directory beside the destination that nobody may touch."""
    place = tmp_path / "outside"
    (place / "sub").mkdir(parents=True)
    (place / "secret").write_text("mine")
    before = look(place)
    yield place
    assert look(place) == before
    assert sorted(each.name for each in tmp_path.iterdir()) in (["dest", "outside"], ["outside"])


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([ROOT, *file(b"/tmp/launchpad-evil")], id="absolute"),
        pytest.param([ROOT, *file(b"../outside/secret")], id="dot dot"),
        pytest.param([ROOT, *file(b"a/../../outside/new")], id="dot dot in the middle"),
        pytest.param([folder(b"../outside/new")], id="a directory outside"),
        pytest.param([ROOT, link(b"../outside/new", b"x")], id="a link outside"),
        pytest.param([ROOT, hard(b"x", b"../outside/secret")], id="a hard link to outside"),
        pytest.param([ROOT, hard(b"x", b"/etc/passwd")], id="a hard link to an absolute path"),
        pytest.param([ROOT, hard(b"x", b"nothing")], id="a hard link to nothing"),
        pytest.param([ROOT, folder(b"d"), hard(b"x", b"d")], id="a hard link to a directory"),
        pytest.param([ROOT, hard(b"x", b".")], id="a hard link to the root"),
        pytest.param([ROOT, link(b"x", b"")], id="an empty link"),
        pytest.param([ROOT, link(b"x", b"a\0b")], id="a link with NUL"),
        pytest.param([*file(b".")], id="a file for the directory"),
        pytest.param([ROOT, folder(b"/".join([b"d"] * 1000))], id="too deep"),
    ],
)
def test_what_leads_out_is_refused(tmp_path: Path, outside: Path, items: list[Item]) -> None:
    with pytest.raises(ContainerError, match="no honest tar"):
        unpack(tmp_path / "dest", *items)


@pytest.mark.parametrize("target", [b"../outside", b"../outside/sub", b"{outside}"])
@pytest.mark.parametrize("through", ["file", "directory", "deep", "link", "hard link"])
def test_no_link_that_was_sent_leads_out(
    tmp_path: Path, outside: Path, target: bytes, through: str
) -> None:
    target = target.replace(b"{outside}", os.fsencode(outside))
    evil: dict[str, list[Item]] = {
        "file": [*file(b"x/secret")],
        "directory": [folder(b"x/new"), *file(b"x/new/y")],
        "deep": [*file(b"x/a/b/c")],
        "link": [link(b"x/new", b"y")],
        "hard link": [*file(b"y"), hard(b"x/new", b"y")],
    }
    with pytest.raises(ClientError, match="is a link or a file here"):
        unpack(tmp_path / "dest", ROOT, link(b"x", target), *evil[through])


def test_a_hard_link_reads_nothing_through_a_link(tmp_path: Path, outside: Path) -> None:
    with pytest.raises((ClientError, ContainerError)):
        unpack(tmp_path / "dest", ROOT, link(b"x", b"../outside"), hard(b"y", b"x/secret"))
    # A hard link to a link is another link, not a name of what that leads to.
    unpack(tmp_path / "dest", ROOT, link(b"z", b"../outside/secret"), hard(b"w", b"z"))
    assert (tmp_path / "dest/w").is_symlink()


def test_a_directory_that_is_a_link_here_is_not_followed(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "dest").mkdir()
    (tmp_path / "dest/data").symlink_to(outside)
    with pytest.raises(ClientError, match="is a link or a file here"):
        unpack(tmp_path / "dest", ROOT, folder(b"data"), *file(b"data/secret"))
    with pytest.raises(ClientError, match="is a link or a file here"):
        unpack(tmp_path / "dest", ROOT, *file(b"data/secret"))


def test_a_file_replaces_a_link_and_not_what_it_leads_to(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "dest").mkdir()
    (tmp_path / "dest/x").symlink_to(outside / "secret")
    (tmp_path / "dest/y").hardlink_to(outside / "secret")
    unpack(tmp_path / "dest", ROOT, *file(b"x", b"new"), *file(b"y", b"new"))
    assert not (tmp_path / "dest/x").is_symlink()
    assert (tmp_path / "dest/x").read_text() == (tmp_path / "dest/y").read_text() == "new"


def test_links_out_are_kept_and_told(tmp_path: Path, outside: Path) -> None:
    done = unpack(
        tmp_path / "dest",
        ROOT,
        link(b"a", b"../outside"),
        link(b"b", b"/etc"),
        link(b"c", b"d/../e"),
        folder(b"d"),
        link(b"d/f", b"../c"),
        link(b"d/g", b"../../x\x1b[31m"),
    )
    assert (tmp_path / "dest/a").readlink() == Path("../outside")
    assert done.tally.outward.lines() == [
        "a -> ../outside",
        "b -> /etc",
        r"d/g -> ../../x\x1b[31m",
    ]


@pytest.mark.parametrize(
    ("parts", "target", "out"),
    [
        ((b"a",), b"b", False),
        ((b"a",), b"..", True),
        ((b"a", b"b"), b"..", False),
        ((b"a", b"b"), b"../c/../../d", True),
        ((b"a", b"b"), b"x/../../y", False),
        ((b"a",), b"/a", True),
        ((b"a",), b"./././b", False),
    ],
)
def test_where_a_link_leads(parts: tuple[bytes, ...], target: bytes, *, out: bool) -> None:
    assert leads_out(parts, target) is out


@pytest.mark.parametrize("kind", [Kind.CHARACTER_DEVICE, Kind.BLOCK_DEVICE, Kind.FIFO])
def test_devices_and_fifos_are_left_out(tmp_path: Path, kind: Kind) -> None:
    done = unpack(tmp_path / "dest", ROOT, Member(kind, b"x", mode=0o666), *file(b"y"))
    assert [each.name for each in (tmp_path / "dest").iterdir()] == ["y"]
    assert done.tally.left_out.count == 1


def test_set_id_and_sticky_bits_are_taken_off(tmp_path: Path) -> None:
    unpack(tmp_path / "dest", folder(b"./", 0o7777), *file(b"x", mode=0o6755))
    assert (tmp_path / "dest/x").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "dest").stat().st_mode & 0o7777 == 0o777


def test_for_one_file_one_file_is_taken(tmp_path: Path, outside: Path) -> None:
    unpack(tmp_path / "dest", *file(b"whatever/../it/says", b"fine"), directory=False)
    assert (tmp_path / "dest").read_text() == "fine"
    for items in ([*file(b"a"), *file(b"b")], [folder(b"a")], [link(b"a", b"/etc/passwd")]):
        with pytest.raises(ContainerError, match="no honest tar"):
            unpack(tmp_path / "dest", *items, directory=False)


@pytest.mark.parametrize("nameless", [True, False])
def test_a_file_that_does_not_come_to_its_end_is_never_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, nameless: bool
) -> None:
    monkeypatch.setattr(unpacking, "can_be_nameless", lambda _directory: nameless)
    (tmp_path / "dest").mkdir()
    (tmp_path / "dest/x").write_text("old")
    with Unpacker(tmp_path / "dest", directory=True) as unpacker:
        unpacker.take(ROOT)
        unpacker.take(Member(Kind.FILE, b"x", 1000))
        unpacker.take(b"n" * 999)
        assert (tmp_path / "dest/x").read_text() == "old"
        assert len(list((tmp_path / "dest").iterdir())) == (1 if nameless else 2)
    assert (tmp_path / "dest/x").read_text() == "old"
    assert len(list((tmp_path / "dest").iterdir())) == 1
    unpack(tmp_path / "dest", ROOT, *file(b"x", b"new"), *file(b"y", b"new"))
    assert (tmp_path / "dest/x").read_text() == (tmp_path / "dest/y").read_text() == "new"
    assert len(list((tmp_path / "dest").iterdir())) == 2


def test_this_file_system_makes_files_without_a_name(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        unnamed = NewFile(directory, nameless=True)
        assert list(tmp_path.iterdir()) == []
        unnamed.publish(b"x")
    finally:
        os.close(directory)
    assert [each.name for each in tmp_path.iterdir()] == ["x"]


@contextmanager
def small_disk(place: Path, options: str) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_disk_is_not_filled_to_its_last_byte(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "size=40m") as place:
        with pytest.raises(ClientError, match="no room"):
            unpack(place / "dest", ROOT, Member(Kind.FILE, b"x", 2**50))
        # No end of the flood.
        flood = (item for number in range(1000) for item in file(b"%d" % number, bytes(2**20)))
        with pytest.raises(ClientError, match="no room"):
            unpack(place / "dest", ROOT, *flood)
        room = os.statvfs(place)
        assert room.f_bavail * room.f_frsize >= 40 * 2**20 // 20


def test_the_files_of_a_disk_are_not_used_up(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "size=40m,nr_inodes=5000") as place:
        with pytest.raises(ClientError, match="no room"):
            unpack(place / "dest", ROOT, *(folder(b"%d" % number) for number in range(10_000)))
        assert os.statvfs(place).f_favail >= 200


def test_remarks_about_a_flood_take_no_memory(tmp_path: Path) -> None:
    with Unpacker(tmp_path / "dest", directory=True) as unpacker:
        unpacker.take(ROOT)
        for number in range(5000):
            unpacker.take(Member(Kind.FIFO, b"%d" % number))
        assert unpacker.tally.left_out.count == 5000
        assert len(unpacker.tally.left_out.lines()) == 11


def test_modes_that_forbid_writing_come_last(tmp_path: Path) -> None:
    unpack(
        tmp_path / "dest",
        folder(b"./", 0o555),
        folder(b"a", 0o500),
        *file(b"a/x"),
        folder(b"a/b", 0),
        *file(b"z"),
    )
    modes = {name: entry[1] for name, entry in look(tmp_path / "dest").items()}
    assert modes == {b"": 0o555, b"/a": 0o500, b"/a/x": 0o644, b"/a/b": 0, b"/z": 0o644}


def test_what_this_machine_refuses_is_an_error_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ClientError, match="cannot be written"):
        unpack(tmp_path / "file/dest", ROOT)
    with pytest.raises(ClientError, match="cannot be written"):
        unpack(tmp_path / "dest", ROOT, *file(b"n" * 300))
