"""What a pilot tells of the run that it begins: its dollars and hours, and the episodes that show a difference."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime
from itertools import combinations
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from agents.common.intervals import Array, Estimate, student_quantile
from benchmark.runs.folder import RunFolder
from benchmark.runs.plan import Plan
from benchmark.runs.record import paid_tokens
from benchmark.score.comparison import board_family, cell_differences, solo_scenarios
from benchmark.score.differences import LEVEL, Needed, pairs_to_detect, power_of
from benchmark.score.luck import LuckValues, cross_fitted
from benchmark.score.overall import game_weights, overall_scenarios, span_of
from benchmark.score.references import References
from benchmark.score.results import LUCK, START, Cell, ResultColumns, corrected_returns, luck_free
from benchmark.score.scores import cost
from textgames.scenarios import Scenario

USED = ("prompt_tokens", "completion_tokens", "cost", "seconds")


class Contrast(NamedTuple):
    """Two agents in a scenario or over all, and what it takes to tell them apart if they differ by ``size``."""

    scenario: str | None  # ``None``: over all scenarios, by their overall scores
    a: str
    b: str
    size: float  # the difference to detect, in the unit of the scenario's returns, over all of scores
    pairs: int  # of the pilot
    variance: float  # of the paired differences
    freedom: float  # of the variance
    level: float  # of a test after the correction

    @property
    def needed(self) -> Needed | None:
        return pairs_to_detect(self.size, self.variance, self.freedom, self.level)

    def document(self, episodes: int) -> dict[str, Any]:
        """Return it as plain JSON, with the episodes needed and the power of so many; ``None`` without a variance."""
        needed = self.needed
        power = None if needed is None else power_of(episodes, self.size, self.variance, self.level)
        return {**self._asdict(), "episodes_needed": needed and needed._asdict(), "power": power}


def contrasts(results: ResultColumns, references: References, size: float) -> list[Contrast]:
    """Return every two agents over all scenarios, if they have several, then in each of these.

    ``size`` is a difference of scores; in a scenario without a scale, of returns. The level is that of the first step
    of Holm's correction for everything that ``textbench compare`` would compare.
    """
    level, counted = LEVEL / board_family(results), overall_scenarios(results)
    names = [scenario.name for scenario in solo_scenarios(results)]
    over_all, single = list[Contrast](), list[Contrast]()
    for a, b in combinations(results.agents, 2):
        parts: dict[str, tuple[float, int]] = {}  # of the overall score: variance and pairs
        for name in names:
            cells = [results.cells[agent, name] for agent in (a, b) if (agent, name) in results.cells]
            if (
                len(cells) < 2
                or len(differences := cell_differences(cells, [results.scenarios[name]] * 2, _returns)) < 2
            ):
                continue
            pairs = len(differences)
            span, variance = span_of(results, references, a, name), float(differences.var(ddof=1))
            single.append(Contrast(name, a, b, size * (span or 1.0), pairs, variance, pairs - 1, level))
            if span and name in counted:
                parts[name] = variance / span**2, pairs
        weights = game_weights(results, [*parts])
        shares = {name: weights[name] ** 2 * variance for name, (variance, _) in parts.items()}
        if len(names) > 1 and parts:
            # Welch and Satterthwaite's degrees of freedom
            whole = sum(shares.values())
            odd = sum(share**2 / (parts[name][1] - 1) for name, share in shares.items())
            pairs = min(count for _, count in parts.values())
            over_all.append(Contrast(None, a, b, size, pairs, whole, whole**2 / odd if odd else pairs - 1, level))
    return over_all + single


def _returns(cell: Cell, scenario: Scenario) -> tuple[Array, Array]:
    """Return seeds and returns as a longer run has them: luck-free, with coefficients that the others are fitted by."""
    seeds, values = corrected_returns(cell, scenario)
    known = LuckValues.of(scenario.game())
    if luck_free(cell, scenario) is None and known is not None and known.exact and (luck := cell.luck) is not None:
        values = values - cross_fitted(values - luck[:, START], luck[:, LUCK]) * luck[:, LUCK]
    return seeds, values


class Usage(NamedTuple):
    """What a pilot has used."""

    agents: Mapping[str, Mapping[str, float]]  # ``{agent: prompt and completion tokens, dollars, seconds, an episode}``
    starts: Array  # US dollars of each of the pilot's starts, over all agents and scenarios
    seconds: float  # of all episodes, one after the other
    wall: float  # seconds that the pilot took

    @classmethod
    def of(cls, folder: RunFolder) -> "Usage":
        """Add up everything that was paid for, episodes that failed included."""
        plan, prices = Plan.from_manifest(folder.manifest), folder.manifest.get("prices", {})
        used = {agent: np.zeros(4) for agent in plan.agents}
        first = {matchup.scenario: seeds[0] for matchup, seeds in plan.seeds.items()}
        starts, played = defaultdict[int, float](float), Counter[str]()
        for *_, record in folder.lines():
            ((player, agent),) = record.agents.items()
            tokens = paid_tokens(record)[player]
            dollars = cost(tokens, prices.get(agent)) or 0.0
            used[agent] += (*tokens[:2], dollars, record.measured.get("seconds", 0.0))
            starts[record.seed - first[record.scenario]] += dollars
            played[agent] += 1
        times = [(one["started"], one.get("finished")) for one in folder.manifest.get("sessions", ()) if one]
        wall = [datetime.fromisoformat(end) - datetime.fromisoformat(start) for start, end in times if end]
        return cls(
            {name: dict(zip(USED, (sums / max(1, played[name])).tolist(), strict=True)) for name, sums in used.items()},
            np.array([*starts.values()]),
            sum(float(sums[3]) for sums in used.values()),
            sum(one.total_seconds() for one in wall),
        )

    def dollars(self, episodes: int) -> Estimate:
        """Return what so many episodes of everything cost together; the interval is to hold it in 95% of runs."""
        done = len(self.starts)
        spent, further = float(self.starts.sum()), max(0, episodes - done)
        spread = float(self.starts.std(ddof=1)) * sqrt(further**2 / done + further)
        value, reach = spent * max(episodes, done) / done, float(student_quantile(done - 1)) * spread
        return Estimate(value, max(spent, value - reach), value + reach)

    def affordable(self, budget: float) -> int | None:
        """Return the episodes that a budget is expected to pay; ``None`` if nothing costs anything."""
        each = float(self.starts.mean())
        return int(budget / each * (1 + 1e-9)) if each else None

    def hours(self, episodes: int, in_flight: int) -> tuple[float, float]:
        """Return the hours of the further episodes: with so many at a time, and at the pilot's own pace."""
        times = max(0, episodes - len(self.starts)) / len(self.starts) / 3600
        least, most = sorted((times * self.seconds / in_flight, times * self.wall))
        return least, most
