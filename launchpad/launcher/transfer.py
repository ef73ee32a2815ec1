"""`push` and `pull`: files as a tar stream through the one call; nothing is kept on the host."""

import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from launchpad.archive import DamagedArchive, Reader
from launchpad.command import to_text
from launchpad.errors import ClientError, ContainerError, LaunchpadError, ShellError
from launchpad.file_refusals import FileRefusal, file_error, judge_tar
from launchpad.frames import Frame
from launchpad.launcher.contact import Contact, connect
from launchpad.launcher.desk import Desk
from launchpad.launcher.ignoring import Excludes
from launchpad.launcher.packing import Packer, make_ignoring, measure
from launchpad.launcher.streaming import Streaming
from launchpad.launcher.tally import Tally
from launchpad.launcher.unpacking import Unpacker, hostile
from launchpad.printable import printable
from launchpad.scripts import remote_call
from launchpad.target import Target
from launchpad.transport.base import Channel

# How long a stream may stand still before the other side is taken for gone, and how long the far
# side may take to move what it has into place (seconds).
STALL = 120.0
PLACING = 600.0

_STEP = 0.2

# Done so far, and the whole if it is known; in bytes.
OnProgress = Callable[[int, int | None], None]


def _silent(_done: int, _total: int | None) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Push:
    """What goes where. ``path``: in the container, absolute or below ``~``.

    ``excludes``: patterns as in gitignore(5), heeded for directories, and ``gitignore``: those of
    the files of that name too. ``measured``: find out the total for ``on_progress``.
    """

    source: Path
    target: Target
    path: str
    user: str | None = None
    excludes: tuple[str, ...] = ()
    gitignore: bool = True
    measured: bool = False
    on_progress: OnProgress = _silent


@dataclass(frozen=True, slots=True)
class Pull:
    """The way back: ``path`` in the container, ``destination`` here; otherwise as :class:`Push`."""

    target: Target
    path: str
    destination: Path
    user: str | None = None
    excludes: tuple[str, ...] = ()
    measured: bool = False
    on_progress: OnProgress = _silent


@dataclass(frozen=True, slots=True)
class Transferred:
    """What was copied. ``elapsed``: seconds. ``remarks``: lines for the user, safe to show."""

    tally: Tally
    elapsed: float
    remarks: tuple[str, ...] = ()


def push(desk: Desk, request: Push) -> Transferred:
    """Copy to the container. All of it is there and whole before any of it takes its place.

    Raises :class:`~launchpad.errors.LaunchpadError` of the layer that failed.
    """
    _check_source(request.source)
    with connect(request.target, desk.options_for(request.target)) as contact:
        return push_over(contact, request)


def push_over(contact: Contact, request: Push) -> Transferred:
    """As :func:`push`, on a connection that is there."""
    _check_source(request.source)
    began = time.monotonic()
    kind = "directory" if request.source.is_dir() else "file"
    total = _Total(request) if request.measured else None
    packer = Packer(
        request.source,
        make_ignoring(request.source, request.excludes, gitignore=request.gitignore),
        lambda: request.on_progress(packer.tally.size, total.bytes if total else None),
    )
    words = [request.path, request.user or "", kind]
    call = remote_call(contact.prefix, ("common", "user", "files", "push"), words)
    channel = contact.start(call)
    try:
        streaming = Streaming(contact, channel, call.marker, "ready")
        reply = streaming.first()
        if reply.name == "ready":
            _send(streaming, packer)
            reply = streaming.last(PLACING)
        if reply.name != "placed":
            name = to_text(os.fsencode(request.source.resolve().name))
            raise _refused(reply, str(contact.target), request.path, name)
    finally:
        channel.close()
    left_out = [f"left out: {line}" for line in packer.tally.left_out.lines()]
    return Transferred(packer.tally, time.monotonic() - began, tuple(left_out))


def pull(desk: Desk, request: Pull) -> Transferred:
    """Copy from the container: each file is whole when it appears.

    Nothing is written outside of ``destination``, whatever the container sends. Raises
    :class:`~launchpad.errors.LaunchpadError` of the layer that failed; what is here by then stays.
    """
    Excludes(request.excludes)  # wrong ones are told before anybody is asked
    with connect(request.target, desk.options_for(request.target)) as contact:
        return pull_over(contact, request)


def pull_over(contact: Contact, request: Pull) -> Transferred:
    """As :func:`pull`, on a connection that is there."""
    began = time.monotonic()
    excludes = Excludes(request.excludes)
    words = [request.path, request.user or "", "yes" if request.measured else "no"]
    words += excludes.for_tar()
    call = remote_call(contact.prefix, ("common", "user", "files", "pull"), words)
    channel = contact.start(call)
    try:
        streaming = Streaming(contact, channel, call.marker, "archive")
        reply = streaming.first()
        if reply.name != "archive":
            raise _refused(reply, str(contact.target), request.path, "")
        kind, total = _kind_and_total(reply)
        _check_destination(request, kind)
        with Unpacker(
            request.destination,
            directory=kind == "directory",
            excludes=excludes,
            on_progress=lambda: request.on_progress(unpacker.tally.size, total),
        ) as unpacker:
            packed = _receive(streaming, unpacker, request.destination)
    finally:
        channel.close()
    return _judged(request, packed, unpacker.tally, time.monotonic() - began)


