"""List the suites, the scenarios that can be played and the agents that can play them."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from benchmark.cli.arguments import add_output_options

if TYPE_CHECKING:
    from benchmark.show.table import Table


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
    from benchmark.show.draw import print_tables

    facts: dict[str, Callable[[], Any]] = {
        "suites": suite_facts,
        "scenarios": scenario_facts,
        "agents": lambda: [agent._asdict() for agent in agent_kinds()],
    }
    found = {name: facts[name]() for name in ((args.what,) if args.what else facts)}
    if args.json:
        print(json.dumps(found, indent=1))
        return 0
    makers: dict[str, Any] = {"suites": _suites, "scenarios": _scenarios, "agents": _agents}
    print_tables([table for name, one in found.items() for table in makers[name](one)])
    return 0


def _suites(facts: dict[str, Any]) -> "Iterator[Table]":
    from benchmark.show.table import text_table

    rows = [(name, str(len(suite["scenarios"])), suite["about"]) for name, suite in facts.items()]
    notes = ("textbench run --suite NAME; paper is what a run plays by default",)
    yield text_table("suites", ("<suite", "scenarios", "<what it tests"), rows, notes)


def _scenarios(facts: dict[str, Any]) -> "Iterator[Table]":
    """Make one table for every suite, with the scenarios that no suite before it has."""
    from benchmark.show.notes import by_suite
    from benchmark.show.table import text_table

    columns = ("<scenario", "<environment", "players", "horizon", "first seed", "<yardstick", "<settings")
    notes = ("textbench run --scenario NAME", "yardstick: what is known of the best possible play, and how")
    *_, last = suites = by_suite(facts)
    for suite in suites:
        rows = []
        for name in suites[suite]:
            one = facts[name]
            numbers = (str(one["players"]), str(one["horizon"]), str(one["first_seed"]))
            settings = ", ".join(f"{key}={value}" for key, value in one["kwargs"].items())
            rows.append((name, one["env_id"], *numbers, one["yardstick"] or "-", settings))
        yield text_table(f"scenarios: {suite}", columns, rows, notes if suite == last else ())


def _agents(kinds: list[dict[str, Any]]) -> "Iterator[Table]":
    from benchmark.show.table import text_table

    rows = [(kind["spec"], kind["text"], kind["missing"] or "") for kind in kinds]
    yield text_table("agents", ("<agent", "<what it is", "<missing"), rows, ("textbench run --agent SPEC",))
