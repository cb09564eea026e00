"""Help with misspelt names, for the errors of this package; imports nothing heavy."""

import difflib
from collections.abc import Collection


def did_you_mean(name: str, known: Collection[str]) -> str:
    """``" (did you mean 'x'?)"`` for the known name nearest to the given one, or nothing."""
    near = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
