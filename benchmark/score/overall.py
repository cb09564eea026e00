"""One score over many scenarios: the mean over games of the normalised scores, floored at 0.

An agent's score in a scenario is its estimated normalised score there; below 0, where it is worse than play that
doesn't read, it counts as 0, so that no scenario can take away what was won in another one. The scenarios of one game
share its weight. ``ResultColumns -> scenarios, weights -> OverallView``, and the test by which the ranks go.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from agents.common.intervals import CONFIDENCE, Array, Estimate
from agents.protocol import STANDARD
from benchmark.runs.plan import PAPER_SCENARIOS
from benchmark.score import statistics as stats
from benchmark.score.comparing.comparison import board_family, solo_scenarios
from benchmark.score.differences import paired_p_value
from benchmark.score.document import OverallView, SuiteView
from benchmark.score.luck.cells import corrected_returns, luck_free
from benchmark.score.references import References
from benchmark.score.results import ResultColumns
from benchmark.score.scores import (
    BLIND,
    LEVEL,
    REFERENCE,
    SUCCESS,
    above_blind,
    best_first,
    episode_table,
    normalised,
    rank,
    to_view,
)
from textgames.scenarios import ABOUT_SUITES, SUITES

CLEARLY = 0.99
"""The level of the interval that must lie below 0 for a score to be below it beyond chance. It is above the usual one,
since an overall score may be over many scenarios, and those of a player whose scores are 0 must rarely be among
them."""


def overall_scenarios(results: ResultColumns) -> list[str]:
    """What the overall score is over: the same scenarios for all agents, and none that only a few of them played.

    They are the paper's scenarios where more than half of the agents were to play all of those, else every scenario for
    one player that more than half of the agents were to play. Where there are several protocols, they are of one.
    """
    protocol = main_protocol(results)
    # a twin is the same game again: beside the game itself it would count twice; so would the levels of one ladder
    rungs = Counter(one.ladder_name for one in results.scenarios.values() if one.level_number)
    once = [
        one
        for one in solo_scenarios(results)
        if (not one.twin_number or one.plain_name not in results.scenarios)
        and (not one.level_number or (rungs[one.ladder_name] == 1 and one.ladder_name not in results.scenarios))
    ]
    shared = [one.name for one in once if is_shared(results, one.name) and one.rules == protocol]
    return list(PAPER_SCENARIOS) if set(PAPER_SCENARIOS) <= set(shared) else shared


def is_shared(results: ResultColumns, scenario: str) -> bool:
    """Whether more than half of the agents were to play a scenario, of those who play by its protocol."""
    players = _agents_by_protocol(results)[results.scenarios[scenario].rules]
    return 2 * sum((agent, scenario) in results.cells for agent in players) > len(players)


def main_protocol(results: ResultColumns) -> tuple[str, str]:
    """The protocol and the moves of most agents; a plain run's where other ones have as many."""
    standard = STANDARD["protocol"], STANDARD["moves"]
    found = _agents_by_protocol(results)
    return max(found, key=lambda one: (len(found[one]), one == standard), default=standard)


def _agents_by_protocol(results: ResultColumns) -> dict[tuple[str, str], set[str]]:
    """``{(protocol, moves): agents}``: an agent is of one source, and a source of one protocol."""
    found: dict[tuple[str, str], set[str]] = {}
    for scenario in results.scenarios.values():
        found.setdefault(scenario.rules, set())
    for agent, name in results.cells:
        found[results.scenarios[name].rules].add(agent)
    return found


def game_weights(results: ResultColumns, names: Sequence[str]) -> dict[str, float]:
    """``{scenario: its weight}``: every game weighs the same, and so do the scenarios of one game. They sum to 1."""
    games = Counter(results.scenarios[name].env_id for name in names)
    return {name: 1 / (len(games) * games[results.scenarios[name].env_id]) for name in names}


