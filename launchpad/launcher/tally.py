"""What a transfer has come to."""

from dataclasses import dataclass, field

_SHOWN = 10


@dataclass(slots=True)
class Remarks:
    """Lines to tell the user at the end: the first few, and how many there were."""

    first: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, line: str) -> None:
        """One more; ``line`` must be printable."""
        self.count += 1
        if self.count <= _SHOWN:
            self.first.append(line)

    def lines(self) -> list[str]:
        """What there is to say."""
        more = self.count - len(self.first)
        return [*self.first, f"… and {more} more"] if more else list(self.first)


@dataclass(slots=True)
class Tally:
    """Files (links included) and their bytes so far.

    ``left_out``: what cannot be copied: sockets, devices, what vanished. ``outward``: links that
    lead out of the directory that was pulled.
    """

    files: int = 0
    size: int = 0
    left_out: Remarks = field(default_factory=Remarks)
    outward: Remarks = field(default_factory=Remarks)
