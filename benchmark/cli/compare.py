"""Agents compared on the same seeds."""

from pathlib import Path

from benchmark.cli.settings import Compare, Output
from benchmark.errors import UsageError
from benchmark.results import read_results
from benchmark.runs.manifest import MANIFEST_NAME
from benchmark.score.samples import without_samples


def run(settings: Compare) -> int:
    """Print the comparison of all pairs of the agents."""
    folders = [name for name in settings.agents if (Path(name) / MANIFEST_NAME).exists()]
    if not settings.sources:  # with --in a path may be an agent's name; without, reading refuses it by its own
        folders += [name for name in settings.agents if name not in folders and "/" in name and Path(name).is_dir()]
    names = [name for name in settings.agents if name not in folders]
    output = Output()
    results = read_results(*output.folders([*folders, *settings.sources]))
    for name in names:
        if name not in results.agents and ("/" in name or Path(name).exists()):
            known = ", ".join(results.agents)
            raise UsageError(f"{name} is neither a run's folder nor an agent of these results, which are {known}")
    # a folder among the names stands for all its agents
    everyone = [agent for agent in without_samples(results.columns).agents if agent not in names] if folders else []
    comparison = results.compare(*names, *everyone, scenarios=settings.scenarios)
    if settings.json:
        output.document(comparison.document)
    elif settings.markdown:
        print(comparison.to_markdown(), end="")
    else:
        comparison.print()
    return 0
