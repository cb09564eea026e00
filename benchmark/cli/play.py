"""Play a scenario yourself, at this terminal; you see what the agents see.

examples:
  textbench play frozen-lake
  textbench play snake-duel --against planner --episode 3
"""

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """What, and against whom."""
    parser.add_argument("scenario", metavar="SCENARIO", help="see textbench list scenarios")
    parser.add_argument(
        "--episode", type=int, default=0, metavar="K", help="the scenario's episode K, from 0 (default)"
    )
    parser.add_argument("--against", default="greedy", metavar="SPEC", help="who has the other seat (default greedy)")


def run(args: Namespace) -> int:
    """Play one episode."""
    from agents.episode import EpisodeTask
    from agents.loop.rollout import rollout
    from benchmark.errors import UsageError
    from benchmark.play.options import RunOptions
    from benchmark.play.players import load_policy
    from benchmark.runs.plan import find_scenarios

    if args.scenario in ("all", "paper"):
        raise UsageError(f"play one scenario, {args.scenario!r} is several; see textbench list scenarios")
    scenario = find_scenarios([args.scenario])[args.scenario]
    if args.episode < 0:
        raise UsageError(f"--episode must be at least 0, got {args.episode}")
    options = RunOptions()
    me = load_policy("human", options)
    players = scenario.game().players
    policies = {player: me if player == players[0] else load_policy(args.against, options) for player in players}
    task = EpisodeTask.of(scenario, scenario.seed(args.episode))
    try:
        (episode,) = rollout(policies, [task], max_concurrency=1)
    except EOFError:
        print("\nno more input; the episode wasn't finished")
        return 1
    for player, value in episode.returns.items():
        who = "you" if player == players[0] else args.against
        print(f"{who}: return {value:g}{', success' if episode.successes[player] else ''}")
    return 0
