"""The parts of a hand-written page that are made: between two comments, which readers don't see."""

import re

BY = "made by docs/tools/make_pages.py"


def marked(name: str, content: str) -> str:
    """A made part with its marks."""
    return f"<!-- {name}: {BY} -->\n\n{content.strip()}\n\n<!-- end of {name} -->"


def names_in(page: str) -> list[str]:
    """The names of a page's made parts, in their order."""
    return re.findall(rf"<!-- (\w+): {re.escape(BY)} -->", page)


def put(page: str, name: str, content: str) -> str:
    """The page with another content of one of its made parts.

    Raises:
        ValueError: the page has no such part, or more than one.
    """
    parts = re.compile(rf"<!-- {name}: {re.escape(BY)} -->.*?<!-- end of {name} -->", re.DOTALL)
    if len(parts.findall(page)) != 1:
        raise ValueError(f"the page has {len(parts.findall(page))} parts {name!r}, not one: {page.splitlines()[0]}")
    return parts.sub(lambda found: marked(name, content), page)
