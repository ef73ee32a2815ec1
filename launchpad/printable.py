"""Text from elsewhere, made safe to show: what a terminal would act on becomes visible.

For everything that is not the log itself: errors, names, command lines, first and last lines.
"""


def printable(text: str) -> str:
    r"""``text`` on one line, in which no character can move a cursor, set a title or hide others.

    Control and format characters (a terminal's escape sequences begin with one) show as ``\x1b``,
    ``\n``, ``\u202e``; bytes that are not UTF-8 as ``\xff``. Tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character.isprintable() or character == "\t":
        return character
    if "\udc80" <= character <= "\udcff":  # a raw byte, see launchpad.command
        return f"\\x{ord(character) - 0xDC00:02x}"
    return repr(character)[1:-1]


def printable_lines(text: str) -> list[str]:
    """The lines of ``text``, each made safe; a carriage return ends a line too, as on a screen."""
    return [printable(line) for line in text.replace("\r", "\n").split("\n") if line]