def _judged(request: Pull, packed: Frame, tally: Tally, elapsed: float) -> Transferred:
    if packed.name != "packed":
        raise _refused(packed, str(request.target), request.path, "")
    remarks, fault = judge_tar(to_text(packed.payload), "".join(packed.words))
    if fault:
        raise ContainerError(
            f"not everything of {printable(request.path)} in {request.target} could be read",
            details=fault,
            advice="the rest is here, and whole",
        )
    lines = [
        *(f"left out: {line}" for line in tally.left_out.lines()),
        *remarks,
        *(f"a link that leads out of the directory: {line}" for line in tally.outward.lines()),
    ]
    return Transferred(tally, elapsed, tuple(lines))


def _check_source(source: Path) -> None:
    if not source.exists():
        raise ClientError(
            f"there is no {printable(str(source))} on this machine",
            advice="SRC is a file or directory here; to copy from a container: launchpad pull",
        )


def _check_destination(request: Pull, kind: str) -> None:
    destination = request.destination
    shown = printable(str(destination))
    if kind == "file" and destination.is_dir():
        name = printable(request.path.rpartition("/")[2])
        raise ClientError(
            f"{shown} is a directory, and {printable(request.path)} is a file",
            details="a file does not take the place of a directory",
            advice=f"{shown.rstrip('/')}/{name}",
        )
    if kind == "directory" and destination.exists() and not destination.is_dir():
        raise ClientError(
            f"{shown} is not a directory, and {printable(request.path)} is one",
            advice="name another path, or remove it",
        )


def _kind_and_total(frame: Frame) -> tuple[str, int | None]:
    kind, total = (*frame.words, "", "")[:2]
    if kind not in {"directory", "file"}:
        raise ShellError(
            f"the container sends {printable(kind)!r}, neither a file nor a directory",
            advice="another version of launchpad at work there?",
        )
    return kind, int(total) if re.fullmatch(r"[0-9]{1,18}", total) else None


def _refused(frame: Frame, where: str, path: str, name: str) -> LaunchpadError:
    detail = to_text(frame.payload)
    return file_error(FileRefusal(" ".join(frame.words), detail, where, path, name))


class _Total:
    """The size of what is pushed, found out beside the push."""

    def __init__(self, request: Push) -> None:
        self.bytes: int | None = None
        self._request = request
        threading.Thread(target=self._run, name="launchpad-measure", daemon=True).start()

    def _run(self) -> None:
        # Whatever cannot be read is reported by whoever reads it.
        with suppress(OSError, LaunchpadError):
            request = self._request
            ignoring = make_ignoring(request.source, request.excludes, gitignore=request.gitignore)
            self.bytes = measure(request.source, ignoring)


class _Sender(threading.Thread):
    """Sends an archive, for it may have to wait, while somebody must listen to the far side."""

    def __init__(self, channel: Channel, packer: Packer) -> None:
        super().__init__(name="launchpad-push", daemon=True)
        self.pieces = 0
        self.failure: LaunchpadError | None = None
        self.stopped = False
        self._channel = channel
        self._packer = packer

    def run(self) -> None:
        """Send until the end, or until :attr:`stopped`."""
        try:
            for piece in self._packer.pieces():
                if self.stopped:
                    return
                self._channel.send(piece)
                self.pieces += 1
            self._channel.close_stdin()
        except LaunchpadError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001 # a thread that died in silence would hang us
            self.failure = ClientError(
                f"a fault in launchpad itself: {type(error).__name__}: {error}"
            )


def _send(streaming: Streaming, packer: Packer) -> None:
    """Send everything, or less where the far side has its last word before."""
    sender = _Sender(streaming.channel, packer)
    sender.start()
    try:
        seen, moved = 0, time.monotonic()
        while sender.is_alive():
            if streaming.listen(_STEP):
                return
            now = time.monotonic()
            if sender.pieces != seen:
                seen, moved = sender.pieces, now
            elif now - moved > STALL:
                raise streaming.stalled()
        if sender.failure is not None:
            raise sender.failure
    finally:
        sender.stopped = True


def _receive(streaming: Streaming, unpacker: Unpacker, destination: Path) -> Frame:
    """Unpack everything; the frame `packed`, which says so too where tar gave up in the middle."""
    reader = Reader()
    try:
        while not reader.ended:
            data = streaming.receive(STALL)
            if data is None:
                raise streaming.stalled()
            for item in reader.feed(data):
                unpacker.take(item)
    except (DamagedArchive, LaunchpadError) as error:
        packed = streaming.early_word(STALL)
        if packed is not None:
            return packed
        if isinstance(error, DamagedArchive):
            raise hostile(error, None, destination) from error
        raise
    unpacker.finish()
    return streaming.last(STALL, reader.rest)
