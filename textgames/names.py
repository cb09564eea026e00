"""Help with misspelt names, for every error that quotes one."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the known name nearest to ``name``, or ``""`` when none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def nearest_or_all(name: str, known: Iterable[str]) -> str:
    """Return ``"did you mean 'x'?"``, or else ``"there are: a, b"``, as the second half of a sentence."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names) or 'none'}"
