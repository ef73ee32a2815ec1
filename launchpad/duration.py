"""TIME as users write it: ``90``, ``90s``, ``5m``, ``2h``, ``1d``."""

import math
import re

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float | None:
    """The seconds that TIME stands for; None where it is none."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)", text.strip())
    if match is None:
        return None
    seconds = float(match[1]) * _UNITS[match[2]]
    return seconds if math.isfinite(seconds) else None
