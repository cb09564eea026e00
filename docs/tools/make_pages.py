"""Makes what of the documentation comes from the code, and writes it into docs/.

    python docs/tools/make_pages.py            # everything
    python docs/tools/make_pages.py --check    # only say what is stale

The made parts of the games' pages with their pictures, the pages of methods, and the picture of the README. All play is
seeded, so that nothing changes where nothing has changed.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from pages import games, methods
from pages.training import training_picture

DOCS = Path(__file__).parents[1]


def made() -> Iterator[tuple[Path, str]]:
    """Every made file with the text that it should have."""
    for page in games.pages():
        yield page.file, page.made()
        for name, drawing in games.drawings(page).items():
            yield games.PICTURES / name, drawing
    for name, text in methods.method_pages().items():
        yield methods.FOLDER / name, text
    yield DOCS / "images/play.svg", training_picture()


def stale() -> Iterator[tuple[Path, str]]:
    """The made files that aren't as they should be."""
    for file, text in made():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            yield file, text


def main(arguments: list[str]) -> int:
    """Write what is stale, or only name it."""
    if set(arguments) - {"--check"}:
        print(__doc__, file=sys.stderr)
        return 2
    found = 0
    for file, text in stale():
        found += 1
        print(file.relative_to(DOCS.parent))
        if "--check" not in arguments:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    return 1 if found and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
