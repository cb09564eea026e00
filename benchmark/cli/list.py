"""Lists of suites, scenarios and agents."""

from collections.abc import Callable, Iterator
from typing import Any

from benchmark.cli.settings import List
from benchmark.play.agents.catalogue import agent_kinds, scenario_facts
from benchmark.show.draw import print_tables
from benchmark.show.notes import by_suite
from benchmark.show.table import Table, text_table
from textgames.scenarios import ABOUT_SUITES, SUITES


def run(settings: List) -> int:
    """Print the lists that were asked for."""
    facts: dict[str, Callable[[], Any]] = {
        "suites": lambda: {
            name: {"about": ABOUT_SUITES[name], "scenarios": list(names)} for name, names in SUITES.items()
        },
        "scenarios": scenario_facts,
        "agents": lambda: [agent._asdict() for agent in agent_kinds()],
    }
    found = {name: facts[name]() for name in ((settings.what,) if settings.what else facts)}
    if settings.output.json:
        settings.output.document(found)
    else:
        print_tables([table for name, one in found.items() for table in _tables(name, one)])
    return 0


def _tables(name: str, facts: Any) -> Iterator[Table]:
    if name == "agents":
        rows = [(kind["spec"], kind["text"], kind["missing"] or "") for kind in facts]
        yield text_table(name, ("<agent", "<what it is", "<missing"), rows, ("textbench run --agent SPEC",))
    elif name == "suites":
        rows = [(name, str(len(suite["scenarios"])), suite["about"]) for name, suite in facts.items()]
        note = "textbench run --suite NAME; paper is what a run plays by default"
        yield text_table(name, ("<suite", "scenarios", "<what it tests"), rows, [note])
    else:  # a table for every suite, with the scenarios that no suite before it has
        columns = ("<scenario", "<environment", "players", "horizon", "first seed", "<yardstick", "<settings")
        notes = ("textbench run --scenario NAME", "yardstick: what is known of the best possible play, and how")
        *_, last = suites = by_suite(facts)
        for suite in suites:
            lines = []
            for scenario in suites[suite]:
                one = facts[scenario]
                numbers = (str(one["players"]), str(one["horizon"]), str(one["first_seed"]))
                kwargs = ", ".join(f"{key}={value}" for key, value in one["kwargs"].items())
                lines.append((scenario, one["env_id"], *numbers, one["yardstick"] or "-", kwargs))
            yield text_table(f"scenarios: {suite}", columns, lines, notes if suite == last else ())