def overall_rows(
    results: ResultColumns, references: References, names: Sequence[str] | None = None, *, ranked: bool = True
) -> tuple[list[str], list[OverallView]]:
    """Every agent's overall score, best first, unranked ones last, and the scenarios that it is over.

    These are ``names``, or :func:`overall_scenarios`, without those whose scale nobody knows. Without ``ranked`` nobody
    has a rank, which saves the tests.
    """
    names = overall_scenarios(results) if names is None else names
    complete = {key for key, cell in results.cells.items() if key[1] in names and cell.complete}
    spans = {name: span_of(results, references, agent, name) for agent, name in complete}
    names = [name for name in names if name not in spans or spans[name] > 0]
    whole = [agent for agent in results.agents if names and all((agent, name) in complete for name in names)]
    scores, successes = _estimates(results, references, whole, names)
    rows = []
    for agent in results.agents:
        lacks = [name for name in names if (agent, name) not in complete]
        normalized = to_view(scores[agent]) if agent in scores else None
        rows.append(
            OverallView(
                agent=agent,
                rank=None,
                tied=False,
                normalized=normalized,
                above_blind=above_blind(normalized) or _above_somewhere(results, references, agent, names)
                if normalized is not None
                else None,
                success=to_view(successes[agent]) if agent in successes else None,
                invalid_rate=_invalid_rate(results, agent),
                scenarios=len(names) - len(lacks),
                lacks=lacks,
            )
        )
    if ranked and names:
        test = OverallTest(results, references, names)
        values = {row["agent"]: row["normalized"]["value"] for row in rows if row["normalized"] is not None}
        places = rank(values, test.told_apart)
        for row in rows:
            row["rank"], row["tied"] = places.get(row["agent"], (None, False))
    return names, sorted(rows, key=lambda row: (*best_first(row, row["normalized"]), -row["scenarios"], row["agent"]))


def _invalid_rate(results: ResultColumns, agent: str) -> float | None:
    cells = [cell.columns for (name, _), cell in results.cells.items() if name == agent]
    responses = sum(sum(columns["responses"]) for columns in cells)
    return sum(sum(columns["invalid"]) for columns in cells) / responses if responses else None


def _estimates(
    results: ResultColumns, references: References, agents: Sequence[str], names: Sequence[str]
) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """The overall scores of agents that have all of these scenarios, and their success rates.

    The success rate is over those of the scenarios whose game knows success, weighted in the same way.
    """
    knowing = [name for name in names if results.scenarios[name].game().success_means]
    levels = [max(results.cells[agent, name].confidence for name in names) for agent in agents]

    def tables(over: Sequence[str]) -> list[list[Array]]:
        return [
            [episode_table(results.cells[agent, name], results.scenarios[name], references)[0] for name in over]
            for agent in agents
        ]

    scores = stats.means_of_estimates(
        tables(names),
        [[_score(results, references, agent, name) for name in names] for agent in agents],
        levels,
        list(game_weights(results, names).values()),
        [[is_below_blind(results, references, agent, name) for name in names] for agent in agents],
    )
    successes = stats.means_of_estimates(
        tables(knowing),
        [[stats.column(SUCCESS, (0, 1))] * len(knowing) for _ in agents],
        levels,
        list(game_weights(results, knowing).values()),
    )
    told = dict(zip(agents, successes, strict=True)) if knowing else {}
    return dict(zip(agents, scores, strict=True)), told


def _score(results: ResultColumns, references: References, agent: str, name: str) -> stats.Statistic:
    """The normalised score of an agent in a scenario, as a figure of its episode table."""
    cell, scenario = results.cells[agent, name], results.scenarios[name]
    return normalised(scenario, *episode_table(cell, scenario, references), luck_free(cell, scenario))


def _above_somewhere(results: ResultColumns, references: References, agent: str, names: Sequence[str]) -> bool:
    """Whether an agent is better than the best blind play of one of the scenarios, by Bonferroni's correction for all.

    The interval of the overall score takes the noise of all scenarios together, and may reach 0 for an agent that is
    clearly above it in a single one.
    """
    level = 1 - (1 - CONFIDENCE) / len(names)
    for name in names:
        table = episode_table(results.cells[agent, name], results.scenarios[name], references)[0]
        (estimate,) = stats.bootstrap(table, [_score(results, references, agent, name)], level)
        if above_blind(to_view(estimate)):
            return True
    return False


def is_below_blind(results: ResultColumns, references: References, agent: str, name: str) -> bool:
    """Whether an agent is worse than the best blind play of a scenario beyond chance."""
    cell, scenario = results.cells[agent, name], results.scenarios[name]
    known = cell.memo.get("below_blind")  # asked for in every comparison
    if known is None or known[0] is not references:
        table = episode_table(cell, scenario, references)[0]
        (estimate,) = stats.bootstrap(table, [_score(results, references, agent, name)], CLEARLY)
        known = cell.memo["below_blind"] = (references, estimate.high is not None and estimate.high < 0)
    return bool(known[1])


