"""The one line that a host's login shell parses means the same to every login shell."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from launchpad.command import host_line
from launchpad.proxmox import pct_words
from launchpad.scripts import remote_call
from support.lab import DEBIAN, Lab

LOGIN_SHELLS = ["/bin/bash", "/bin/dash", "/usr/bin/zsh", "/usr/bin/fish", "/bin/tcsh"]

# Everything that host_line() accepts: ASCII without quote, backslash, exclamation mark, newline.
accepted = st.text(
    alphabet=[chr(code) for code in range(1, 128) if chr(code) not in "'\\!\n\r"], max_size=20
)


@pytest.mark.parametrize("login_shell", LOGIN_SHELLS)
@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.lists(accepted, max_size=8))
def test_words_of_a_host_line_arrive_in_every_login_shell(
    lab: Lab, login_shell: str, words: list[str]
) -> None:
    argv = ["sh", "-c", "cat /proc/$$/cmdline", "sh", *words]
    done = lab.on_node("pve1", login_shell, "-c", host_line(argv).decode())
    assert done.stdout == b"".join(word.encode() + b"\0" for word in argv)


@given(st.text())
def test_what_some_shell_would_change_is_never_put_into_a_host_line(word: str) -> None:
    hazardous = not word.isascii() or any(c in word for c in "'\\!\n\r\0")
    if hazardous:
        with pytest.raises(ValueError, match="not safe"):
            host_line([word])
    else:
        assert word.encode() in host_line([word])


@pytest.mark.parametrize("login_shell", LOGIN_SHELLS)
def test_the_entry_line_itself_reaches_pct_the_same_from_every_login_shell(
    lab: Lab, login_shell: str
) -> None:
    call = remote_call(pct_words(DEBIAN, sudo=False), ("common",), [])
    line = host_line(call.words).decode()
    done = lab.on_node("pve1", login_shell, "-c", f"sh -c 'cat /proc/$$/cmdline' {line}")
    assert done.stdout.split(b"\0")[3:-1] == [word.encode() for word in call.words]
