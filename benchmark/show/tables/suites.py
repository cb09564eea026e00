"""Scenarios in the order of the suites: every table of many scenarios is grouped in this way."""

from collections.abc import Iterable

from benchmark.score.comparing.protocols import plain_name
from textgames.scenarios import SUITES

OTHERS = "others"
"""The group of the scenarios that no suite has, such as a user's own games."""


def home_suite(scenario: str) -> str:
    """The suite under which a scenario is shown: the first that has it, and it stands in no table twice."""
    name = plain_name(scenario)
    return next((suite for suite, names in SUITES.items() if name in names and suite != "all"), OTHERS)


def by_suite(scenarios: Iterable[str]) -> dict[str, list[str]]:
    """``{suite: scenarios}`` of these scenarios, in the order of the suites and within each of them as given."""
    groups: dict[str, list[str]] = {suite: [] for suite in (*SUITES, OTHERS)}
    for scenario in scenarios:
        groups[home_suite(scenario)].append(scenario)
    return {suite: names for suite, names in groups.items() if names}
