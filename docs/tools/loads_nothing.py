"""Checks that no page of the built site loads anything from elsewhere.

    python docs/tools/loads_nothing.py build/site

A page whose scripts, styles, fonts or pictures come from another host is broken without a network, and tells that host
who reads it. Links that a reader follows are free to lead anywhere.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

FOREIGN = re.compile(r"\s*(https?:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?\s*((?:https?:)?//[^"')\s;]+)""", re.IGNORECASE)
IN_SCRIPTS = re.compile(
    r"""(?:\bimport\b[^;"'\n]*|\bfetch\(|\bimportScripts\(|\.(?:src|href)\s*=)\s*["'`]((?:https?:)?//[^"'`]+)"""
)
LOADING = {"src", "srcset", "data", "poster", "background"}
NOT_LOADED = {"canonical", "next", "prev", "search", "index", "author", "license", "help", "up", "alternate", "edit"}
"""Relations of a ``<link>`` that only name another page."""


class Loads(HTMLParser):
    """Collects in ``found`` what a page loads from elsewhere; pictures that are SVG are read likewise."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._inside = tag
        loading = LOADING & values.keys()
        if tag == "link" and not set(values.get("rel", "").lower().split()) <= NOT_LOADED:
            loading |= {"href"} & values.keys()
        if tag in ("image", "use", "feimage"):
            loading |= {"href", "xlink:href"} & values.keys()
        self.found += [values[name] for name in sorted(loading) if any(map(FOREIGN.match, values[name].split(",")))]
        self.found += IN_STYLES.findall(values.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.found += IN_STYLES.findall(data)
        elif self._inside == "script":
            self.found += IN_SCRIPTS.findall(data)


def loaded(text: str, suffix: str) -> list[str]:
    """Return the addresses elsewhere that a file of the site loads from.

    Args:
        text: of the file.
        suffix: of its name: ``".html"``, ``".svg"``, ``".css"`` or ``".js"``. In scripts only literal addresses count.
    """
    if suffix == ".css":
        return IN_STYLES.findall(text)
    if suffix == ".js":
        return IN_SCRIPTS.findall(text)
    page = Loads()
    page.feed(text)
    page.close()
    return page.found


def problems(folder: Path) -> Iterator[str]:
    """Yield ``PAGE: loads ADDRESS`` of every such address."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".html", ".svg", ".css", ".js"):
            for address in dict.fromkeys(loaded(file.read_text(encoding="utf-8"), file.suffix)):
                yield f"{file.relative_to(folder)}: loads {address}"


def main(arguments: list[str]) -> int:
    """Print what is loaded from elsewhere; 1 if there is anything."""
    if len(arguments) != 1 or not Path(arguments[0], "index.html").is_file():
        print(__doc__, file=sys.stderr)
        return 2
    found = list(problems(Path(arguments[0])))
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
