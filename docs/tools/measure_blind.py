"""Make the table of the best blind players, textgames/shelf/blind.json: what a normalised score of 0 is.

    python docs/tools/measure_blind.py [SCENARIO ...] [--again]

Every scenario for one player and every level that has no row is searched, half an hour for all; a row is written as
soon as it is there, so that an interrupted run resumes. ``--again`` makes existing rows anew.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from textgames import SCENARIOS
from textgames.solving.blind import found_by, search

TABLE = Path(__file__).parents[2] / "textgames" / "shelf" / "blind.json"


def main() -> int:
    """Search what has no row, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "scenarios", nargs="*", metavar="SCENARIO", help="all that have one player, where none is named"
    )
    parser.add_argument("--again", action="store_true", help="also those that have a row")
    given = parser.parse_args()
    scenarios = {each.name: each for one in SCENARIOS.values() for each in (one, *one.levels)}
    if unknown := [name for name in given.scenarios if name not in scenarios]:
        parser.error(f"unknown scenario {unknown[0]!r}; there are {', '.join(scenarios)}")
    rows = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    rows = {name: row for name, row in rows.items() if name in scenarios}
    for name in given.scenarios or scenarios:
        game, horizon = scenarios[name].game(), scenarios[name].horizon
        if len(game.players) != 1:
            continue
        if not given.again and rows.get(name, {}).items() >= found_by(game, horizon).items():
            continue
        started = time.perf_counter()
        play = search(game, horizon)
        rows[name] = {**found_by(game, horizon), **play._asdict()}
        _write({name: rows[name] for name in scenarios if name in rows})
        print(
            f"{name}: {play.text}: {play.value:.4f} +- {play.standard_error:.4f}, "
            f"{time.perf_counter() - started:.0f} s",
            flush=True,
        )
    _write({name: rows[name] for name in scenarios if name in rows})
    return 0


def _write(rows: dict[str, object]) -> None:
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    draft = TABLE.with_suffix(".draft")
    draft.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    draft.replace(TABLE)


if __name__ == "__main__":
    sys.exit(main())
