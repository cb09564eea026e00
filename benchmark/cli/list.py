"""List the suites, the scenarios that can be played and the agents that can play them."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from benchmark.cli.arguments import add_output_options

if TYPE_CHECKING:
    from benchmark.show.tables.terminal import Sheet


def add_arguments(parser: ArgumentParser) -> None:
    """Declare which of suites, scenarios and agents are listed."""
    parser.add_argument(
        "what", nargs="?", choices=("suites", "scenarios", "agents"), help="only these (default: everything)"
    )
    add_output_options(parser, "json")


def run(args: Namespace) -> int:
    """Print the lists that were asked for."""
    import json

    from benchmark.play.agents.catalogue import agent_kinds, scenario_facts, suite_facts
    from benchmark.show.tables.terminal import print_sheets, stdout_console

    parts = {
        "suites": (suite_facts, _suite_sheets),
        "scenarios": (scenario_facts, _scenario_sheets),
        "agents": (lambda: [agent._asdict() for agent in agent_kinds()], _agent_sheets),
    }
    wanted = (args.what,) if args.what else tuple(parts)
    if args.json:
        print(json.dumps({name: parts[name][0]() for name in wanted}, indent=1))
        return 0
    print_sheets([sheet for name in wanted for sheet in parts[name][1]()], stdout_console())
    return 0


def _suite_sheets() -> "list[Sheet]":
    from benchmark.play.agents.catalogue import suite_facts
    from benchmark.show.tables.terminal import Sheet

    rows = [(name, str(len(suite["scenarios"])), suite["about"]) for name, suite in suite_facts().items()]
    notes = ("textbench run --suite NAME; paper is what a run plays by default",)
    return [Sheet("suites", ("<suite", "scenarios", "<what it tests"), tuple(rows), notes)]


def _scenario_sheets() -> "list[Sheet]":
    """Return one sheet for every suite, with the scenarios that no suite before it has."""
    from benchmark.play.agents.catalogue import scenario_facts
    from benchmark.show.tables.suites import by_suite
    from benchmark.show.tables.terminal import Sheet

    facts = scenario_facts()
    sheets = []
    for suite, names in by_suite(facts).items():
        rows = []
        for name in names:
            one = facts[name]
            numbers = (str(one["players"]), str(one["horizon"]), str(one["first_seed"]))
            settings = ", ".join(f"{key}={value}" for key, value in one["kwargs"].items())
            rows.append((name, one["env_id"], *numbers, one["yardstick"] or "-", settings))
        columns = ("<scenario", "<environment", "players", "horizon", "first seed", "<yardstick", "<settings")
        sheets.append(Sheet(f"scenarios: {suite}", columns, tuple(rows)))
    notes = ("textbench run --scenario NAME", "yardstick: what is known of the best possible play, and how")
    return [*sheets[:-1], Sheet(sheets[-1].title, columns, sheets[-1].rows, notes)]


def _agent_sheets() -> "list[Sheet]":
    from benchmark.play.agents.catalogue import agent_kinds
    from benchmark.show.tables.terminal import Sheet

    lines = tuple((agent.spec, agent.text, agent.missing or "") for agent in agent_kinds())
    return [Sheet("agents", ("<agent", "<what it is", "<missing"), lines, ("textbench run --agent SPEC",))]
