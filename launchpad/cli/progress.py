"""A line on the terminal that says what is being waited for, and how long already."""

import sys
import threading
import time

_STEP = 0.25
# Whatever is over in less time needs no explanation (seconds).
_PATIENCE = 1.0
_ERASE = "\r\x1b[K"


class Progress:
    """``waiting for … 00:41`` on stderr, rewritten in place; nothing where that is no terminal.

    ``label`` must be printable. Stop it before anything else is printed.
    """

    def __init__(self, label: str, *, enabled: bool) -> None:
        self._label = label
        self._began = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True) if enabled else None

    def start(self) -> None:
        """Begin to show it, once it has taken longer than a moment."""
        if self._thread is not None:
            self._thread.start()

    def stop(self) -> None:
        """Take the line away; may be called twice."""
        self._over.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        if self._over.wait(_PATIENCE):
            return
        # Late: most of what is waited for is over by now.
        import shutil

        while True:
            seconds = int(time.monotonic() - self._began)
            line = f"{self._label} … {seconds // 60:02}:{seconds % 60:02}"
            self._write(f"{_ERASE}{line[: shutil.get_terminal_size().columns - 1]}")
            if self._over.wait(_STEP):
                self._write(_ERASE)
                return

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):
            self._over.set()
