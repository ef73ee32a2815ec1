"""The ssh program's own log (``ssh -E``), apart from what commands print on stderr."""

import contextlib
import os

# More than this of a log is of no interest (bytes).
_LIMIT = 256 * 1024


class SshLog:
    """A file in memory that ssh opens by a path in /proc; on other systems a file on disk."""

    def __init__(self) -> None:
        self._file: str | None = None
        try:
            self._descriptor = os.memfd_create("launchpad-ssh-log")
        except (AttributeError, OSError):
            import tempfile

            self._descriptor, self._file = tempfile.mkstemp(prefix="launchpad-ssh-")
        # ssh closes what it inherits; it opens the log through us.
        self.path = self._file or f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def read(self) -> bytes:
        """All that ssh has said so far."""
        return os.pread(self._descriptor, _LIMIT, 0) if self._descriptor >= 0 else b""

    def close(self) -> None:
        """May be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._file)  # noqa: PTH108
            self._file = None
