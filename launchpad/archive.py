"""tar archives as streams, written and read in pieces. Pure.

Written is what both GNU and busybox tar read: ustar headers (POSIX pax(1)), long names and numbers
in GNU's way. Read is what both write, and pax headers; everything else is refused. What is read
comes from a container and may be hostile: no name is trusted, and no announced size becomes memory.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

BLOCK = 512

# Archives end with two blocks of zeros; GNU tar reads whole records.
_RECORD = 20 * BLOCK

# No path in Linux is longer (PATH_MAX), so no name in an archive has a reason to be.
NAME_LIMIT = 4096
DEPTH_LIMIT = 400
_EXTENSION_LIMIT = 65536
_SIZE_LIMIT = 1 << 62

_LONG_NAME = b"././@LongLink"


class Kind(Enum):
    """What an entry of an archive is, by its typeflag."""

    FILE = b"0"
    HARD_LINK = b"1"
    SYMLINK = b"2"
    CHARACTER_DEVICE = b"3"
    BLOCK_DEVICE = b"4"
    DIRECTORY = b"5"
    FIFO = b"6"


@dataclass(frozen=True, slots=True)
class Member:
    """An entry. ``size``: bytes of a file; ``mtime``: epoch seconds; ``link``: a link's target."""

    kind: Kind
    name: bytes
    size: int = 0
    mode: int = 0o644
    mtime: int = 0
    link: bytes = b""


class DamagedArchive(ValueError):
    """The bytes are no archive that a container's tar would make: cut off, damaged, or hostile."""


# Writing.


def header(member: Member) -> bytes:
    """The blocks in front of a member's data. Owner is uid 0: whoever unpacks decides."""
    blocks = b""
    name, link = member.name, member.link
    if member.kind is Kind.DIRECTORY and not name.endswith(b"/"):
        name += b"/"
    if len(link) > 100:  # noqa: PLR2004 # the field's width
        blocks += _long(b"K", link)
    if len(name) > 100:  # noqa: PLR2004
        blocks += _long(b"L", name)
    return blocks + _header(replace(member, name=name[:100], link=link[:100]), member.kind.value)


def padding(size: int) -> bytes:
    """What fills the last block of ``size`` bytes of data."""
    return bytes(-size % BLOCK)


def end(written: int) -> bytes:
    """The end mark of an archive of which ``written`` bytes stand before it."""
    return bytes(2 * BLOCK + -(written + 2 * BLOCK) % _RECORD)


def _long(kind: bytes, text: bytes) -> bytes:
    data = text + b"\0"
    member = Member(Kind.FILE, _LONG_NAME, len(data))
    return _header(member, kind) + data + padding(len(data))


def _header(member: Member, kind: bytes) -> bytes:
    block = bytearray(
        member.name.ljust(100, b"\0")
        + _number(member.mode & 0o7777, 8)
        + _number(0, 8) * 2
        + _number(member.size, 12)
        + _number(member.mtime, 12)
        + b" " * 8
        + kind
        + member.link.ljust(100, b"\0")
        + b"ustar  \0"  # GNU's magic: its long names and binary numbers may follow
    ).ljust(BLOCK, b"\0")
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def _number(value: int, width: int) -> bytes:
    """Octal digits, or where they do not fit or are negative GNU's binary form."""
    digits = b"%0*o" % (width - 1, value) if value >= 0 else b""
    if value >= 0 and len(digits) < width:
        return digits + b"\0"
    number = value.to_bytes(width, "big", signed=True)
    return bytes([number[0] | 0x80]) + number[1:]


# Reading.


