"""Archives: written so that others read them, read from others, and from whoever means harm."""

from __future__ import annotations

import io
import tarfile
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, strategies as st

from launchpad.archive import (
    BLOCK,
    DamagedArchive,
    Kind,
    Member,
    Reader,
    end,
    header,
    padding,
    safe_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = (
    st.binary(min_size=1, max_size=300)
    .map(lambda name: name.replace(b"\0", b"x").strip(b"/"))
    .filter(bool)
)
MEMBERS = st.one_of(
    st.builds(
        lambda name, data, mode, mtime: (Member(Kind.FILE, name, len(data), mode, mtime), data),
        NAMES,
        st.binary(max_size=1100),
        st.integers(0, 0o7777),
        st.integers(-(2**40), 2**40),
    ),
    st.builds(lambda name: (Member(Kind.DIRECTORY, name, mode=0o755), b""), NAMES),
    st.builds(
        lambda name, link: (Member(Kind.SYMLINK, name, mode=0o777, link=link), b""), NAMES, NAMES
    ),
)


def write(members: Iterable[tuple[Member, bytes]]) -> bytes:
    data = b"".join(header(member) + body + padding(len(body)) for member, body in members)
    return data + end(len(data))


def read(data: bytes, step: int = 10_000_000) -> list[tuple[Member, bytes]]:
    reader = Reader()
    found: list[tuple[Member, bytes]] = []
    for start in range(0, len(data), step):
        for item in reader.feed(data[start : start + step]):
            if isinstance(item, Member):
                found.append((item, b""))
            else:
                found[-1] = (found[-1][0], found[-1][1] + item)
    assert reader.ended
    return found


def with_slash(member: Member) -> Member:
    if member.kind is not Kind.DIRECTORY:
        return member
    return Member(member.kind, member.name + b"/", 0, member.mode, member.mtime)


@given(st.lists(MEMBERS, max_size=6), st.integers(1, 2000))
def test_what_is_written_is_read_in_pieces_of_any_size(
    members: list[tuple[Member, bytes]], step: int
) -> None:
    expected = [(with_slash(member), body) for member, body in members]
    assert read(write(members), step) == expected


@given(st.lists(MEMBERS, max_size=6))
def test_the_library_reads_what_is_written(members: list[tuple[Member, bytes]]) -> None:
    stream = io.BytesIO(write(members))
    with tarfile.open(fileobj=stream, encoding="utf-8", errors="surrogateescape") as archive:
        for (member, body), found in zip(members, archive, strict=True):
            assert found.name.encode("utf-8", "surrogateescape") == member.name.rstrip(b"/")
            assert found.type == member.kind.value
            assert (found.mode, found.mtime) == (member.mode, member.mtime)
            assert found.linkname.encode("utf-8", "surrogateescape") == member.link
            if member.kind is Kind.FILE:
                file = archive.extractfile(found)
                assert file is not None
                assert file.read() == body


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_other_writers_are_read(form: int) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form, encoding="utf-8") as archive:
        for name, size in (("short", 3), ("deep/" * 60 + "é" * 100, 513), ("empty", 0)):
            info = tarfile.TarInfo(name)
            info.size, info.mtime = size, 7
            archive.addfile(info, io.BytesIO(b"x" * size))
        info = tarfile.TarInfo("link")
        info.type, info.linkname = tarfile.SYMTYPE, "t" * 200
        archive.addfile(info)
    found = read(stream.getvalue(), 100)
    assert [(member.name.decode(), member.size, len(body)) for member, body in found] == [
        ("short", 3, 3),
        ("deep/" * 60 + "é" * 100, 513, 513),
        ("empty", 0, 0),
        ("link", 0, 0),
    ]
    assert found[-1][0].link == b"t" * 200


def test_a_large_file_is_announced_as_it_is() -> None:
    size = 20 * 1024**3
    (member,) = Reader().feed(header(Member(Kind.FILE, b"huge", size)))
    assert isinstance(member, Member)
    assert member.size == size


def test_what_stands_behind_the_end_is_left_alone() -> None:
    reader = Reader()
    assert list(reader.feed(bytes(2 * BLOCK) + b"\nmarker packed 0\n")) == []
    assert reader.ended
    assert reader.rest.strip(b"\0") == b"\nmarker packed 0\n"


def raw(kind: bytes, body: bytes = b"", size: int | None = None, name: bytes = b"x") -> bytes:
    """A header that the writer above would not write, and its data."""
    block = bytearray(header(Member(Kind.FILE, name, len(body) if size is None else size)))
    block[156:157] = kind
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block) + body + padding(len(body))


def spoilt(offset: int, data: bytes) -> bytes:
    block = bytearray(header(Member(Kind.FILE, b"x")))
    block[offset : offset + len(data)] = data
    if offset != 148:
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"x" * BLOCK, id="no header at all"),
        pytest.param(spoilt(148, b"0000000\0"), id="wrong checksum"),
        pytest.param(spoilt(124, b"99999999999\0"), id="a size that is no number"),
        pytest.param(spoilt(124, b"\xff" * 12), id="a negative size"),
        pytest.param(spoilt(124, b"\x80\x00\x00\x00" + b"\xff" * 8), id="a size beyond all disks"),
        pytest.param(raw(b"L", size=2**30), id="a name of a gibibyte"),
        pytest.param(raw(b"x", size=2**30), id="a pax header of a gibibyte"),
        pytest.param(raw(b"L", size=0), id="an empty long name"),
        pytest.param(raw(b"S"), id="a sparse file"),
        pytest.param(raw(b"x", b"22 GNU.sparse.major=1\n"), id="a sparse file of pax"),
        pytest.param(raw(b"x", b"99 path=x\n"), id="a pax record longer than its header"),
        pytest.param(raw(b"x", b"nonsense"), id="a pax header without records"),
        pytest.param(raw(b"x", b"12 size=-99\n"), id="a negative size of pax"),
        pytest.param(raw(b"2", b"data"), id="a link with data"),
        pytest.param(raw(b"5", b"data"), id="a directory with data"),
        pytest.param(raw(b"V"), id="a volume header"),
        pytest.param(
            raw(b"L", b"n" * 5000, name=b"././@LongLink") + raw(b"0"), id="a name no path can have"
        ),
    ],
)
def test_what_no_honest_tar_writes_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedArchive):
        list(Reader().feed(data))


def test_a_stream_of_long_names_takes_no_memory() -> None:
    reader = Reader()
    piece = raw(b"L", b"n" * 4000, name=b"././@LongLink")
    for _ in range(2000):
        assert list(reader.feed(piece)) == []
    assert len(reader._buffer) == 0


@given(st.binary(max_size=4 * BLOCK))
def test_no_bytes_at_all_raise_anything_else(data: bytes) -> None:
    with suppress(DamagedArchive):
        list(Reader().feed(data))


@pytest.mark.parametrize("name", [b"/etc/x", b"../x", b"a/../../x", b"a/..", b"..", b"", b"a\0b"])
def test_names_that_lead_out_are_refused(name: bytes) -> None:
    with pytest.raises(DamagedArchive):
        safe_parts(name)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (b"./", ()),
        (b".", ()),
        (b"./a", (b"a",)),
        (b"a//b/./c/", (b"a", b"b", b"c")),
        (b"..a/b..", (b"..a", b"b..")),
        (b"...", (b"...",)),
    ],
)
def test_names_are_divided(name: bytes, parts: tuple[bytes, ...]) -> None:
    assert safe_parts(name) == parts
