"""Targets: whatever is typed is either understood in one way or refused before anything happens."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, strategies as st

from launchpad.errors import UsageError
from launchpad.target import LocalContainer, RemoteContainer, ThisMachine, parse_target

ALPHABET = "a1-._:@[]/%+0é\\;$ '\n\0"
pieces = st.sampled_from(
    ["pve1", "root@", ":", "101", "[::1]", "ssh://", "/", "local", "::1", "-o", "\n", ";id", "0"]
)
typed = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=ALPHABET, max_size=30),
    st.lists(st.one_of(pieces, st.text(alphabet=ALPHABET, max_size=3)), max_size=7).map("".join),
)


@given(typed)
@example("ssh://root@[fe80::1%eth0]:2222/web")
@example("pve1:" + "9" * 5000)
@example("ssh://pve1:" + "9" * 5000 + "/101")
def test_a_target_is_understood_or_refused_and_means_the_same_when_read_again(text: str) -> None:
    try:
        target = parse_target(text)
    except UsageError:
        return
    assert parse_target(str(target)) == target
    if isinstance(target, ThisMachine):
        assert text == "local"
        return
    if isinstance(target.container, int):
        assert 100 <= target.container <= 999_999_999
    else:
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", target.container)
    if isinstance(target, RemoteContainer):
        # These reach programs as words of their own: none may look like an option, nor hold what
        # a shell or ssh_config would read.
        for word in (target.host.name, target.host.user or "x"):
            assert re.fullmatch(r"[A-Za-z0-9_.:%@\\+-]+", word)
            assert not word.startswith("-")
        assert target.host.port is None or 0 < target.host.port < 65536
    else:
        assert isinstance(target, LocalContainer)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "::1:102",
            "pve1:",
            ":102",
            "pve1:102x",
            "pve1:102;id",
            "pve1:-h",
            "-oProxyCommand=x:102",
        ),
        *("pve1:00102", "pve1", "pve1:99", "pve1:1000000000", "pve1:10 2", "pve1:102\n", "", ":"),
        *("root@:101", "@pve1:101", "[pve1]:101", "[::1:101", "ssh://pve1", "ssh://pve1:0/101"),
        *("ssh://pve1:65536/101", "ssh:///101", "pve1:101/x", "pve1:$(id)", "a b:101", "-v:101"),
    ],
)
def test_what_could_be_read_in_two_ways_or_as_an_option_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_target(text)
    assert refused.value.advice


@pytest.mark.parametrize(
    ("text", "user", "host", "port", "container"),
    [
        ("pve1:102", None, "pve1", None, 102),
        ("root@[::1]:102", "root", "::1", None, 102),
        ("[::1]:102", None, "::1", None, 102),
        ("root@10.0.0.1:102", "root", "10.0.0.1", None, 102),
        ("me@corp.example@pve1.lan:trainer", "me@corp.example", "pve1.lan", None, "trainer"),
        ("ssh://root@pve1:2222/102", "root", "pve1", 2222, 102),
        ("ssh://[fe80::1%eth0]:2222/web.lan", None, "fe80::1%eth0", 2222, "web.lan"),
    ],
)
def test_every_form_of_a_target_is_split_at_the_right_place(
    text: str, user: str | None, host: str, port: int | None, container: int | str
) -> None:
    target = parse_target(text)
    assert isinstance(target, RemoteContainer)
    assert (target.host.user, target.host.name, target.host.port) == (user, host, port)
    assert target.container == container
