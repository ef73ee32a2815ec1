"""What a log may do to a terminal: show text in colours, and redraw its current line.

A log holds whatever a job wrote. Shown as it is, it could clear the screen, move the cursor over
older lines, set the title, write the clipboard or ask the terminal to type answers. Of all control
sequences (ECMA-48, and what xterm adds) only colours (SGR) pass. Pure.
"""

import re
import unicodedata
from codecs import getincrementaldecoder

# A line is held back up to here, so that an overwritten state of it need not be shown (characters).
_LINE_LIMIT = 8192

# Longer ones are no control sequences that anything sensible would send (characters).
_CSI_LIMIT, _STRING_LIMIT = 64, 4096

# Colours that are carried over from the overwritten part of a line to what overwrites it.
_CARRIED = 16

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")

_TOKEN = re.compile(
    rf"(?P<csi>\x1b\[(?P<parameters>[0-?]{{0,{_CSI_LIMIT}}})[ -/]{{0,4}}(?P<final>[@-~]))"
    # Strings: OSC (titles, clipboard, links), DCS, SOS, PM, APC; BEL or ST ends them.
    rf"|(?P<string>\x1b[\]PX^_][^\x00-\x08\x0a-\x1f\x7f]{{0,{_STRING_LIMIT}}}(?:\x07|\x1b\\))"
    r"|(?P<escape>\x1b[ -/]{0,4}[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x08\x0a-\x1f\x7f-\x9f])"
    r"|(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)"
)
# What may still become one of the sequences above. (ESC itself is in the class of strings' ends.)
_UNFINISHED = re.compile(
    rf"\x1b(?:\[[0-?]{{0,{_CSI_LIMIT}}}[ -/]{{0,4}}"
    rf"|[\]PX^_][^\x00-\x08\x0a-\x1f\x7f]{{0,{_STRING_LIMIT}}}\x1b?"
    r"|[ -/]{0,4})?"
)
# Whole lines in which nothing but colours has to be looked at: most of most logs.
_PLAIN = r"[^\x00-\x08\x0a-\x1f\x7f-\x9f]*+"
_PLAIN_LINES = re.compile(rf"(?:{_PLAIN}(?:\x1b\[[0-9;:]{{0,{_CSI_LIMIT}}}m{_PLAIN})*+\n)++")

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_ESCAPE_PICTURE = "\N{SYMBOL FOR ESCAPE}"


def _picture(control: str) -> str:
    """A visible sign for a control character."""
    code = ord(control)
    if code < 0x20:  # noqa: PLR2004 # the C0 set
        return chr(0x2400 + code)
    return "\N{SYMBOL FOR DELETE}" if control == "\x7f" else _REPLACEMENT


def width_of(text: str) -> int:
    """The columns that ``text`` takes, colours not counted."""
    plain = _COLOUR.sub("", text)
    if plain.isascii():
        return len(plain)
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in plain
    )


