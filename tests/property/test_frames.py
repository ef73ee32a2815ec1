"""Nothing that is printed into a reply, and no cut of it into pieces, can change what is read."""

from __future__ import annotations

from hypothesis import given, strategies as st

from launchpad.frames import Frame, FrameReader, is_whole, parse_frames

MARKER = b"launchpad-0123456789abcdef"
SEPARATOR = b"\n" + MARKER + b" "

# Pieces that look like frames and are none: a whole separator cannot be guessed by anybody.
hostile = st.lists(
    st.one_of(
        st.sampled_from(
            [
                b"\n",
                b"\n\n",
                MARKER,
                b" ",
                b"done",
                b"launchpad-",
                b"\nlaunchpad-0 done\n",
                b"\n" + MARKER,
            ]
        ),
        st.binary(max_size=20),
    ),
    max_size=12,
).map(lambda parts: b"".join(parts).replace(SEPARATOR, b""))
# Nor may it stand at a payload's beginning, where the frame's own line ends before it.
harmless = hostile.filter(lambda data: SEPARATOR not in b"\n" + data)
names = st.sampled_from(["begin", "job", "launched", "refused", "end"])
frame_words = st.lists(st.from_regex(r"[!-~]{1,12}", fullmatch=True), max_size=4).map(tuple)
frames = st.builds(Frame, names, frame_words, harmless)


def written(frame: Frame) -> bytes:
    """A frame as remote/common.sh writes it."""
    return (
        b"\n"
        + b" ".join([MARKER, *(w.encode() for w in (frame.name, *frame.words))])
        + b"\n"
        + frame.payload
    )


@st.composite
def cut_up(draw: st.DrawFn, data: bytes) -> list[bytes]:
    """The data in pieces of any size, as a line delivers them."""
    places = sorted(draw(st.lists(st.integers(0, len(data)), max_size=20)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


# A marker right behind the noise's own end would need the noise to know it.
noise = harmless.filter(lambda data: SEPARATOR not in data + b"\n")


@given(noise, st.lists(frames, max_size=6), st.data())
def test_a_reply_is_read_exactly_however_it_is_cut(
    before: bytes, sent: list[Frame], data: st.DataObject
) -> None:
    reply = before + b"".join(map(written, [*sent, Frame("done", (), b"")]))
    whole = parse_frames(MARKER, reply)
    assert whole == [*sent, Frame("done", (), b"")]
    assert is_whole(whole)
    reader = FrameReader(MARKER)
    read = [frame for piece in data.draw(cut_up(reply)) for frame in reader.feed(piece)]
    assert read == whole


@given(st.lists(frames, max_size=4), st.binary(max_size=300), st.data())
def test_raw_bytes_behind_a_header_frame_are_passed_on_exactly(
    sent: list[Frame], log: bytes, data: st.DataObject
) -> None:
    stream = b"".join(map(written, [*sent, Frame("log", ("0",), b"")])) + log
    reader = FrameReader(MARKER, raw=frozenset({"log"}))
    read, rest = [], b""
    for piece in data.draw(cut_up(stream)):
        read += list(reader.feed(piece))
        if reader.is_raw:
            rest += reader.take_rest()
    assert read == [*sent, Frame("log", ("0",), b"")]
    assert rest == log


@given(st.lists(frames, min_size=1, max_size=6), st.data())
def test_a_reply_that_was_cut_off_is_never_taken_for_a_whole_one(
    sent: list[Frame], data: st.DataObject
) -> None:
    reply = b"".join(map(written, [*sent, Frame("done", (), b"")]))
    end = data.draw(st.integers(0, len(reply) - 1))
    assert not is_whole(parse_frames(MARKER, reply[:end]))


@given(st.binary(max_size=2000), st.data())
def test_noise_without_a_frame_is_dropped_and_takes_no_memory(
    junk: bytes, data: st.DataObject
) -> None:
    reader = FrameReader(MARKER)
    for piece in data.draw(cut_up(junk * 10)):
        assert list(reader.feed(piece)) == []
    assert len(reader.take_rest()) <= len(SEPARATOR)
