"""Compute the values of blind play and the optimum in the settings of published results, and write the page's tables.

    python -m research.robustness.published docs/research/published.json docs/research/published.md

Both values are exact on each map or board, and their means are over these. Settings that the file of values has already
are left out. Boards of Sokoban are drawn by the generator of its project, a file of Python that is run:

    python -m research.robustness.published ... --draw sokoban-vagen site-packages/gym_sokoban/envs/room_utils.py
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agents.common import Estimate, problem_of, read_toml
from research.jobs import report
from research.jobs.intervals import share_of
from research.robustness.published.card import FILE, MOST, Card, episodes_to_tell, measure
from research.robustness.published.settings import MAPS

BEGIN, END = "<!-- table: python -m research.robustness.published -->", "<!-- end of the table -->"


def table(card: Card, values: Mapping[str, Any]) -> list[str]:
    """Return the lines of the page's tables."""
    ends = {name: [f"{Estimate(**own[end]):.3f}" for end in ("blind", "optimum")] for name, own in values.items()}
    lakes = [
        [f"`{name}`", _range(one.size), _range(one.ice), one.starts, one.steps, f"{one.success:.2g}", *ends[name]]
        for name, one in card.lakes.items()
    ]
    boards = [
        [f"`{name}`", one.generator, one.size, one.boxes, _range(one.shortest or "any"), one.steps, *ends[name]]
        for name, one in card.sokoban.items()
    ]
    told = [[f"`{name}`", one.prompt, one.source] for name, one in card.settings.items()]
    results = []
    for result in card.results:
        blind, best = (values[result.setting][each]["value"] for each in ("blind", "optimum"))
        way = (result.success - blind) / (best - blind)
        needed = episodes_to_tell(result.success, blind) or f"over {MOST:,}"
        source = result.source + (f" ({result.doubt})" if result.doubt else "")
        rate = f"{result.success:.3g}"
        if result.episodes:
            won = round(result.success * result.episodes)
            rate = f"{share_of([1] * won + [0] * (result.episodes - won)):.3f} of {result.episodes:,}"
        results.append([result.who, f"`{result.setting}`", rate, f"{way:.0%}", needed, source])
    tables: tuple[tuple[Sequence[str], Sequence[Sequence[Any]]], ...] = (
        (("setting", "size", "ice", "start", "moves", "goes as meant", "blind play", "optimum"), lakes),
        (("setting", "generator", "size", "boxes", "shortest solution", "moves", "blind play", "optimum"), boards),
        (("setting", "the model sees", "read in"), told),
        (
            ("result", "setting", "success", "of the way from blind play", "episodes to tell it from that", "source"),
            results,
        ),
    )
    shown = (report.table(columns, [[*map(str, row)] for row in rows]) for columns, rows in tables)
    return "\n\n".join(shown).splitlines()


def _range(ends: Any) -> str:
    return " to ".join(map(str, ends)) if isinstance(ends, Sequence) and not isinstance(ends, str) else str(ends)


def with_table(page: str, lines: Sequence[str]) -> str:
    """Return a page with other lines between its marks."""
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    return f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}"


def main() -> None:
    """Measure all settings, and write the values and the page's table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("values", type=Path, help="the JSON file of the values")
    parser.add_argument("page", type=Path, help="the page with the table")
    parser.add_argument("--maps", type=int, default=MAPS)
    parser.add_argument(
        "--draw", nargs=2, action="append", default=[], metavar=("SETTING", "FILE"), help="draw a setting's boards"
    )
    options = parser.parse_args()
    try:
        _write(options)
    except ValidationError as error:
        parser.error(f"{FILE.name}: {problem_of(error)}")
    except (OSError, ValueError) as error:
        parser.error(str(error))


def _write(options: argparse.Namespace) -> None:
    card = Card.model_validate(read_toml(FILE, FILE.name))
    if unknown := [each.setting for each in card.results if each.setting not in card.settings]:
        raise ValueError(f"{FILE.name}: no setting {unknown[0]!r} of a result; there are {', '.join(card.settings)}")
    page = options.page.read_text(encoding="utf-8")
    with options.values.open("a+", encoding="utf-8") as stream:  # it can be written, which a refusal later would cost
        stream.seek(0)
        known = json.loads(stream.read() or "{}")
    if not isinstance(known, dict):
        raise ValueError(f"{options.values} isn't a file of values: delete it")
    if options.maps < 2:
        raise ValueError(f"--maps takes at least 2, got {options.maps}")
    if BEGIN not in page or END not in page:
        raise ValueError(f"{options.page} needs the lines {BEGIN} and {END}")
    for name, file in options.draw:
        if name not in card.sokoban:
            raise ValueError(f"--draw takes a setting of Sokoban, {', '.join(card.sokoban)}, got {name!r}")
        card.sokoban[name].draw(name, Path(file))
        known.pop(name, None)
    values = measure(card, options.maps, known)
    options.values.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    options.page.write_text(with_table(page, table(card, values)), encoding="utf-8")


if __name__ == "__main__":
    main()
