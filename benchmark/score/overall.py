"""One score over many scenarios: the mean over games of the normalised scores, floored at 0.

Differences of two agents are by the resampling of the scores' intervals (``docs/research/scores.md``): with equal seeds
two agents have equal weights of episodes in every resample, so whole starts stay paired; scenarios are independent.
Each agent's own further episode stands in beside a score that is below 0 beyond chance, and on other starts.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from agents.common import intervals as stats
from agents.common.intervals import CONFIDENCE, Array, is_above
from agents.protocol import STANDARD
from benchmark.runs.plan import PAPER_SCENARIOS
from benchmark.score.comparison import board_family, solo_scenarios
from benchmark.score.differences import LEVEL, any_disjoint, verdict
from benchmark.score.document import EstimateView, OverallPairView, OverallView, SuiteView
from benchmark.score.ratings import over_games
from benchmark.score.references import References
from benchmark.score.results import Cell, ResultColumns, luck_free, once
from benchmark.score.scores import (
    BLIND,
    REFERENCE,
    SUCCESS,
    above_blind,
    best_first,
    episode_table,
    normalised,
    rank,
    to_view,
)
from textgames.scenarios import ABOUT_SUITES, SUITES, Scenario

MOST_KEPT = 32  # agents whose resamples are kept, since they are compared with several others

CLEARLY = 0.99
"""The level of the interval that must lie below 0 for a score to be below it beyond chance. It is above the usual one,
since an overall score may be over many scenarios, and those of a player whose scores are 0 must rarely be among
them."""


class Part(NamedTuple):
    """One agent's score in one of the scenarios that its overall score is made of, and that score in every resample."""

    seeds: Array  # (episodes,) in order
    returns: Array  # (episodes,)
    score: float
    is_below: bool  # whether the score is below 0 beyond chance
    own: tuple[Array, Array]  # (resamples,) with the further episode that lowers it, and with the one that raises it
    plain: Array  # (resamples,) with one that is like the mean
    slope: Array  # (resamples,) by how much less that is for every unit of return that the further episode is worse

    @classmethod
    def of(cls, seeds: Array, table: Array, statistic: stats.Statistic, is_below: bool, stream: int) -> "Part":
        """Resample the table of a scenario, which has a stream of its own; ``statistic`` is linear in the returns."""
        drawn = stats.resampled(table, stream)
        returns, mean = statistic.columns[0], table.mean(axis=0)
        worse = mean.copy()
        worse[returns] -= 1.0
        below, plain = stats.replicates(statistic, (worse, mean), *drawn, stream)
        own = stats.replicates(statistic, statistic.further(table), *drawn, stream)
        score = float(statistic.of(mean[list(statistic.columns)]))
        return cls(seeds, table[:, returns], score, is_below, own, plain, plain - below)

    def replicates(self, off: float | None) -> tuple[Array, Array]:
        """Return the score in every resample: its lower replicates, and the higher ones, which are floored at 0.

        The further episode of the lower ones is worse than the mean by ``off``, but takes no more than the score that
        there is; that of the higher ones is like the mean. Without ``off`` both are the statistic's own.
        """
        low, high = self.own
        if off is not None:
            low, high = np.minimum(self.plain, np.maximum(0.0, self.plain - off * self.slope)), self.plain
        return np.zeros_like(low) if self.is_below else low, np.maximum(0.0, high)


def floored_difference(
    first: Sequence[Part], second: Sequence[Part], weights: Sequence[float], confidence: float = CONFIDENCE
) -> stats.Difference:
    """Subtract the scores of two agents over the same scenarios, in equal order."""
    sums: list[list[Array]] = [[], [], [], []]  # the lower and the higher replicates of the first, of the second
    value = 0.0
    for a, b, weight in zip(first, second, weights, strict=True):
        value += weight * (max(0.0, a.score) - max(0.0, b.score))
        off_a = off_b = None
        if not (a.is_below or b.is_below) and np.array_equal(a.seeds, b.seeds):
            differences = a.returns - b.returns
            most, mean = float(np.abs(differences).max()), float(differences.mean())
            off_a, off_b = most + mean, most - mean
        for part, one in zip(sums, (*a.replicates(off_a), *b.replicates(off_b)), strict=True):
            part.append(weight * one)
    count = min(len(part) for parts in sums for part in parts)
    low_a, high_a, low_b, high_b = (np.sum([part[:count] for part in parts], axis=0) for parts in sums)
    return stats.difference_of(value, np.maximum(0.0, low_a) - high_b, high_a - np.maximum(0.0, low_b), confidence)