def span_of(results: ResultColumns, references: References, agent: str, name: str) -> float:
    """How far the reference is above blind play on an agent's episodes; 0 where that isn't known."""
    table, _ = episode_table(results.cells[agent, name], results.scenarios[name], references)
    span = float((table[:, REFERENCE] - table[:, BLIND]).mean())
    return span if span > 1e-12 else 0.0


def suite_rows(results: ResultColumns, references: References) -> list[SuiteView]:
    """The overall scores over every suite whose scenarios are all there and that has some that count.

    Those are the ones for one player with a known scale that more than half of the agents were to play. There are no
    ranks: they would make the board's family of comparisons larger, and with it every test weaker.
    """
    alone = {scenario.name for scenario in solo_scenarios(results)}
    rows = []
    for suite, names in SUITES.items():
        if not names or not set(names) <= results.scenarios.keys():
            continue
        wanted = [name for name in names if name in alone and is_shared(results, name)]
        counted, scores = overall_rows(results, references, wanted, ranked=False)
        if counted:
            normalized = {row["agent"]: row["normalized"] for row in scores}
            rows.append(SuiteView(name=suite, about=ABOUT_SUITES[suite], scenarios=counted, normalized=normalized))
    return rows


class OverallTest:
    """Tells agents apart over several scenarios: the paired test of what their overall scores differ by.

    On common seeds, every scenario's differences are in units of its span and weigh as the scenario does in the score.
    The floor is in them: an agent that is below blind play in a scenario beyond chance has its returns there raised by
    a constant, so that its mean is that of blind play; a scenario in which both are so takes no part. Below 0 by what
    may be chance, returns stay as they are, since a floor would make a gain of noise. Two agents of whom neither scores
    above 0 anywhere have the same overall score, 0, and can't be told apart.

    The p-value is corrected by Bonferroni for everything that the board could compare: which tests are made depends on
    what the ones before showed.
    """

    def __init__(self, results: ResultColumns, references: References, names: Sequence[str]) -> None:
        self._results, self._references = results, references
        self._weights = game_weights(results, names)
        self._family = board_family(results)

    def told_apart(self, a: str, b: str) -> bool:
        """Whether two agents' overall scores differ beyond chance."""
        return self.compare(a, b)[1] < LEVEL

    def compare(self, a: str, b: str) -> tuple[float, float]:
        """How much the overall score of ``a`` is above that of ``b`` on common seeds, and the corrected p-value."""
        difference, highest, parts = 0.0, 0.0, [np.empty(0)]
        for name, weight in self._weights.items():
            returns, blind, span = self._common(a, b, name)
            if not len(blind) or span <= 0:
                continue
            first, second = (max(0.0, float((one - blind).mean())) / span for one in returns)
            difference += weight * (first - second)
            highest = max(highest, first, second)
            below = [is_below_blind(self._results, self._references, agent, name) for agent in (a, b)]
            if not all(below):
                raised = [
                    one - float((one - blind).mean()) if low else one for one, low in zip(returns, below, strict=True)
                ]
                parts.append((raised[0] - raised[1]) * (weight / (span * len(blind))))
        p = paired_p_value(np.concatenate(parts)) if highest > 0 else 1.0
        return difference, min(1.0, self._family * p)

    def _common(self, a: str, b: str, name: str) -> tuple[list[Array], Array, float]:
        """The returns of both on the seeds that both scored, luck-free where there are such, blind play's, the span."""
        scenario, cells = self._results.scenarios[name], self._results.cells
        if (a, name) not in cells or (b, name) not in cells:
            return [np.empty(0)] * 2, np.empty(0), 0.0
        first, second = (corrected_returns(cells[agent, name], scenario) for agent in (a, b))
        table = episode_table(cells[a, name], scenario, self._references)[0]
        if np.array_equal(first[0], second[0]):
            rows_a = rows_b = np.arange(len(table))
        else:
            _, rows_a, rows_b = np.intersect1d(first[0], second[0], return_indices=True)
        table = table[rows_a]
        span = float((table[:, REFERENCE] - table[:, BLIND]).mean()) if len(table) else 0.0
        return [first[1][rows_a], second[1][rows_b]], table[:, BLIND], span
