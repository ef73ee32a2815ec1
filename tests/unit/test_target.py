"""What a target that is refused is told, and what is written about one."""

from __future__ import annotations

import pytest

from launchpad.errors import UsageError
from launchpad.target import (
    Host,
    LocalContainer,
    RemoteContainer,
    ThisMachine,
    parse_target,
    split_path,
)

ALIASES = {"gpu": "pve1:101", "cpu": "ssh://me@pve2:2222/web"}


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("local", ThisMachine()),
        ("local:101", LocalContainer(101)),
        ("local:web", LocalContainer("web")),
        ("gpu", RemoteContainer(Host("pve1"), 101)),
        ("cpu", RemoteContainer(Host("pve2", "me", 2222), "web")),
        ("ssh://pve1/101", RemoteContainer(Host("pve1"), 101)),
        ("ssh://pve1:65535/101", RemoteContainer(Host("pve1", None, 65535), 101)),
        ("ssh://pve1:1/101", RemoteContainer(Host("pve1", None, 1), 101)),
        ("pve1:100", RemoteContainer(Host("pve1"), 100)),
        ("pve1:999999999", RemoteContainer(Host("pve1"), 999_999_999)),
    ],
)
def test_what_is_meant(text: str, target: object) -> None:
    found = parse_target(text, ALIASES)
    assert found == target
    assert parse_target(str(found)) == found


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (RemoteContainer(Host("::1"), 101), "[::1]:101"),
        (RemoteContainer(Host("::1", "me", 22), 101), "ssh://me@[::1]:22/101"),
        (RemoteContainer(Host("pve1", "me"), "web"), "me@pve1:web"),
        (LocalContainer("web"), "local:web"),
        (ThisMachine(), "local"),
    ],
)
def test_how_it_is_written(target: object, text: str) -> None:
    assert str(target) == text


def test_the_number_behind_a_name_is_no_part_of_it() -> None:
    assert LocalContainer("web", 101) == LocalContainer("web")
    assert RemoteContainer(Host("a"), "web", 1) == RemoteContainer(Host("a"), "web")
    assert parse_target("local:web") == LocalContainer("web", None)


GRAMMAR = "write HOST:CTID, HOST:NAME, USER@HOST:CTID, ssh://USER@HOST:PORT/CTID, local or an alias"
COLONS = "an IPv6 address: [pve1:1:2]:CTID; a port: ssh://HOST:PORT/CTID"


@pytest.mark.parametrize(
    ("text", "why", "advice"),
    [
        ("pve1:99", "99 is not a CTID (100 to 999999999, no leading zero)", GRAMMAR),
        ("local:99", "99 is not a CTID (100 to 999999999, no leading zero)", GRAMMAR),
        ("pve1:a_b", "'a_b' is neither a CTID nor a container's name", GRAMMAR),
        ("a b@pve1:101", "'a b' is not a user name", GRAMMAR),
        ("[pve1]:101", "[pve1] is not an IPv6 address", GRAMMAR),
        ("[x::1]:101", "[x::1] is not an IPv6 address", GRAMMAR),
        (
            "a:b:101",
            "a host with colons needs brackets",
            "an IPv6 address: [a:b]:CTID; a port: ssh://HOST:PORT/CTID",
        ),
        ("-x:101", "'-x' is not a host name", GRAMMAR),
        (":101", "the host is missing", GRAMMAR),
        ("ssh://pve1", "the container is missing", "write ssh://USER@HOST:PORT/CTID"),
        ("ssh://pve1:0/101", "'pve1:0' is not USER@HOST:PORT", GRAMMAR),
        ("ssh://pve1:65536/101", "'pve1:65536' is not USER@HOST:PORT", GRAMMAR),
        ("ssh://pve1:1:2:3/101", "a host with colons needs brackets", COLONS),
        ("ssh://a\nb/101", "'a\\nb' is not USER@HOST:PORT", GRAMMAR),
        ("ssh://a/b/101", "'b/101' is neither a CTID nor a container's name", GRAMMAR),
        ("ssh://-x/101", "'-x' is not a host name", GRAMMAR),
        ("ssh://me@pve1/", "'' is neither a CTID nor a container's name", GRAMMAR),
        ("pve1:", "the container is missing", GRAMMAR),
        ("a/b", "no container is named", GRAMMAR),
        (
            "gpv",
            "no container is named, and no alias has that name",
            "did you mean gpu? Known aliases: cpu, gpu",
        ),
        (
            "pve1",
            "no container is named, and no alias has that name",
            "did you mean pve1:CTID? Known aliases: cpu, gpu",
        ),
    ],
)
def test_why_it_is_refused(text: str, why: str, advice: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_target(text, ALIASES)
    assert refused.value.what == f"{text!r} is not a target: {why}"
    assert refused.value.advice == advice


def test_without_aliases_none_is_known() -> None:
    with pytest.raises(UsageError) as refused:
        parse_target("pve1")
    assert refused.value.advice == "did you mean pve1:CTID? Known aliases: none"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("pve1:101:/x", ("pve1:101", "/x")),
        ("pve1:101:~/x:/y", ("pve1:101", "~/x:/y")),
        ("pve1:101:~", ("pve1:101", "~")),
        ("pve1:101:~x", None),
        ("pve1:101:x", None),
        ("ssh://pve1:22/101:/x", ("ssh://pve1:22/101", "/x")),
        ("ssh://pve1", None),
        ("local:/x", ("local", "/x")),
        (":/x", ("", "/x")),
        (":~", ("", "~")),
    ],
)
def test_a_path_behind_a_target(text: str, parts: tuple[str, str] | None) -> None:
    assert split_path(text) == parts
