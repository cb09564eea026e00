"""Makes what of the documentation comes from the code and from measured files, and writes it into docs/.

    python docs/tools/make_pages.py            # everything
    python docs/tools/make_pages.py --check    # only say what is stale

The made parts of the games' pages with their pictures, the gallery of all games, the tables of ladders, speeds and
papers, the prompt on the page of players, the JSON Schemas, the names of the API, and the picture of the README. All
play is seeded, so that nothing changes if nothing has changed. What is measured is kept beside the pages:
docs/games/scores.json by docs/tools/measure_scores.py, docs/games/speeds.json by research/perf/games.py,
docs/games/headroom.json by research/perf/headroom.py. The pages of methods and the tables of the reference pages
are made when the site is built: docs/conf.py.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from pages import api, gallery, games, papers, reference, tables
from pages.pictures import training

DOCS = Path(__file__).parents[1]
MAKERS = (reference, api, gallery, tables, papers, games, training)


def stale() -> Iterator[tuple[Path, str]]:
    """Yield the made files that aren't as they should be, each with its right text."""
    for maker in MAKERS:
        for file, text in maker.files():
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
