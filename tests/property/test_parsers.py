"""What comes from elsewhere is read, or refused with an error of a layer; nothing else happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from launchpad import config_reader
from launchpad.errors import ClientError, UsageError
from launchpad.frames import Frame, parse_frames
from launchpad.job import JobId
from launchpad.kill_reply import parse_ended
from launchpad.replies import parse_facts
from launchpad.target import parse_target, split_path
from launchpad.verdict import Place, job_of

PLACE = Place("pve1:101", "pve1", "pve1", 101, "/var/lib/launchpad")
JOB = JobId("a-aaaaaa")
MARKER = b"launchpad-0123456789abcdef"

numbers = st.one_of(
    st.integers(-2, 1 << 70).map(str),
    st.sampled_from(["", "-", "0", "9" * 5000, "\u0661", "\u00b2", "1e9"]),
)
words = st.one_of(
    numbers,
    st.sampled_from(["exited", "killed", "running", "zombie", "gone", "living", "c1", "h0", "."]),
    st.sampled_from(["6c0bff84-8f0b-4c5b-8c1a-f2dc1d69610f", "setsid", "tmux", "launchpad"]),
    st.text(max_size=5),
)
keys = st.sampled_from(
    "directory launching main known launcher emptied end kill asker process supervisor x".split()
)
lines = st.builds(lambda key, rest: " ".join((key, *rest)), keys, st.lists(words, max_size=8))
records = st.builds(
    lambda kind, rest: f"{kind} {','.join((kind, '1', *rest, '.'))}",
    st.sampled_from(["end", "kill"]),
    st.lists(words, max_size=8),
)
specs = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
).map(str)
payloads = st.one_of(
    st.lists(lines | records | words.map(lambda word: f"a-aaaaaa {word} 1 S 1 1 x"), max_size=6)
    .map("\n".join)
    .map(lambda text: text.encode("utf-8", "surrogatepass")),
    specs.map(lambda text: f"==> a-aaaaaa#/spec <==\n{text}".encode("utf-8", "surrogatepass")),
    st.binary(max_size=60),
)
replies = st.lists(
    st.builds(
        Frame,
        st.sampled_from("now job members specs sizes logs gpus disk ended refused".split()),
        st.lists(st.sampled_from(["a-aaaaaa", "#"]) | words, max_size=8).map(tuple),
        payloads,
    ),
    max_size=5,
)
NOW = Frame("now", ("1700000100", "5000", "b00", "30", "c2", "-", "-"), b"")


@given(replies)
def test_whatever_a_reply_says_a_job_can_be_told_of(reply: list[Frame]) -> None:
    parse_ended(reply)
    facts = parse_facts([*reply, NOW])
    assert facts.now is not None
    job = job_of(facts.of(JOB), facts.now, PLACE)
    assert job.id == JOB
    # What is not known is never an end with success.
    if facts.of(JOB).end is None and facts.of(JOB).process is None:
        assert getattr(job.state, "code", None) != 0


@given(st.lists(st.binary(max_size=20) | st.just(b"\n" + MARKER + b" "), max_size=12).map(b"".join))
def test_any_bytes_are_frames_or_none(data: bytes) -> None:
    for frame in parse_frames(MARKER, data):
        assert frame.name == frame.name.split(" ")[0]
        assert "\n" not in frame.name + "".join(frame.words)


names = st.sampled_from("targets defaults gpu run target cwd env login launcher lines".split())
values = st.recursive(
    st.sampled_from(['"pve1:101"', '"x"', "true", "-1", "1.5", "nan", "2026-01-01", "[]", '"5m"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda some: f"[{', '.join(some)}]")
        | st.builds(lambda key, value: f"{{{key} = {value}}}", names, inner)
    ),
    max_leaves=4,
)
statements = st.one_of(
    st.lists(names, min_size=1, max_size=3).map(lambda some: f"[{'.'.join(some)}]"),
    st.builds(lambda key, value: f"{key} = {value}", names, values),
    st.text(max_size=10),
)


@given(st.lists(statements, max_size=8).map("\n".join))
@example("[targets.gpu]\ntarget = 'pve1:101'\n[defaults.run]\nconfirm = '5s'")
@example("x = " + "[" * 3000)
@example("x = " + "{a = " * 3000)
@example("a." * 3000 + "b = 1")
@example("x = " + "9" * 5000)
@example("[defaults.run]\nconfirm = " + "9" * 4000)
@example("[defaults.tail]\nlines = inf")
@example("[defaults.run]\nconfirm = inf")
@example("[defaults]\nenv_file = '~nobody-at-all/x'")
def test_a_configuration_is_read_or_refused(text: str) -> None:
    path = Path("/nowhere/config.toml")
    try:
        found = config_reader.parse(text, path)
    except ClientError:
        return
    for name, target in found.aliases().items():
        assert parse_target(name, found.aliases()) == parse_target(target)
    found.by_target()


@given(st.text(max_size=40))
def test_a_path_behind_a_target_is_what_was_typed(text: str) -> None:
    parts = split_path(text)
    if parts is not None:
        assert ":".join(parts) == text
        assert parts[1].startswith(("/", "~"))


@pytest.mark.parametrize("char", ["\n", "\r", "\x1b", " ", "\0", "\u202e", "'", "$", "`", ";", "|"])
def test_nothing_rides_in_on_a_target(char: str) -> None:
    for text in (f"pve1{char}:101", f"pve1:101{char}", f"ro{char}ot@pve1:101", f"pve1:we{char}b"):
        with pytest.raises(UsageError):
            parse_target(text)
