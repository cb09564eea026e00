"""The parts of a hand-written page that are made: between two comments, which readers don't see.

The first comment says who makes the part: :data:`BY`, whose work is committed with the page, or :data:`ON_THE_SITE`,
where the repository has a sentence in its place that says where else the same can be read.
"""

import re
from collections.abc import Callable, Mapping

BY = "made by docs/tools/make_pages.py"
ON_THE_SITE = "made when the site is built"


def marked(name: str, content: str, by: str = BY) -> str:
    """A made part with its marks."""
    return f"<!-- {name}: {by} -->\n\n{content.strip()}\n\n<!-- end of {name} -->"


def names_in(page: str, by: str = BY) -> list[str]:
    """The names of a page's parts that one maker makes, in their order."""
    return re.findall(rf"<!-- ([\w-]+): {re.escape(by)} -->", page)


def put(page: str, name: str, content: str, by: str = BY) -> str:
    """The page with another content of one of its made parts.

    Raises:
        ValueError: the page has no such part, or more than one.
    """
    parts = re.compile(rf"<!-- {name}: {re.escape(by)} -->.*?<!-- end of {name} -->", re.DOTALL)
    if len(parts.findall(page)) != 1:
        raise ValueError(f"the page has {len(parts.findall(page))} parts {name!r}, not one: {page.splitlines()[0]}")
    return parts.sub(lambda found: marked(name, content, by), page)


def remade(page: str, makers: Mapping[str, Callable[[], str]], by: str = BY) -> str:
    """The page with all of its made parts as they should be.

    Args:
        page: its text.
        makers: ``{name of a part: what makes its content}``; it may have parts that the page hasn't.
        by: which parts are meant, :data:`BY` or :data:`ON_THE_SITE`; the others stay as they are.

    Raises:
        ValueError: nobody makes one of the page's parts, or it is there more than once.
    """
    for name in names_in(page, by):
        if name not in makers:
            raise ValueError(f"nobody makes the part {name!r}; known here are {', '.join(makers)}")
        page = put(page, name, makers[name](), by)
    return page
