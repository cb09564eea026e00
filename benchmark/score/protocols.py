"""Results of different protocols stand side by side, and are never ranked, compared or averaged together.

What an unreadable response leads to, and whether prompts list the legal moves, decides what a score says. A scenario
that was played by several protocols is as many scenarios, each with its own name: ``frozen-lake`` is the one of a plain
``textbench run``, and ``frozen-lake (default)``, ``frozen-lake (retry, unlisted)`` are others.
"""

from collections.abc import Sequence
from typing import Any

from agents.protocol import STANDARD
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Matchup, Plan, protocol_of
from textgames.scenarios import Scenario


def label(protocol: str, moves: str) -> str:
    """Return the label of a protocol's scenarios beside a plain run's: ``"default"``; empty for the latter."""
    told = {"protocol": protocol, "moves": moves}
    return ", ".join(value for name, value in told.items() if value != STANDARD[name])


def told(scenario: Scenario) -> str:
    """Return a scenario's protocol in words: ``"random"``, ``"unlisted"``, ``"retry, unlisted"``."""
    return label(scenario.protocol, scenario.moves) or scenario.protocol


def labelled(scenario: Scenario) -> str:
    """Return the name of a scenario with its protocol: ``frozen-lake (retry)``."""
    by = label(scenario.protocol, scenario.moves)
    return f"{scenario.name} ({by})" if by else scenario.name


def side_by_side(plans: Sequence[Plan]) -> Plan:
    """Return the plan of several plans together: of different protocols, or of equal ones with other samples."""
    scenarios: dict[str, Scenario] = {}
    seeds: dict[Matchup, Sequence[int]] = {}
    for number, plan in enumerate(plans):
        names = {name: labelled(one) for name, one in plan.scenarios.items()}
        if not scenarios.keys().isdisjoint(names.values()):
            names = {name: f"{label} (sample {number})" for name, label in names.items()}
        scenarios |= {names[name]: one for name, one in plan.scenarios.items()}
        seeds |= {matchup._replace(scenario=names[matchup.scenario]): own for matchup, own in plan.seeds.items()}
    return Plan(scenarios, seeds)


def with_labels(folder: RunFolder) -> RunFolder:
    """Return the folder with its protocol in the names of its scenarios."""
    told = label(*protocol_of(folder.manifest["settings"]))
    if not told:
        return folder
    names = {name: f"{name} ({told})" for name in folder.manifest["scenarios"]}
    manifest: dict[str, Any] = {
        **folder.manifest,
        "labels": names,
        "scenarios": {names[name]: data for name, data in folder.manifest["scenarios"].items()},
        "matchups": [
            {**row, "scenario": names.get(row["scenario"], row["scenario"])} for row in folder.manifest["matchups"]
        ],
    }
    return RunFolder(folder.path, manifest)


def plain_name(scenario: str) -> str:
    """Return the name of a scenario without its protocol."""
    return scenario.partition(" (")[0]
