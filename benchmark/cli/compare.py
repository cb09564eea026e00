"""Compare agents on the same seeds: paired differences with 95% intervals, a permutation test with Holm's correction
over everything that is shown, and the number of episodes that it would take to tell the two apart.

examples:
  textbench compare planner greedy                 two agents of the newest run
  textbench compare planner greedy --in runs/a
  textbench compare runs/before runs/after         everyone in these runs
"""

from argparse import ArgumentParser, Namespace

from benchmark.cli.arguments import add_import_option


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the agents that are compared, if they played, and the form of the output."""
    parser.add_argument("agents", nargs="+", metavar="A", help="agents' names, or run folders with all their agents")
    parser.add_argument("--in", dest="sources", action="append", metavar="DIR", help="runs or entries that they are in")
    parser.add_argument("--scenario", action="append", metavar="NAME", help="only this scenario (several times)")
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument("--markdown", action="store_true", help="print Markdown tables")
    add_import_option(parser)


def run(args: Namespace) -> int:
    """Print the comparison of all pairs of the agents."""
    from pathlib import Path

    from benchmark.cli.arguments import given_or_newest
    from benchmark.cli.output import Output
    from benchmark.errors import UsageError
    from benchmark.results import read_results
    from benchmark.runs.manifest import MANIFEST_NAME

    for name in args.agents:
        if args.agents.count(name) > 1:
            raise UsageError(f"comparing takes different agents, got {name!r} twice")
    folders = [name for name in args.agents if (Path(name) / MANIFEST_NAME).exists()]
    if not args.sources:  # with --in a path may be an agent's name; without, reading refuses it by its own
        folders += [name for name in args.agents if name not in folders and "/" in name and Path(name).is_dir()]
    names = [name for name in args.agents if name not in folders]
    output = Output(args.json)
    results = read_results(*given_or_newest([*folders, *(args.sources or ())], output))
    for name in names:
        if name not in results.agents and ("/" in name or Path(name).exists()):
            known = ", ".join(results.agents)
            raise UsageError(f"{name} is neither a run's folder nor an agent of these results, which are {known}")
    # a folder among the names stands for all its agents
    everyone = [agent for agent in results.agents if agent not in names] if folders else []
    comparison = results.compare(*names, *everyone, scenarios=args.scenario or ())
    if args.json:
        output.document(comparison.document)
    elif args.markdown:
        print(comparison.to_markdown(), end="")
    else:
        comparison.print()
    return 0