class TerminalFilter:
    """The bytes of a log → text that is safe on a terminal.

    A line goes out once it is whole, in its last state: what CR or backspaces have overwritten
    before it went out is never shown, so a progress bar counts as one line. :meth:`flush` shows
    the unfinished line as it is now; call it when nothing more has come for a moment. Bytes that
    are not UTF-8 become U+FFFD, other control characters a visible sign.

    How the bytes were cut into pieces makes no difference to the text. ``columns``: of the
    terminal, None where unknown. ``colour`` False: colours do not pass either.
    """

    def __init__(self, *, columns: int | None = None, colour: bool = True) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._columns = columns
        self._colour = colour
        self._held = ""
        # The state of the current line: pieces of text and colours, and the columns' bookkeeping.
        self._line: list[str] = []
        self._size = 0
        self._returned = False
        self._back = 0
        # What of it is on the screen; and whether more of it is that cannot be taken back.
        self._shown = ""
        self._committed = False
        self._coloured = False

    @property
    def in_line(self) -> bool:
        """Whether the cursor stands behind something: a message would be glued to it."""
        return bool(self._shown) or self._committed

    def feed(self, data: bytes) -> str:
        """Take what the log goes on with; the text that is now to be shown."""
        return self._take(self._decoder.decode(data), final=False)

    def flush(self) -> str:
        """The text that shows the unfinished line as it is now."""
        return self._draw()

    def break_line(self) -> str:
        """The text that leaves the line, for a message; the line is shown again after it."""
        if not self.in_line:
            return ""
        self._shown, self._committed = "", False
        return "\n"

    def finish(self) -> str:
        """The text that ends it all: the rest, and colours as they were before."""
        text = self._take(self._decoder.decode(b"", final=True), final=True) + self._draw()
        if self._coloured:
            self._coloured = False
            text += "\x1b[0m"
        return text

    def _take(self, text: str, *, final: bool) -> str:
        text = self._held + text
        self._held = ""
        out: list[str] = []
        position = 0
        while position < len(text):
            if self._at_start and (lines := _PLAIN_LINES.match(text, position)):
                position = lines.end()
                out.append(self._pass(lines[0]))
                continue
            token = _TOKEN.match(text, position)
            start = position
            if text[start] == "\x1b" and (token is None or token["control"]):
                if not final and _UNFINISHED.fullmatch(text, start):
                    self._held = text[start:]
                    break
                self._add(_ESCAPE_PICTURE, out)
                position += 1
                continue
            if token is None:  # cannot be: every other character is a token
                break
            position = token.end()
            if token["text"]:
                self._add(token["text"], out)
            elif token["control"]:
                self._control(token["control"], out)
            elif token["csi"]:
                self._sequence(token["csi"], token["parameters"], token["final"], out)
        return "".join(out)

    @property
    def _at_start(self) -> bool:
        return not (self._line or self._committed or self._shown or self._returned or self._back)

    def _pass(self, text: str) -> str:
        if "\x1b" in text:
            if not self._colour:
                return _COLOUR.sub("", text)
            self._note_colour(text)
        return text

    def _note_colour(self, text: str) -> None:
        """Remember whether ``text`` leaves the terminal in colours of its own."""
        last = text.rfind("\x1b[")
        if last >= 0:
            self._coloured = not text.startswith(("\x1b[m", "\x1b[0m"), last)

    def _control(self, control: str, out: list[str]) -> None:
        match control:
            case "\n":
                self._end_line(out)
            case "\r":
                self._returned, self._back = True, 0
            case "\b":
                self._back += 1
            case _:
                self._add(_picture(control), out)

    def _sequence(self, whole: str, parameters: str, final: str, out: list[str]) -> None:
        """A control sequence: colours stay, some mean a new state of the line, others vanish."""
        if _COLOUR.fullmatch(whole):
            if self._colour:
                if self._size + len(whole) > _LINE_LIMIT:
                    self._commit(out)
                self._line.append(whole)
                self._size += len(whole)
        elif final == "K" and (parameters == "2" or self._returned):
            self._clear()
        elif final == "G" and parameters in {"", "0", "1"}:
            self._returned, self._back = True, 0

    def _add(self, text: str, out: list[str]) -> None:
        """Text at the cursor, which stands behind the line, or (after CR, BS) within it."""
        if not text:
            return
        if self._returned:
            self._clear()
            if self._committed:
                self._committed, self._shown = False, ""
                out.append("\n")
        elif self._back:
            self._take_back()
        while text:
            room = _LINE_LIMIT - self._size
            self._line.append(text[:room])
            self._size += len(text[:room])
            text = text[room:]
            if text:
                self._commit(out)

    def _commit(self, out: list[str]) -> None:
        """Show the line so far for good, though it is not whole: nobody holds back megabytes."""
        out.append(self._draw())
        self._line, self._size, self._shown = [], 0, ""
        self._committed = True

    def _clear(self) -> None:
        """The line's state is overwritten; the colours that it has set stay in force."""
        colours = _COLOUR.findall("".join(self._line))
        for index in range(len(colours) - 1, -1, -1):
            if colours[index] in {"\x1b[m", "\x1b[0m"}:
                colours = colours[index:]
                break
        self._line = colours[-_CARRIED:]
        self._size = sum(map(len, self._line))
        self._returned, self._back = False, 0

    def _take_back(self) -> None:
        """As many characters as there were backspaces are about to be overwritten."""
        back, self._back = self._back, 0
        kept: list[str] = []
        for piece in reversed(re.split(r"(\x1b\[[0-9;:]*m)", "".join(self._line))):
            if not back or piece.startswith("\x1b"):
                kept.append(piece)
                continue
            count = min(back, len(piece))
            back -= count
            self._size -= count
            kept.append(piece[: len(piece) - count])
        self._line = kept[::-1]

    def _end_line(self, out: list[str]) -> None:
        out.append(self._draw())
        out.append("\n")
        self._line, self._size, self._shown = [], 0, ""
        self._returned, self._back, self._committed = False, 0, False

    def _draw(self) -> str:
        """The text that brings the line on the screen from what it shows to its state."""
        state = "".join(self._line)
        self._line = [state] if state else []
        shown, self._shown = self._shown, state
        added = state
        if state.startswith(shown):
            added = state[len(shown) :]
        elif self._columns is not None and width_of(shown) >= self._columns:
            # It was wrapped by the terminal: CR would only lead to the last of its rows.
            added = "\n" + state
        elif shown:
            missing = width_of(shown) - width_of(state)
            blank = f"\r{' ' * width_of(shown)}" if missing > 0 else ""
            added = f"{blank}\r{state}"
        self._note_colour(added)
        return added
