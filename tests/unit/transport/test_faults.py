"""What a transport says when the line fails."""

from __future__ import annotations

from launchpad.errors import Layer
from launchpad.transport.faults import line_lost


def test_a_lost_line_says_what_to_do() -> None:
    error = line_lost("root@pve1:22", "it broke")
    assert error.layer is Layer.SSH
    assert "may run on" in error.advice
