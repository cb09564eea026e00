"""Compute the values of blind play and the optimum in the settings of published results, and write the page's table.

    python -m research.robustness.lakes docs/research/lakes.json docs/research/lakes.md

Both values are exact on each of the maps that are drawn, and their means are over maps.
"""

import argparse
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from research.robustness.lakes.card import FILE, MAPS, Card, episodes_to_tell, measure

BEGIN, END = "<!-- table: python -m research.robustness.lakes -->", "<!-- end of the table -->"


def table(card: Card, values: Mapping[str, Any]) -> list[str]:
    """Return the lines of the page's tables."""
    lines = [
        "| setting | size | ice | start | moves | goes as meant | blind play | optimum | read in |",
        "|---" * 9 + "|",
    ]
    for name, setting in card.settings.items():
        own, told = values[name], [_range(setting.size), _range(setting.ice), setting.starts, setting.steps]
        ends = (_estimate(own["blind"]), _estimate(own["optimum"]), setting.source)
        lines.append("| " + " | ".join(map(str, [f"`{name}`", *told, f"{setting.success:.2g}", *ends])) + " |")
    lines += [
        "",
        "| result | setting | success | of the way from blind play | episodes to tell it from blind play | source |",
    ]
    lines.append("|---" * 6 + "|")
    for result in card.results:
        blind, best = (values[result.setting][each]["value"] for each in ("blind", "optimum"))
        way, needed = (result.success - blind) / (best - blind), episodes_to_tell(result.success, blind)
        source = result.source + (f" ({result.doubt})" if result.doubt else "")
        rate = f"{result.success:.3g}" + (f" of {result.episodes}" if result.episodes else "")
        lines.append(f"| {result.who} | `{result.setting}` | {rate} | {way:.0%} | {needed} | {source} |")
    return lines


def _range(ends: Any) -> str:
    return " to ".join(map(str, ends)) if isinstance(ends, Sequence) and not isinstance(ends, str) else str(ends)


def _estimate(one: Mapping[str, float]) -> str:
    return f"{one['value']:.3f} [{one['low']:.3f}, {one['high']:.3f}]"


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
    options = parser.parse_args()
    try:
        page = options.page.read_text(encoding="utf-8")
        options.values.touch()
    except (OSError, UnicodeDecodeError) as error:
        parser.error(str(error))
    if options.maps < 2 or BEGIN not in page or END not in page:
        parser.error(f"--maps takes at least 2, got {options.maps}; {options.page} needs the lines {BEGIN} and {END}")
    card = Card.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))
    values = measure(card, options.maps)
    options.values.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    options.page.write_text(with_table(page, table(card, values)), encoding="utf-8")


if __name__ == "__main__":
    main()