class Reader:
    """An archive that comes in pieces: :meth:`feed` gives members, and the data behind each.

    Once :attr:`ended`, the bytes behind the archive's end mark are in :attr:`rest`.
    """

    def __init__(self) -> None:
        self.ended = False
        self.rest = b""
        self._buffer = bytearray()
        self._data_left = 0
        self._padding_left = 0
        self._extension = b""
        self._extension_size = 0
        self._name: bytes | None = None
        self._link: bytes | None = None
        self._size: int | None = None

    def feed(self, data: bytes) -> Iterator[Member | bytes]:
        """What ``data`` completes: members, and pieces of the last file's data.

        Raises :class:`DamagedArchive`.
        """
        view = memoryview(data)
        while view and not self.ended:
            if self._data_left:
                piece = view[: self._data_left]
                self._data_left -= len(piece)
                view = view[len(piece) :]
                yield bytes(piece)
            elif self._padding_left:
                skipped = min(self._padding_left, len(view))
                self._padding_left -= skipped
                view = view[skipped:]
            else:
                wanted = BLOCK - len(self._buffer) % BLOCK if not self._extension else self._missing
                piece = view[:wanted]
                self._buffer += piece
                view = view[len(piece) :]
                if len(piece) == wanted:
                    if self._extension:
                        self._extend()
                    elif (member := self._block()) is not None:
                        yield member
        self.rest += bytes(view)

    @property
    def between(self) -> bool:
        """Whether what was fed so far ends at the end of a member."""
        return not (self._data_left or self._buffer or self._extension)

    @property
    def _missing(self) -> int:
        return self._extension_size - len(self._buffer)

    def _block(self) -> Member | None:
        block = bytes(self._buffer)
        self._buffer.clear()
        if not any(block):
            # The second one of the end mark is for whoever reads the rest, as more zeros are.
            self.ended = True
            return None
        total = sum(block) - sum(block[148:156]) + 8 * 32
        if _octal(block[148:156]) != total:
            raise DamagedArchive("a header's checksum is wrong")
        kind, size = block[156:157], _parse_number(block[124:136])
        if size < 0 or size > _SIZE_LIMIT:
            raise DamagedArchive(f"a size of {size} bytes")
        if kind in b"LKxg":
            if not 0 < size <= _EXTENSION_LIMIT:
                raise DamagedArchive(f"an extended header of {size} bytes")
            self._extension, self._extension_size = kind, size
            return None
        return self._member(block, kind, size)

    def _member(self, block: bytes, type_flag: bytes, size: int) -> Member:
        name = _text(block[:100])
        if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
            name = prefix + b"/" + name
        name = name if self._name is None else self._name
        link = _text(block[157:257]) if self._link is None else self._link
        size = size if self._size is None else self._size
        self._name = self._link = self._size = None
        try:
            kind = Kind(b"0" if type_flag in b"\x007" else type_flag)
        except ValueError:
            raise DamagedArchive(f"an entry of type {type_flag!r}") from None
        if kind is Kind.FILE and name.endswith(b"/"):
            kind = Kind.DIRECTORY  # as in archives older than POSIX
        if size and kind is not Kind.FILE:
            raise DamagedArchive(f"a {kind.name.lower()} with {size} bytes of data")
        if len(name) > NAME_LIMIT or len(link) > NAME_LIMIT:
            raise DamagedArchive(f"a name of {max(len(name), len(link))} bytes")
        self._data_left, self._padding_left = size, -size % BLOCK
        mode, mtime = _parse_number(block[100:108]), _parse_number(block[136:148])
        return Member(kind, name, size, mode & 0o7777, mtime, link)

    def _extend(self) -> None:
        kind, data = self._extension, bytes(self._buffer)
        self._buffer.clear()
        self._extension = b""
        self._padding_left = -len(data) % BLOCK
        match kind:
            case b"L":
                self._name = _text(data)
            case b"K":
                self._link = _text(data)
            case b"x":
                self._read_pax(data)
            # What is said for the whole archive (g) concerns neither names nor sizes.

    def _read_pax(self, data: bytes) -> None:
        while data:
            match = re.match(rb"([1-9][0-9]{0,5}) ([^=\n]+)=", data)
            length = int(match[1]) if match else 0
            if (
                match is None
                or not match.end() < length <= len(data)
                or data[length - 1] != ord("\n")
            ):
                raise DamagedArchive("a pax header that cannot be read")
            key, value = match[2], data[match.end() : length - 1]
            data = data[length:]
            match key:
                case b"path":
                    self._name = value
                case b"linkpath":
                    self._link = value
                case b"size":
                    if not re.fullmatch(rb"[0-9]{1,18}", value):
                        raise DamagedArchive("a size that is no number")
                    self._size = int(value)
                case _ if key.startswith((b"GNU.sparse", b"SCHILY.realsize")):
                    raise DamagedArchive("a sparse file")


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    if not re.fullmatch(rb"[0-7]*", digits):
        raise DamagedArchive("a number that is none")
    return int(digits or b"0", 8)


def _parse_number(field: bytes) -> int:
    if field[0] & 0x80:
        # GNU's binary form: two's complement, of which the first bit is the mark and the second
        # the sign.
        value = int.from_bytes(field, "big") & ((1 << (8 * len(field) - 1)) - 1)
        return value - (1 << (8 * len(field) - 1)) if field[0] & 0x40 else value
    return _octal(field)


def safe_parts(name: bytes) -> tuple[bytes, ...]:
    """The components of a name below a directory; empty for the directory itself.

    Raises :class:`DamagedArchive` for a name that could lead out of it.
    """
    parts = tuple(part for part in name.split(b"/") if part not in {b"", b"."})
    if name.startswith(b"/") or b".." in parts or b"\0" in name or not name:
        raise DamagedArchive("a path that leads out of the directory")
    if len(parts) > DEPTH_LIMIT:
        raise DamagedArchive(f"a path of {len(parts)} directories")
    return parts
