"""What a program has switched on in a terminal, to be switched off if it cannot do that itself.

Pure. A full-screen program whose line breaks leaves the terminal on its second screen, with an
invisible cursor and a mouse that types. The private modes are those of xterm's ctlseqs.
"""

import re

# Mode: what it is when nobody has touched it.
_DEFAULTS = {
    b"1": b"l",  # cursor keys send application codes
    b"25": b"h",  # the cursor is visible
    b"47": b"l",  # the second screen, and its newer forms
    b"1047": b"l",
    b"1049": b"l",
    b"9": b"l",  # mouse reports, and their forms
    b"1000": b"l",
    b"1001": b"l",
    b"1002": b"l",
    b"1003": b"l",
    b"1005": b"l",
    b"1006": b"l",
    b"1015": b"l",
    b"1004": b"l",  # focus reports
    b"2004": b"l",  # pasted text is bracketed
}
_SETTING = re.compile(rb"\x1b(?:\[\?([0-9;]{1,64})([hl])|([=>]))")

# A setting may be cut in two by the end of a piece (bytes).
_LONGEST = 72


class ScreenModes:
    """Watches what is written to a terminal."""

    def __init__(self) -> None:
        self._changed: dict[bytes, bytes] = {}
        self._keypad = False
        self._tail = b""

    def feed(self, data: bytes) -> None:
        """``data`` was written."""
        data = self._tail + data
        end = 0
        for setting in _SETTING.finditer(data):
            end = setting.end()
            if setting[3]:
                self._keypad = setting[3] == b"="
                continue
            for mode in setting[1].split(b";"):
                if mode not in _DEFAULTS:
                    continue
                if setting[2] == _DEFAULTS[mode]:
                    self._changed.pop(mode, None)
                else:
                    self._changed[mode] = _DEFAULTS[mode]
        self._tail = data[max(end, len(data) - _LONGEST) :]

    def undo(self) -> bytes:
        """What must be written to have the terminal as it was; empty where nothing must."""
        parts = [b"\x1b[?%s%s" % change for change in reversed(self._changed.items())]
        if self._keypad:
            parts.append(b"\x1b>")
        return b"\x1b[0m" + b"".join(parts) if parts else b""