def overall_scenarios(results: ResultColumns) -> list[str]:
    """Return the scenarios of the overall score: the same for all agents, each played by most of them.

    They are the paper's if more than half of the agents were to play all of those, else every scenario for one player
    that more than half were to play, of one protocol.
    """
    standard, players = (STANDARD["protocol"], STANDARD["moves"]), _agents_by_protocol(results)
    # that of most agents; a plain run's if other ones have as many
    protocol = max(players, key=lambda one: (len(players[one]), one == standard), default=standard)
    # a twin is the same game again: beside the game itself it would count twice; so would levels and other settings
    rungs = Counter(one.ladder_name for one in results.scenarios.values() if one.level_number)
    shared = [
        one.name
        for one in solo_scenarios(results)
        if (one.standard_name == one.name or one.standard_name not in results.scenarios)
        and (not one.twin_number or one.plain_name not in results.scenarios)
        and (not one.level_number or (rungs[one.ladder_name] == 1 and one.ladder_name not in results.scenarios))
        and one.rules == protocol
        and is_shared(results, one.name)
    ]
    return list(PAPER_SCENARIOS) if set(PAPER_SCENARIOS) <= set(shared) else shared


def is_shared(results: ResultColumns, scenario: str) -> bool:
    """Return whether more than half of the agents that play by a scenario's protocol were to play it."""
    players = _agents_by_protocol(results)[results.scenarios[scenario].rules]
    return 2 * sum((agent, scenario) in results.cells for agent in players) > len(players)


def _agents_by_protocol(results: ResultColumns) -> dict[tuple[str, str], set[str]]:
    """Return ``{(protocol, moves): agents}``: an agent is of one source, and a source of one protocol."""
    found: dict[tuple[str, str], set[str]] = {scenario.rules: set() for scenario in results.scenarios.values()}
    for agent, name in results.cells:
        found[results.scenarios[name].rules].add(agent)
    return found


def game_weights(results: ResultColumns, names: Sequence[str]) -> dict[str, float]:
    """Return ``{scenario: its weight}``, which sum to 1: games weigh the same, and so do one game's scenarios."""
    games = Counter(results.scenarios[name].env_id for name in names)
    return {name: 1 / (len(games) * games[results.scenarios[name].env_id]) for name in names}


def _scored(cell: Cell, scenario: Scenario, references: References) -> tuple[Array, stats.Statistic]:
    """Return the episode table of a cell, and the normalised score as a figure of it."""
    table, scale = episode_table(cell, scenario, references)
    return table, normalised(scenario, table, scale, luck_free(cell, scenario))


@once
def is_below_blind(cell: Cell, scenario: Scenario, references: References) -> bool:
    """Return whether an agent is worse than the best blind play of a scenario beyond chance."""
    table, score = _scored(cell, scenario, references)
    (estimate,) = stats.bootstrap(table, [score], CLEARLY)
    return estimate.high is not None and is_above(0.0, estimate.high)


def span_of(results: ResultColumns, references: References, agent: str, name: str) -> float:
    """Return how far the reference is above blind play on an agent's episodes; 0 if that isn't known."""
    table, _ = episode_table(results.cells[agent, name], results.scenarios[name], references)
    span = float((table[:, REFERENCE] - table[:, BLIND]).mean())
    return span if is_above(span) else 0.0


