"""The stream of a follow: bytes and events come out the same, whatever the pieces were."""

from hypothesis import given, strategies as st

from launchpad.frames import Frame
from launchpad.logstream import (
    PROOF_SIZE,
    LogBytes,
    LogEmptied,
    LogMoved,
    LogStream,
    Piece,
    StreamEnd,
)

MARKER = b"launchpad-" + b"0123456789abcdef" * 2
EVENT = b"\x1e" + MARKER + b" "
END = EVENT + b"end\n\n" + MARKER + b" job x-abcdef\ndirectory\n\n" + MARKER + b" done\n"

# What could be mistaken for an event, or for its beginning.
_BYTES = st.lists(
    st.sampled_from([b"\x1e", b"\x1elaunchpad-", EVENT[:-1], MARKER, b"\n", b"a", b"end\n"])
    | st.binary(max_size=8),
    max_size=8,
).map(b"".join)
_EVENTS = st.sampled_from(
    [
        (EVENT + b"emptied 12\n", LogEmptied(12)),
        (EVENT + b"moved deleted 7\n", LogMoved("deleted", 7)),
    ]
)


def _feed(data: bytes, cuts: list[int]) -> tuple[list[Piece], LogStream]:
    """What comes out, neighbouring bytes joined."""
    stream = LogStream(MARKER, 100)
    pieces: list[Piece] = []
    begin = 0
    for cut in (*sorted(cut % (len(data) + 1) for cut in cuts), len(data)):
        for piece in stream.feed(data[begin:cut]):
            if isinstance(piece, LogBytes) and pieces and isinstance(pieces[-1], LogBytes):
                pieces[-1] = LogBytes(pieces[-1].data + piece.data)
            else:
                pieces.append(piece)
        begin = cut
    return pieces, stream


@given(st.lists(st.tuples(_BYTES, _EVENTS), max_size=4), _BYTES, st.lists(st.integers(0)))
def test_bytes_and_events_keep_their_places(
    parts: list[tuple[bytes, tuple[bytes, Piece]]], last: bytes, cuts: list[int]
) -> None:
    # An event in the log itself cannot be: the marker is known to nobody.
    parts = [(data.replace(EVENT, b""), event) for data, event in parts]
    last = last.replace(EVENT, b"")
    data = b"".join(part + event for part, (event, _) in parts) + last + END
    wanted: list[Piece] = []
    offset = 100
    for part, (_, event) in parts:
        wanted += [LogBytes(part)] if part else []
        wanted.append(event)
        offset = 0 if isinstance(event, LogEmptied) else offset + len(part)
    wanted += [LogBytes(last)] if last else []
    wanted.append(StreamEnd((Frame("job", ("x-abcdef",), b"directory\n"),)))
    pieces, stream = _feed(data, cuts)
    assert pieces == wanted
    assert stream.offset == offset + len(last)


@given(st.binary(max_size=60), st.lists(st.integers(0)))
def test_the_proof_is_what_stands_before_the_offset(data: bytes, cuts: list[int]) -> None:
    _, stream = _feed(data, cuts)
    taken = data[: stream.offset - 100]
    assert stream.proof == taken[-PROOF_SIZE:].hex()


def test_only_what_may_be_an_event_is_held_back() -> None:
    stream = LogStream(MARKER, 0)
    assert list(stream.feed(b"prompt> ")) == [LogBytes(b"prompt> ")]
    assert list(stream.feed(b"x\x1e")) == [LogBytes(b"x")]
    assert list(stream.feed(b"y")) == [LogBytes(b"\x1ey")]


def test_an_event_of_a_newer_far_side_is_passed_over() -> None:
    pieces, _ = _feed(b"a" + EVENT + b"something new 1\nb", [])
    assert pieces == [LogBytes(b"ab")]
