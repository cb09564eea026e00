"""The levels of the players that ship, for docs/research/ladders.md: docs/research/ladders/players.json.

    python -m research.robustness.ladders.players [--agent SPEC ...] [--ladder NAME ...] [--episodes 100]

Plays them as ``textbench run --levels`` does, and puts their rows into the file; other rows stay.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import benchmark
from textgames import SCENARIOS

FILE = Path(__file__).parents[3] / "docs" / "research" / "ladders" / "players.json"
SCRIPTED = ("random", "blind", "greedy", "planner")


def main() -> int:
    """Play and write."""
    ladders = [name for name, scenario in SCENARIOS.items() if scenario.levels]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", action="append", metavar="SPEC", help=f"who; {', '.join(SCRIPTED)} otherwise")
    parser.add_argument("--ladder", action="append", metavar="NAME", choices=ladders, help="on what; all otherwise")
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="of each player on each ladder")
    given = parser.parse_args()
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    if FILE.exists():
        rows = {(row["scenario"], row["agent"]): row for row in json.loads(FILE.read_text(encoding="utf-8"))}
    for ladder in given.ladder or ladders:
        with tempfile.TemporaryDirectory() as folder:
            last = len(SCENARIOS[ladder].levels)
            found = benchmark.evaluate(
                given.agent or SCRIPTED,
                scenarios=[ladder],
                levels=f"1-{last}",
                episodes=given.episodes,
                out=Path(folder) / "run",
                quiet=True,
            )
            for row in found.document(max_episodes=0)["ladders"]:
                told: dict[str, Any] = {**row}
                rows[row["scenario"], row["agent"]] = {key: told[key] for key in told if key not in ("spread", "rungs")}
                print(row["scenario"], row["agent"], row["level"], row["beyond"], flush=True)
    ordered = sorted(rows.values(), key=lambda row: (ladders.index(row["scenario"]), row["level"]["value"]))
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, ordered)) + "\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
