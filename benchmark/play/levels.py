"""The levels that ``--levels`` names. It imports nothing, as the command line is read with it."""


def read_levels(text: str) -> str:
    """Return a range of levels in its one spelling, ``"1-10"``; a ValueError if it is none."""
    first, dash, last = text.replace(" ", "").partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 1 <= int(first) < int(last)):
        raise ValueError(f"levels are two numbers from 1 with a dash between, the easier one first: 1-10, got {text!r}")
    return f"{int(first)}-{int(last)}"


def levels_in(text: str) -> range:
    """Return the levels of such a range."""
    first, last = map(int, text.split("-"))
    return range(first, last + 1)
