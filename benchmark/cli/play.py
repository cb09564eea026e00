"""Play a scenario yourself, at this terminal; you see what the agents see.

Arrow keys act at once in games with these directions; every action can be typed by its name or a clear beginning of
it, and Enter. ? shows the rules, q quits. Where standard input isn't a terminal, every line is an action.

examples:
  textbench play frozen-lake
  textbench play snake-duel --against planner --episode 3
"""

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the episode that is played, and who has the other seats."""
    parser.add_argument("scenario", metavar="SCENARIO", help="see textbench list scenarios")
    parser.add_argument(
        "--episode", type=int, default=0, metavar="K", help="the scenario's episode K, from 0 (default)"
    )
    parser.add_argument("--against", metavar="SPEC", help="who has the other seats (default greedy, or random)")


def run(args: Namespace) -> int:
    """Let the user play one episode."""
    from benchmark.errors import UsageError
    from benchmark.play.by_hand import play_by_hand
    from benchmark.runs.manifest import MOST_SEEDS
    from benchmark.runs.plan import find_scenario, num_players

    scenario = find_scenario(args.scenario, "play")
    if not 0 <= args.episode < MOST_SEEDS:
        raise UsageError(f"--episode must be from 0 to {MOST_SEEDS - 1}, got {args.episode}")
    if args.against is not None and num_players(scenario) == 1:
        raise UsageError(f"{args.scenario} is played alone: leave out --against {args.against}")
    return play_by_hand(scenario, scenario.seed(args.episode), args.against)
