"""Compare players on the same episodes, from Python: scores with intervals, and the difference of two players.

    python examples/evaluate.py
    python examples/evaluate.py openai:gpt-4o-mini greedy --scenario snake --episodes 10 --out runs/mine

A player is named as after ``textbench run --agent``. With ``--out`` the episodes are kept in a folder that every
command reads (``textbench replay runs/mine``), and the same call plays only the missing episodes.
"""

import argparse

import benchmark

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("agents", nargs="*", default=["planner", "greedy", "random"], help="two players or more")
parser.add_argument("--scenario", action="append", help="what is played, may be given again (frozen-lake-slippery)")
parser.add_argument("--episodes", type=int, default=50, help="of each scenario")
parser.add_argument("--out", help="the folder that keeps the episodes")
options = parser.parse_args()
scenarios = options.scenario or "frozen-lake-slippery"

try:
    results = benchmark.evaluate(options.agents, scenarios=scenarios, episodes=options.episodes, out=options.out)
    print(results.leaderboard())  # 0 is the best play that doesn't read, 1 is optimal play
    print(results.compare(*options.agents[:2]))  # paired: both have met the same boards
except benchmark.UsageError as error:  # such as a player that doesn't exist, or one player alone
    parser.error(str(error))

for score in results.leaderboard().scores:
    mean = score["mean_return"]
    print(f"{score['agent']}: {mean['value']:.2f} [{mean['low']:.2f}, {mean['high']:.2f}] in {score['scenario']}")
