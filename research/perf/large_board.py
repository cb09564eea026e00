"""The page of a board of many agents: processor time to make it, size, and how long chromium takes to open it. ::

    python research/perf/large_board.py [--agents 100] [--episodes 5000] [--suites [--seeds 10]] [--open]

The agents are the entries in ``leaderboards/`` under many names, 4 scenarios with 50 episodes each. With ``--suites``
they are five random players that play every scenario that ships, against each other if several play, under many
names. ``--episodes`` of them are on the page with their steps. ``--open`` needs playwright and chromium.

Values of reference players and luck are in the cache folder after the first time: run it twice for the figures of a
board that is made again. The time should grow with the agents, not with their pairs.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
GROUP = 5  # random players of one run


def make_board(folder: Path, agents: int) -> None:
    """Copies of the entries; agents of equal names get their folder's name in front."""
    entries = sorted(path.parent for path in (ROOT / "leaderboards").glob("*/manifest.json"))
    for place in range(agents):
        shutil.copytree(entries[place % len(entries)], folder / f"board-{place}")


def make_wide_board(folder: Path, agents: int, seeds: int) -> None:
    """Copies of one run of five players over all suites."""
    import benchmark

    players = {f"player-{number}": "random" for number in range(GROUP)}
    first = folder / "board-0"
    benchmark.evaluate(players, suite="all", episodes=seeds, out=first, quiet=True)
    for place in range(1, agents // GROUP):
        shutil.copytree(first, folder / f"board-{place}")


def make_page(folder: Path, page: Path, episodes: int) -> None:
    """Read, compute and write, each with its processor time."""
    from benchmark.score import read_columns
    from benchmark.show import results_document, write_page

    started = time.process_time()
    columns = read_columns([folder])
    read = time.process_time()
    document = results_document(columns, max_episodes=episodes)
    computed = time.process_time()
    size = write_page(document, page)
    written = time.process_time()
    counts = (
        f"{len(document['agents'])} agents, {len(document['scenarios'])} scenarios, {len(document['scores'])} scores"
    )
    print(f"{counts}, {document['episodes_total']} episodes")
    print(f"read     {read - started:6.1f} s of processor time")
    print(f"document {computed - read:6.1f} s, {len(document['comparisons'])} comparisons")
    print(f"page     {written - computed:6.1f} s, {size / 1e6:.1f} MB with {len(document['episodes'])} replays")
    print(f"all      {written - started:6.1f} s", flush=True)


def open_page(page: Path, times: int = 5) -> None:
    """Print how long chromium takes until the overview is on show, and until a scenario's view is."""
    from playwright.sync_api import sync_playwright

    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        for what, address in (("overview", ""), ("scenario", "#leaderboard?scenario=snake"), ("replay", "#replay")):
            seconds = []
            for _ in range(times):
                tab = browser.new_page(viewport={"width": 1280, "height": 900})
                started = time.perf_counter()
                tab.goto(page.as_uri() + address)
                tab.locator("main table >> visible=true").first.wait_for()
                seconds.append(time.perf_counter() - started)
                tab.close()
            print(f"open, {what:9s} {statistics.median(seconds):5.2f} s, median of {times}", flush=True)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--suites", action="store_true", help="all suites in place of the entries' four scenarios")
    parser.add_argument("--seeds", type=int, default=10, help="with --suites: seeds of every table")
    parser.add_argument("--open", action="store_true", help="open the page in chromium, too")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, page = Path(name) / "board", Path(name) / "page.html"
        folder.mkdir()
        if args.suites:
            make_wide_board(folder, args.agents, args.seeds)
        else:
            make_board(folder, args.agents)
        make_page(folder, page, args.episodes)
        if args.open:
            open_page(page)


if __name__ == "__main__":
    main()