def suite_rows(results: ResultColumns, references: References) -> list[SuiteView]:
    """Return the overall scores over every suite whose scenarios are all there and that has some that count.

    There are no ranks: they would make the board's family of comparisons larger, and with it every test weaker.
    """
    alone = {scenario.name for scenario in solo_scenarios(results)}
    rows = []
    for suite, names in SUITES.items():
        if not names or not set(names) <= results.scenarios.keys():
            continue
        overall = Overall(results, references, [name for name in names if name in alone and is_shared(results, name)])
        scores = {row["agent"]: row["normalized"] for row in overall.rows(ranked=False)} if overall.names else {}
        row = SuiteView(name=suite, about=ABOUT_SUITES[suite], scenarios=overall.names, normalized=scores)
        if met := [name for name in names if name not in alone]:
            ratings = _rated(results, met)
            row |= {"unrated": ratings} if isinstance(ratings, str) else {"ratings": ratings}
        if met or overall.names:
            rows.append(row)
    return rows


def _rated(results: ResultColumns, names: Sequence[str]) -> dict[str, EstimateView | None] | str:
    """Return ``{agent: rating}`` over scenarios in which agents meet; a text says why there is no honest one."""
    if shared := [name for name in names if name not in SUITES["strategy"]]:
        return (
            f"in {len(shared)} of its games, such as {shared[0]}, all may gain or lose together: getting more than the "
            "others isn't doing well; compare mean returns"
        )
    cells = {agent: [results.cells.get((agent, name)) for name in names] for agent in results.agents}
    agents = [agent for agent, own in cells.items() if all(cell is not None and cell.complete for cell in own)]
    if len(agents) < 2:
        return "fewer than two agents have all of its games"
    games = {}
    for name in names:
        games[name] = [game for game in results.games.get(name, ()) if {*game[:2]} <= {*agents}]
        met = {frozenset(game[:2]) for game in games[name]}
        if apart := next((pair for pair in combinations(agents, 2) if frozenset(pair) not in met), None):
            return f"{' and '.join(apart)} never met in {name}"
    found = over_games(games)
    if found[-1].group > 1:
        return f"{found[0].agent} or others won all games against {found[-1].agent}, so their distance has no bound"
    return {row.agent: row.rating and to_view(row.rating) for row in found}


