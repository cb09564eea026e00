"""The parts of a hand-written page that are made: between two comments, which readers don't see.

The first comment says how the part is made: :data:`BY` ``docs/tools/make_pages.py``, and committed with the page; or
:data:`ON_THE_SITE`, when that is built. In the repository a sentence then names another place to read the same.
"""

import re
from collections.abc import Callable, Mapping

BY = "made"
ON_THE_SITE = "site"


def marked(name: str, content: str, by: str = BY) -> str:
    """Put a made part between its marks."""
    return f"<!--{by}:{name}-->\n\n{content.strip()}\n\n<!--end:{name}-->"


def names_in(page: str, by: str = BY) -> list[str]:
    """Return the names of a page's parts that are made in one way, in their order."""
    return re.findall(rf"<!--{by}:([\w-]+)-->", page)


def put(page: str, name: str, content: str, by: str = BY) -> str:
    """Replace the content of one of a page's made parts.

    Raises:
        ValueError: the page has no such part, or more than one.
    """
    parts = re.compile(rf"<!--{by}:{name}-->.*?<!--end:{name}-->", re.DOTALL)
    if len(parts.findall(page)) != 1:
        raise ValueError(f"the page has {len(parts.findall(page))} parts {name!r}, not one: {page.splitlines()[0]}")
    return parts.sub(lambda found: marked(name, content, by), page)


def remade(page: str, makers: Mapping[str, Callable[[], str]], by: str = BY) -> str:
    """Make all made parts of a page anew.

    Args:
        page: its text.
        makers: ``{name of a part: what makes its content}``; it may have parts that the page hasn't.
        by: which parts to make, :data:`BY` or :data:`ON_THE_SITE`; the others stay as they are.

    Raises:
        ValueError: one of the page's parts has no maker, or is there more than once.
    """
    for name in names_in(page, by):
        if name not in makers:
            raise ValueError(f"the part {name!r} has no maker; known here are {', '.join(makers)}")
        page = put(page, name, makers[name](), by)
    return page
