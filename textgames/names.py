"""Help with misspelt names, for every error that quotes one."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the known name nearest to ``name``, or ``""`` when none is near."""
    near = _nearest(name, list(known))
    return f" (did you mean {near!r}?)" if near else ""


def nearest_or_all(name: str, known: Iterable[str]) -> str:
    """Return ``"did you mean 'x'?"``, or else ``"there are: a, b"``, as the second half of a sentence."""
    names = list(known)
    near = _nearest(name, names)
    return f"did you mean {near!r}?" if near else f"there are: {', '.join(names) or 'none'}"


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` differs from by a letter or so; ``None`` when it differs from all by more."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.9)), None)


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name of nearly the same letters, or that has this word: ``seed_offset`` for ``seed``."""
    near = get_close_matches(name, known, n=1)
    of_word = [one for one in known if name in re.split("[_-]", one)]
    return near[0] if near else of_word[0] if len(of_word) == 1 else None
