"""List the scenarios that can be played and the agents that can play them."""

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """What to list."""
    parser.add_argument("what", nargs="?", choices=("scenarios", "agents"), help="only these (default: both)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: Namespace) -> int:
    """List."""
    import json

    from benchmark.play.catalogue import agent_kinds
    from benchmark.runs.plan import PAPER_SCENARIOS, num_players, scenario_to_json
    from benchmark.show.terminal_tables import Sheet, print_sheets, stdout_console
    from textgames.scenarios import SCENARIOS

    agents = agent_kinds()
    if args.json:
        scenarios = {name: scenario_to_json(scenario) for name, scenario in SCENARIOS.items()}
        document = {"scenarios": scenarios, "agents": [agent._asdict() for agent in agents]}
        print(json.dumps({key: document[key] for key in ([args.what] if args.what else document)}, indent=1))
        return 0
    sheets = []
    if args.what != "agents":
        rows = []
        for name, scenario in SCENARIOS.items():
            numbers = map(str, (scenario.horizon, scenario.first_seed, num_players(scenario)))
            settings = ", ".join(f"{key}={value}" for key, value in scenario.kwargs.items())
            rows.append((name, scenario.env_id, *numbers, "yes" if name in PAPER_SCENARIOS else "", settings))
        columns = ("<scenario", "<environment", "horizon", "first seed", "players", "<paper", "<settings")
        sheets.append(
            Sheet("scenarios", columns, tuple(rows), ("textbench run --scenario NAME; paper and all name groups",))
        )
    if args.what != "scenarios":
        lines = tuple((agent.spec, agent.text, "" if agent.missing is None else agent.missing) for agent in agents)
        sheets.append(Sheet("agents", ("<agent", "<what it is", "<missing"), lines, ("textbench run --agent SPEC",)))
    print_sheets(sheets, stdout_console())
    return 0
