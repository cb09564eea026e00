"""Measure the levels of ladders and write it into their tables, textgames/ladders/NAME.toml.

    python docs/tools/measure_blind.py                        # first: play that doesn't read, of new levels
    python -m research.robustness.ladders.measure [NAME ...] [--check] [--starts 300]

A minute for each ladder. ``--check`` only says what is written otherwise. Levels are chosen by hand: of settings that
were measured like this, ten whose tolerances are spread evenly on a scale of ratios, as far as the generator allows.
"""

import argparse
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from research.robustness.ladders.difficulty import Measured, measure
from textgames import SCENARIOS, Scenario
from textgames.solving import blind_play

FOLDER = Path(__file__).parents[3] / "textgames" / "ladders"
STARTS = 300


def main() -> int:
    """Measure the ladders that are named, or all."""
    names = [name for name, scenario in SCENARIOS.items() if scenario.ladder is not None]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ladders", nargs="*", metavar="NAME", help=f"all of {', '.join(names)} where none is named")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--starts", type=int, default=STARTS, metavar="N", help="starts that each level is measured on")
    given = parser.parse_args()
    if unknown := [name for name in given.ladders if name not in names]:
        parser.error(f"{unknown[0]!r} has no ladder; there are {', '.join(names)}")
    stale = 0
    for name in given.ladders or names:
        rows = []
        known = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))["levels"]
        for scenario, row in zip(SCENARIOS[name].levels, known, strict=True):
            asked = {key: row[key] for key in ("settings", "horizon")}
            rows.append({**asked, **shown(level_measured(scenario, given.starts))})
            print(scenario.name, {key: value for key, value in rows[-1].items() if key != "settings"}, flush=True)
        text = table(name, rows)
        stale += text != (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
        if not given.check:
            (FOLDER / f"{name}.toml").write_text(text, encoding="utf-8")
    return int(given.check and stale > 0)


def level_measured(scenario: Scenario, starts: int = STARTS) -> Measured:
    """Return what is measured of a level, or of any other scenario of a solved game."""
    play = blind_play(scenario)
    assert play is not None  # levels are for one player
    return measure(scenario.game(), scenario.horizon, play.value, starts)


def shown(measured: Measured) -> dict[str, float]:
    """Return the figures as tables hold them."""
    told = measured._replace(optimum=round(measured.optimum, 3), tolerance=round(measured.tolerance, 3))._asdict()
    return {key: value for key, value in told.items() if value is not None}


def table(scenario: str, rows: list[dict[str, Any]]) -> str:
    """Return a ladder's file."""
    head = f'# measured by research/robustness/ladders/measure.py\nscenario = "{scenario}"\n'
    return "\n".join([head, *("[[levels]]\n" + "".join(f"{k} = {_toml(v)}\n" for k, v in row.items()) for row in rows)])


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_toml(each)}' for key, each in value.items())} }}"
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    sys.exit(main())
