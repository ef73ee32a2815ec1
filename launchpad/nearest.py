"""Which known words a mistyped one is close to."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], *, count: int = 1, cutoff: float = 0.6) -> list[str]:
    """The ``count`` nearest of ``known``, nearest first; none that is less like it than ``cutoff``.

    ``cutoff``: the ratio of difflib's SequenceMatcher, 0 to 1.
    """
    # Late: most words are right, and this costs 3 ms.
    from difflib import get_close_matches

    return get_close_matches(word, known, n=count, cutoff=cutoff)
