"""Play agents on scenarios into a run folder, and print the leaderboard.

With nothing: random, greedy, planner and the embedded models on the paper's four scenarios, 50 episodes each.

examples:
  textbench run
  textbench run --agent planner --agent openai:gpt-4o-mini --scenario snake --episodes 20
  textbench run --agent base=hf:./checkpoint --out runs/base --json
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from benchmark.play.options import add_options, read_options

if TYPE_CHECKING:
    from benchmark.runs.plan import Plan


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the options of a run."""
    add_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--dry-run", action="store_true", help="say what would be played, and play nothing")


def run(args: Namespace) -> int:
    """Play, or only say what would be played."""
    from dataclasses import replace

    from agents.redaction import Redactor
    from benchmark.play.players import AgentSpec, Players, default_agents
    from benchmark.play.session import Output, play_session, prepare
    from benchmark.runs.plan import Plan, find_scenarios

    options = read_options(args)
    scenarios = find_scenarios(options.scenarios)
    agents = options.agents or tuple(default_agents(scenarios.values()))
    options = replace(options, agents=agents, scenarios=tuple(scenarios))
    players = Players([AgentSpec.parse(text) for text in options.agents], options)
    plan = Plan.of(tuple(players.specs), scenarios, options.episodes, options.seed_offset)
    if args.dry_run:
        return _dry_run(plan, args.json)
    redactor = Redactor.from_environment([options.base_url or ""])
    folder = prepare(options, plan, players, redactor)
    plan = Plan.from_manifest(folder.manifest)
    return play_session(folder, plan, players, options, Output(args.json, args.quiet), redactor)


def _dry_run(plan: "Plan", as_json: bool) -> int:
    import json

    rows: list[dict[str, Any]] = []
    for matchup, seeds in plan.seeds.items():
        most = len(seeds) * plan.scenarios[matchup.scenario].horizon * len(matchup.agents)
        row: dict[str, Any] = {"scenario": matchup.scenario, "agents": list(matchup.agents), "episodes": len(seeds)}
        rows.append(row | {"first_seed": seeds[0], "last_seed": seeds[-1], "requests_at_most": most})
    requests = sum(row["requests_at_most"] for row in rows)
    if as_json:
        print(json.dumps({"dry_run": True, "episodes": plan.total, "requests_at_most": requests, "matchups": rows}))
        return 0
    from benchmark.show.terminal_tables import Sheet, print_sheets, stdout_console

    lines = []
    for row in rows:
        seeds_text = f"{row['first_seed']}..{row['last_seed']}"
        who = " against ".join(row["agents"])
        lines.append((row["scenario"], who, str(row["episodes"]), seeds_text, f"{row['requests_at_most']:,}"))
    total = f"{plan.total} episodes, at most {requests:,} decisions; nothing was played"
    columns = ("<scenario", "<agents", "episodes", "seeds", "decisions at most")
    print_sheets([Sheet("would be played", columns, tuple(lines), (total,))], stdout_console())
    return 0
