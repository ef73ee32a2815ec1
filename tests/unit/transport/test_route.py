"""The order of travel through jump hosts."""

from dataclasses import replace

import pytest

from launchpad.errors import SshError
from launchpad.sshconfig import Jump, SshConfig, parse
from launchpad.transport.paramiko.route import route


def host(alias: str, *jumps: str, command: str | None = None) -> SshConfig:
    config = parse(alias, f"hostname {alias}.example\nuser me\n")
    return replace(config, jumps=tuple(Jump(jump) for jump in jumps), proxy_command=command)


def travel(start: SshConfig, *others: SshConfig) -> list[str]:
    table = {one.alias: one for one in others}
    return [one.alias for one in route(start, lambda jump: table[jump.host])]


def test_directly() -> None:
    assert travel(host("a")) == ["a"]


def test_one_hop_and_two() -> None:
    assert travel(host("a", "b"), host("b")) == ["b", "a"]
    assert travel(host("a", "b", "c"), host("b"), host("c")) == ["b", "c", "a"]


def test_a_hop_with_hops_of_its_own() -> None:
    """As in ssh: only the first of several hops may have them."""
    assert travel(host("a", "b"), host("b", "c"), host("c")) == ["c", "b", "a"]
    assert travel(host("a", "b", "c"), host("b", "d"), host("c", "x"), host("d")) == [
        "d",
        "b",
        "c",
        "a",
    ]


def test_the_first_hop_keeps_its_proxy_command() -> None:
    first = host("b", command="relay")
    hosts = route(host("a", "b"), lambda _jump: first)
    assert [one.proxy_command for one in hosts] == ["relay", None]
    second = {"b": host("b", command="relay"), "c": host("c", command="lost")}
    hosts = route(host("a", "b", "c"), lambda jump: second[jump.host])
    assert [one.proxy_command for one in hosts] == ["relay", None, None]


def test_a_circle() -> None:
    with pytest.raises(SshError, match="circle"):
        route(host("a", "a"), lambda _jump: host("a", "a"))
