"""Whatever a user passes to a program arrives in it, byte for byte, through the real scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import example, given, settings, strategies as st

from launchpad.command import quote_words, to_bytes, to_text
from support.launching import started

if TYPE_CHECKING:
    from support.shells import Shell

# What shells, quoting and printf trip over, more often than chance would bring it.
AWKWARD = [
    *(b"'", b'"', b"\\", b"$", b"`", b"!", b"\n", b"\r", b"\t", b" ", b"*", b"?", b"[", b"~", b"="),
    *(
        b"%",
        b"{",
        b"}",
        b";",
        b"&",
        b"|",
        b"<",
        b">",
        b"#",
        b"-",
        b"--",
        b"$(id)",
        b"`id`",
        b"${X}",
    ),
    *(
        b"\x01",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"\xc3",
        "é".encode(),
        "日本".encode(),
        b"eval",
        b"'\\''",
    ),
]

fragments = st.one_of(
    st.sampled_from(AWKWARD), st.binary(max_size=40).map(lambda b: b.replace(b"\0", b""))
)
short_words = st.lists(fragments, max_size=12).map(b"".join)
# One argument of execve(2) holds less than 128 KiB; many together hold more.
long_words = st.builds(
    lambda piece, size: (piece * (size // len(piece) + 1))[:size],
    st.lists(fragments, min_size=1, max_size=6).map(lambda parts: b"".join(parts) or b"'"),
    st.integers(0, 60_000),
)
words = st.one_of(short_words, short_words, short_words, long_words)
vectors = st.lists(words, max_size=3).flatmap(
    lambda few: st.lists(short_words, max_size=30).map(lambda many: [*few, *many])
)
EVERY_BYTE = bytes(range(1, 256))


@settings(deadline=None, max_examples=25)
@given(arguments=vectors)
@example(arguments=[EVERY_BYTE, EVERY_BYTE[::-1], b"", b"\n", b" \n\n"])
@example(arguments=[b"'" * 100_000, b"\\" * 100_000])
def test_quoted_words_are_read_back_exactly(shell: Shell, arguments: list[bytes]) -> None:
    script = b"set -- " + quote_words(arguments) + b'\nprintf \'%s\\0\' "$#" "$@"'
    # On stdin, as in the scripts: a line of this size is no argument.
    done = shell.run('eval "$(cat)"', stdin=script)
    assert done.stdout == b"".join(word + b"\0" for word in [b"%d" % len(arguments), *arguments])
    assert done.stderr == b""


@settings(deadline=None, max_examples=15)
@given(arguments=vectors, values=st.lists(words, max_size=3))
@example(
    arguments=[EVERY_BYTE, b"", b"--", b"-n", b"-c", b"--help"], values=[EVERY_BYTE, b"", b"\n"]
)
@example(arguments=[b"'" * 100_000, b"x" * 90_000], values=[b"\n" * 10_000])
def test_arguments_and_environment_values_arrive_exactly(
    shell: Shell, arguments: list[bytes], values: list[bytes]
) -> None:
    environment = {f"VALUE_{number}": value for number, value in enumerate(values)}
    expanded = "".join(f' "$VALUE_{number}"' for number in range(len(values)))
    printer = f"""printf '%s\\0' "$#"{expanded} "$@" """
    with started(
        shell, [b"/bin/sh", b"-c", printer.encode(), b"sh", *arguments], environment
    ) as job:
        assert [frame.name for frame in job.frames] == ["begin", "launched", "done"]
        assert job.end() == ("exited", 0)
        expected = [b"%d" % len(arguments), *values, *arguments]
        assert job.log() == b"".join(word + b"\0" for word in expected)


@given(st.binary())
def test_text_and_bytes_are_two_forms_of_one_thing(data: bytes) -> None:
    assert to_bytes(to_text(data)) == data
