"""Forecast of a run by its pilot: its dollars and hours, and the episodes that show a difference."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import combinations
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from agents.common.intervals import Array, Estimate, student_quantile
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan
from benchmark.runs.record import paid_tokens
from benchmark.score.comparison import cell_differences, solo_scenarios
from benchmark.score.differences import pairs_to_detect
from benchmark.score.luck import LuckValues
from benchmark.score.overall import game_weights, overall_scenarios, span_of
from benchmark.score.references import References
from benchmark.score.results import LUCK, Cell, ResultColumns, corrected_returns, luck_free, once
from benchmark.score.scores import BLIND, cost, episode_table
from textgames.scenarios import Scenario

USED = ("prompt_tokens", "completion_tokens", "cost", "seconds")


def contrasts(results: ResultColumns, references: References, detect: float, level: float) -> list[dict[str, Any]]:
    """Return every two agents over all scenarios, if these are several, then in each: what tells them apart.

    ``detect`` is a difference of scores; in a scenario without a scale, of returns. ``level`` is that of one test.
    """

    def row(
        scenario: str | None, size: float, variance: float, freedom: float, further: Sequence[float] = ()
    ) -> dict[str, Any]:
        needed = pairs_to_detect(size, variance, freedom, level, further)
        about = {"scenario": scenario, "a": a, "b": b, "difference": size, "variance": variance, "further": further}
        return {**about, "episodes_needed": needed and needed._asdict()}

    counted, over_all, single = overall_scenarios(results), [], []
    for a, b in combinations(results.agents, 2):
        # variance of the score's difference, its degrees of freedom, the largest one
        scored: dict[str, tuple[float, int, float]] = {}
        for scenario in solo_scenarios(results):
            name = scenario.name
            cells = [results.cells[agent, name] for agent in (a, b) if (agent, name) in results.cells]
            if len(cells) < 2 or len(differences := cell_differences(cells, [scenario] * 2, _returns)) < 2:
                continue
            span, variance, freedom = (
                span_of(results, references, a, name),
                float(differences.var(ddof=1)),
                len(differences) - 1,
            )
            single.append(row(name, detect * (span or 1.0), variance, freedom))
            if span and name in counted:
                floored = cell_differences(cells, [scenario] * 2, partial(_floored, references))
                scored[name] = float(floored.var(ddof=1)) / span**2, freedom, float(np.abs(floored).max()) / span
        if scored and len(results.scenarios) > 1:
            weights = game_weights(results, [*scored])
            whole = sum(weights[name] ** 2 * variance for name, (variance, *_) in scored.items())
            # few values that are far from normal tell a variance badly: the freedom of one scenario, not of all
            further = [weights[name] * (most + detect) for name, (*_, most) in scored.items()]
            over_all.append(row(None, detect, whole, min(freedom for _, freedom, _ in scored.values()), further))
    return over_all + single


@once
def _returns(cell: Cell, scenario: Scenario) -> tuple[Array, Array]:
    """Return seeds and returns that vary about as a longer run's luck-free ones: less the luck, if that helps."""
    seeds, values = corrected_returns(cell, scenario)
    known = LuckValues.of(scenario.game())
    if luck_free(cell, scenario) is None and known is not None and known.exact and (luck := cell.luck) is not None:
        values = min(values, values - luck[:, LUCK], key=np.std)
    return seeds, values


def _floored(references: References, cell: Cell, scenario: Scenario) -> tuple[Array, Array]:
    """Return the same with those of an agent that is below blind play as blind play's: it counts as 0 over all."""
    (seeds, values), (table, _) = _returns(cell, scenario), episode_table(cell, scenario, references)
    blind = float(table[:, BLIND].mean())
    return seeds, values if values.mean() > blind else np.full_like(values, blind)


class Usage(NamedTuple):
    """The tokens, dollars and time of a pilot, episodes that failed included."""

    agents: Mapping[str, Mapping[str, float]]  # ``{agent: USED of an episode}``
    starts: Array  # US dollars of each start, over all agents and scenarios
    seconds: float  # of all episodes, one after the other
    wall: float  # seconds that the pilot took

    @classmethod
    def of(cls, folder: RunFolder) -> "Usage":
        plan, prices = Plan.from_manifest(folder.manifest), folder.manifest.get("prices", {})
        first = {matchup.scenario: seeds[0] for matchup, seeds in plan.seeds.items()}
        used = {agent: np.zeros(len(USED)) for agent in plan.agents}
        starts, played = defaultdict[int, float](float), Counter[str]()
        for *_, record in folder.lines():
            ((player, agent),) = record.agents.items()
            tokens = paid_tokens(record)[player]
            dollars = cost(tokens, prices.get(agent)) or 0.0
            used[agent] += (*tokens[:2], dollars, record.measured.get("seconds", 0.0))
            starts[record.seed - first[record.scenario]] += dollars
            played[agent] += 1
        sessions = [one for one in folder.manifest.get("sessions", ()) if one.get("finished")]
        began, ended = (
            [datetime.fromisoformat(one[end]).timestamp() for one in sessions] for end in ("started", "finished")
        )
        means = {name: (sums / max(1, played[name])).tolist() for name, sums in used.items()}
        return cls(
            {name: dict(zip(USED, own, strict=True)) for name, own in means.items()},
            np.array([*starts.values()]),
            float(sum(sums[-1] for sums in used.values())),
            sum(ended) - sum(began),
        )

    def dollars(self, episodes: int) -> Estimate:
        """Return the costs of so many episodes of everything, and the interval that holds them in 95% of runs."""
        done, spent = len(self.starts), float(self.starts.sum())
        further = max(0, episodes - done)
        spread = float(self.starts.std(ddof=1)) * sqrt(further**2 / done + further)
        value, reach = spent * max(episodes, done) / done, float(student_quantile(done - 1)) * spread
        return Estimate(value, max(spent, value - reach), value + reach)

    def hours(self, episodes: int, in_flight: int) -> list[float]:
        """Return the hours of the further episodes: with so many at a time, and at the pilot's own pace."""
        times = max(0, episodes - len(self.starts)) / len(self.starts) / 3600
        return sorted((times * self.seconds / in_flight, times * self.wall))
