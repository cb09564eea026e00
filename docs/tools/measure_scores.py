"""Writes docs/games/scores.json, what the players that ship get in every scenario.

    textbench leaderboard leaderboards --json > entries.json
    textbench leaderboard leaderboards/planning --json > planning.json
    textbench leaderboard leaderboards/exploration --json > exploration.json
    textbench run --suite all --scenario blackjack --scenario prisoners-dilemma-tft --agent random --agent blind \\
        --agent greedy --agent planner --out runs/all --json > all.json
    textbench run --scenario frozen-lake-big --scenario snake-long --agent tiny --agent tiny-msgrpo-frozen-lake \\
        --agent tiny-msgrpo-snake --out runs/tiny --json > tiny.json
    python docs/tools/measure_scores.py entries.json planning.json exploration.json all.json tiny.json

Where two have a score, the first one counts.
"""

import json
import sys
from pathlib import Path

from pages.scores import FILE, collected


def main(files: list[str]) -> int:
    """Put the scores of these documents into one file."""
    documents = [json.loads(Path(file).read_text(encoding="utf-8")) for file in files]
    lines = (f" {json.dumps(name)}: {json.dumps(scores)}" for name, scores in collected(documents).items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
