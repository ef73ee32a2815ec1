"""A container that sends without end: what is kept of it has limits, and it ends with an error."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from launchpad.errors import ShellError
from launchpad.frames import FRAME_LIMIT, REPLY_LIMIT, Frame, FrameReader, parse_frames
from launchpad.kill_reply import parse_ended
from launchpad.logstream import LogStream
from launchpad.replies import JOB_LIMIT, MEMBER_LIMIT, parse_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MARKER = b"launchpad-0123456789abcdef"
HEAD = b"\n" + MARKER + b" "
NOISE = "/.//."
MEGABYTE = 1024 * 1024


def take_all(feed: Callable[[bytes], Iterator[object]], piece: bytes) -> None:
    """The same piece again and again; whoever takes 64 MB of it has no limit."""
    for _ in range(64 * MEGABYTE // len(piece)):
        list(feed(piece))


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (HEAD + b"job x\n", b"x" * 65536),
        (HEAD, b"x" * 65536),
        (b"", (HEAD + b"job x\n") * 1000),
        (HEAD + b"job", b" x" * 65536),
    ],
    ids=["payload", "line", "frames", "words"],
)
def test_a_reply_without_end_is_given_up(first: bytes, then: bytes) -> None:
    reader = FrameReader(MARKER)
    list(reader.feed(first))
    with pytest.raises(ShellError):
        take_all(reader.feed, then)


def test_every_reply_of_a_long_conversation_has_the_whole_limit() -> None:
    reader = FrameReader(MARKER)
    answer = HEAD + b"job x\n" + b"x" * (REPLY_LIMIT // 4) + HEAD + b"done\n"
    for _ in range(6):
        assert [frame.name for frame in reader.feed(answer)] == ["job", "done"]


def test_too_many_frames_in_a_reply_that_is_whole() -> None:
    with pytest.raises(ShellError):
        parse_frames(MARKER, (HEAD + b"x\n") * (FRAME_LIMIT + 1))
    assert len(parse_frames(MARKER, (HEAD + b"x\n") * FRAME_LIMIT)) == FRAME_LIMIT
    with pytest.raises(ShellError):
        parse_frames(MARKER, HEAD + b"x" * 5000 + b"\n")


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"\x1e" + MARKER + b" emptied ", b"1" * 65536),
        (b"\x1e" + MARKER + b" end\n" + HEAD + b"job x\n", b"x" * 65536),
        (b"\x1e" + MARKER + b" end\n", (HEAD + b"job x\n") * 1000),
    ],
    ids=["event", "payload", "frames"],
)
def test_the_end_of_a_log_without_end_is_given_up(first: bytes, then: bytes) -> None:
    stream = LogStream(MARKER, 0)
    list(stream.feed(first))
    with pytest.raises(ShellError):
        take_all(stream.feed, then)


def job_ids(count: int) -> Iterator[str]:
    for number in range(count):
        yield "a-" + f"{number:06}".translate(str.maketrans("0189", "abcd"))


def jobs_in_members() -> list[Frame]:
    lines = "".join(f"{job} 1 1 S 1 1 x\n" for job in job_ids(2 * JOB_LIMIT))
    return [Frame("members", (), lines.encode())]


def processes() -> list[Frame]:
    return [Frame("members", (), b"a-aaaaaa 1 1 S 1 1 x\n" * (MEMBER_LIMIT * 2 // 3))] * 2


def jobs_in_logs() -> list[Frame]:
    logs = "\n".join(f"==> {job}{NOISE}/log <==\n" for job in job_ids(2 * JOB_LIMIT))
    return [Frame("logs", (NOISE,), logs.encode())]


@pytest.mark.parametrize("make", [jobs_in_members, processes, jobs_in_logs])
def test_more_jobs_and_processes_than_a_container_has_are_left_out(
    make: Callable[[], list[Frame]],
) -> None:
    facts = parse_facts(make())
    assert facts.flooded
    assert len(facts.jobs) <= JOB_LIMIT
    assert sum(len(job.members) for job in facts.jobs.values()) <= MEMBER_LIMIT


def lines_without_end() -> list[Frame]:
    # Split into lines, this would be 200 MB and more.
    return [Frame(name, ("a-aaaaaa",), b"ab\n" * 4_000_000) for name in ("job", "gpus", "sizes")]


def nested_specs() -> list[Frame]:
    # As lists in memory, this would be 200 MB and more.
    spec = b'{"command": [' + b"[]," * 80_000 + b"[]]}"
    pieces = [b"==> %b%b/spec <==\n%b" % (j.encode(), NOISE.encode(), spec) for j in job_ids(40)]
    return [Frame("specs", (NOISE,), b"\n".join(pieces))]


@pytest.mark.parametrize("make", [lines_without_end, nested_specs])
def test_facts_without_end_take_no_memory(make: Callable[[], list[Frame]]) -> None:
    frames = make()
    tracemalloc.start()
    try:
        parse_facts(frames)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * MEGABYTE


def test_the_largest_container_is_no_flood() -> None:
    frames = [Frame("job", (job,), b"directory\n") for job in job_ids(JOB_LIMIT)]
    facts = parse_facts(frames)
    assert len(facts.jobs) == JOB_LIMIT
    assert not facts.flooded


def test_numbers_that_python_refuses_to_read_are_no_numbers() -> None:
    huge = b"9" * 5000
    frames = [
        Frame("gpus", (), huge + b", x, 1, 1, 1\n"),
        Frame("ended", ("a-aaaaaa",), b"took " + huge + b"\nleft " + huge + b" D x\n"),
    ]
    assert parse_facts(frames).gpus is None
    (ended,) = parse_ended(frames).values()
    assert ended.left == ()
