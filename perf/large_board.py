"""The page of a board of many agents: processor time and size. ::

    python perf/large_board.py [--agents 100] [--episodes 5000]

The agents are the entries in ``leaderboards/`` under many names, 4 scenarios with 50 episodes each; ``--episodes`` of
them are on the page with their steps. The time should grow with the agents, not with their pairs.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))


def make_board(folder: Path, agents: int) -> None:
    """Copies of the entries; agents of equal names get their folder's name in front."""
    entries = sorted(path.parent for path in (ROOT / "leaderboards").glob("*/manifest.json"))
    for place in range(agents):
        shutil.copytree(entries[place % len(entries)], folder / f"board-{place}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=5000)
    args = parser.parse_args()
    from benchmark.score.results import read_columns
    from benchmark.show.document_of import results_document
    from benchmark.show.page import write_page

    with tempfile.TemporaryDirectory() as name:
        folder, page = Path(name) / "board", Path(name) / "page.html"
        make_board(folder, args.agents)
        started = time.process_time()
        document = results_document(read_columns([folder]), max_episodes=args.episodes)
        read = time.process_time()
        size = write_page(document, page)
        written = time.process_time()
    print(f"{args.agents} agents, {len(document['scores'])} scores, {document['episodes_total']} episodes")
    print(f"document {read - started:6.1f} s of processor time, {len(document['comparisons'])} comparisons")
    print(f"page     {written - read:6.1f} s, {size / 1e6:.1f} MB with {len(document['episodes'])} replays")


if __name__ == "__main__":
    main()