class Overall:
    """The agents over several scenarios: scores, their intervals, differences and ranks, all of one resampling.

    ``names`` are the scenarios whose scale is known, of those asked for or :func:`overall_scenarios`; ``whole`` are the
    agents that have all of these.
    """

    def __init__(
        self,
        results: ResultColumns,
        references: References,
        names: Sequence[str] | None = None,
        *,
        partly: bool = False,
    ) -> None:
        """Resample the scores of the agents that played all of the scenarios whole; with ``partly``, of all agents."""
        names = overall_scenarios(results) if names is None else names
        self._results, self._references = results, references
        self._complete = {key for key, cell in results.cells.items() if key[1] in names and (cell.complete or partly)}
        spans = {name: span_of(results, references, agent, name) for agent, name in self._complete}
        self.names = [name for name in names if name not in spans or spans[name] > 0]
        self.whole = [
            agent
            for agent in results.agents
            if self.names and all((agent, name) in self._complete for name in self.names)
        ]
        self._weights = list(game_weights(results, self.names).values())
        asked = {agent: [self._about(agent, name) for name in self.names] for agent in self.whole}
        scored = [[_scored(*about) for about in own] for own in asked.values()]
        resampled = stats.sums_of_replicates(
            [[table for table, _ in own] for own in scored],
            [[score for _, score in own] for own in scored],
            self._weights,
            [[is_below_blind(*about) for about in own] for own in asked.values()],
        )
        self._replicates = dict(zip(self.whole, resampled, strict=True))
        self._family = board_family(results)
        self._parts: dict[str, list[Part]] = {}  # of the agents that were compared last

    def _about(self, agent: str, name: str) -> tuple[Cell, Scenario, References]:
        return self._results.cells[agent, name], self._results.scenarios[name], self._references

    def _parts_of(self, agent: str) -> list[Part]:
        if agent not in self._parts:
            if len(self._parts) >= MOST_KEPT:
                del self._parts[next(iter(self._parts))]
            asked = [self._about(agent, name) for name in self.names]
            self._parts[agent] = [
                Part.of(about[0].table()["seed"], *_scored(*about), is_below_blind(*about), stream)
                for stream, about in enumerate(asked)
            ]
        return self._parts[agent]

    def _level(self, *agents: str) -> float:
        return max(self._results.cells[agent, name].confidence for agent in agents for name in self.names)

    def score(self, agent: str) -> EstimateView | None:
        """Return the overall score of an agent with its interval; ``None`` for one that lacks a scenario."""
        if agent not in self._replicates:
            return None
        return to_view(stats.interval_of(self._replicates[agent], self._level(agent)))

    def difference(self, a: str, b: str) -> stats.Difference:
        return floored_difference(self._parts_of(a), self._parts_of(b), self._weights, self._level(a, b))

    def rows(self, *, ranked: bool = True) -> list[OverallView]:
        """Return a row for every agent, best first; those that lack a scenario are last and have no rank.

        Ranks are by the test of :meth:`difference`, after Bonferroni's correction for all that the board could compare.
        """
        scores = {agent: self.score(agent) for agent in self._results.agents}
        places = {}
        if ranked:
            places = rank(
                {agent: score["value"] for agent, score in scores.items() if score is not None},
                lambda a, b: self._family * self.difference(a, b).p < LEVEL,
                lambda a, b: any_disjoint([scores[a]], [scores[b]]),
            )
        successes = self._successes()
        rows = []
        for agent, normalized in scores.items():
            lacks = [name for name in self.names if (agent, name) not in self._complete]
            cells = [cell for (name, _), cell in self._results.cells.items() if name == agent]
            invalid, responses = (sum(sum(cell.columns[what]) for cell in cells) for what in ("invalid", "responses"))
            place, tied = places.get(agent, (None, False))
            rows.append(
                OverallView(
                    agent=agent,
                    rank=place,
                    tied=tied,
                    normalized=normalized,
                    above_blind=None if normalized is None else above_blind(normalized) or self._above_somewhere(agent),
                    success=successes.get(agent),
                    invalid_rate=invalid / responses if responses else None,
                    scenarios=len(self.names) - len(lacks),
                    lacks=lacks,
                )
            )
        return sorted(rows, key=lambda row: (*best_first(row, row["normalized"]), -row["scenarios"], row["agent"]))

    def _above_somewhere(self, agent: str) -> bool:
        """Return whether an agent beats the best blind play of one of the scenarios, by Bonferroni's correction.

        The interval of the overall score has the noise of all scenarios, and may reach 0 for an agent that beats one
        clearly.
        """
        level = 1 - (1 - CONFIDENCE) / len(self.names)
        for name in self.names:
            table, score = _scored(*self._about(agent, name))
            if above_blind(to_view(stats.bootstrap(table, [score], level)[0])):
                return True
        return False

    def _successes(self) -> dict[str, EstimateView | None]:
        """Return the success rates over those of the scenarios whose game knows success, weighted in the same way."""
        knowing = [name for name in self.names if self._results.scenarios[name].game().success_means]
        if not knowing:
            return {}
        estimates = stats.means_of_estimates(
            [[episode_table(*self._about(agent, name))[0] for name in knowing] for agent in self.whole],
            [[stats.column(SUCCESS, (0, 1))] * len(knowing) for _ in self.whole],
            [self._level(agent) for agent in self.whole],
            list(game_weights(self._results, knowing).values()),
        )
        return dict(zip(self.whole, map(to_view, estimates), strict=True))

    def pairs(self, agents: Sequence[str]) -> list[OverallPairView]:
        """Return the differences of every two of ``agents``, who have all scenarios, after Bonferroni's correction."""
        found = {(a, b): self.difference(a, b) for a, b in combinations(agents, 2)}
        return [self.pair_view(*pair, one, min(1.0, self._family * one.p)) for pair, one in found.items()]

    def pair_view(self, a: str, b: str, found: stats.Difference, corrected: float) -> OverallPairView:
        """Return the meaning of a difference for two agents, by its corrected p-value and by their own intervals."""
        value, low, high = found.estimate
        told = verdict(a, b, value, corrected, any_disjoint([self.score(a)], [self.score(b)]))
        return OverallPairView(
            a=a, b=b, difference=value, low=low, high=high, p=found.p, corrected=corrected, verdict=told
        )
