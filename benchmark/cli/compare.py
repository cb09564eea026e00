"""Compare agents on the same seeds: paired differences with 95% intervals, a permutation test with Holm's correction
over everything that is shown, and the number of episodes that it would take to tell the two apart.

examples:
  textbench compare planner greedy                 two agents of the newest run
  textbench compare planner greedy --in runs/a
  textbench compare runs/before runs/after         everyone in these runs
"""

from argparse import ArgumentParser, Namespace


def add_arguments(parser: ArgumentParser) -> None:
    """Whom to compare, and how to say it."""
    parser.add_argument("agents", nargs="+", metavar="A", help="agents' names, or run folders with all their agents")
    parser.add_argument("--in", dest="sources", action="append", metavar="DIR", help="runs or entries that they are in")
    parser.add_argument("--scenario", action="append", metavar="NAME", help="only this scenario (several times)")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument("--markdown", action="store_true", help="print Markdown tables")


def run(args: Namespace) -> int:
    """Print the comparison of all pairs of the agents."""
    import json
    from pathlib import Path

    from benchmark.cli.sources import given_or_newest
    from benchmark.errors import UsageError, unknown_name
    from benchmark.play.session import Output
    from benchmark.runs.manifest import MANIFEST_NAME
    from benchmark.score.comparison import compare
    from benchmark.score.results import read_results
    from benchmark.score.scores import rating_rows
    from benchmark.show import terminal_tables as tables

    folders = [name for name in args.agents if (Path(name) / MANIFEST_NAME).exists()]
    names = [name for name in args.agents if name not in folders]
    for name in args.agents:
        if args.agents.count(name) > 1:
            raise UsageError(f"comparing takes different agents, got {name!r} twice")
    results = read_results(given_or_newest([*folders, *(args.sources or ())], Output()))
    for kind, wanted, known in (("agent", names, results.agents), ("scenario", args.scenario or (), results.scenarios)):
        for name in wanted:
            if name not in known:
                raise unknown_name(f"{kind} in these results", name, known)
    # a folder among the names stands for all its agents
    wanted = names + [agent for agent in results.agents if agent not in names and (folders or not names)]
    if len(wanted) < 2:
        raise UsageError(
            f"comparing takes two agents, there is {', '.join(wanted)}; in these results: {', '.join(results.agents)}"
        )
    keep = set(args.scenario or results.scenarios)
    results.scenarios = {name: scenario for name, scenario in results.scenarios.items() if name in keep}
    rows = compare(results, wanted)
    ratings = [row for row in rating_rows(results) if row["agent"] in wanted and row["scenario"] in keep]
    if not rows and not ratings:
        raise UsageError("these agents have no two scored episodes with equal seeds in any scenario")
    if args.json:
        print(json.dumps({"comparisons": rows, "ratings": ratings}, indent=1))
        return 0
    sheets = tables.comparison_sheets(rows) + tables.rating_sheets(ratings)
    if args.markdown:
        print(tables.to_markdown(sheets), end="")
    else:
        tables.print_sheets(sheets, tables.stdout_console())
    return 0
