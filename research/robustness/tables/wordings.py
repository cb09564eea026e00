"""How much of a score is the wording's: one agent in one scenario, its prompts in several wordings of equal content.

A return is ``mu + w_k + e``: ``w_k`` is the wording's, of variance ``sigma_w^2``, and ``e`` all that differs between
episodes of one wording, of variance ``sigma^2``. The mean of the wordings' means has the interval

* **over starts** for these very wordings: its variance is ``sigma^2 / n``;
* **over starts and wordings** for wordings like these: ``sigma_w^2 / K + sigma^2 / n``. With equally many episodes in
  each wording that is the variance of the wordings' means over K, so Student's interval with ``K - 1`` degrees of
  freedom is exact for normal effects. It is never taken to be smaller than the first variance, so it never covers too
  seldom.

Seven wordings by one author aren't a random sample of all; "wordings like these" means as different as these.
"""

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from typing import Any, NamedTuple, TypedDict

import numpy as np

from agents import wording_of
from agents.common import CONFIDENCE, Array, Estimate, student_quantile
from benchmark.score import EstimateView, ResultColumns, corrected_returns, holm, paired_p_value, solo_scenarios
from benchmark.show import AGENT, SCENARIO, Column, Figure, Table, estimate, number, value
from textgames import Scenario

MOST_WORDINGS = 10_000  # above which no number of wordings is said to be enough
FLIP_LEVEL = 0.05  # of each agent's side of a flip, after Holm's correction over the wordings


class WordingFlipView(TypedDict):
    """An agent with which another one changes places between wordings."""

    agent: str
    better_in: list[str]  # the wordings in which the row's agent is better than this one, beyond chance
    worse_in: list[str]  # and in which it is worse


class WordingView(TypedDict):
    """One agent in one scenario that it was prompted for in several wordings of equal content."""

    agent: str
    scenario: str
    episodes: int
    means: dict[str, float]  # by wording: the mean return, luck-free where the game offers that
    spread: float  # the standard deviation between wordings, once that within them is taken out
    over_starts: EstimateView  # the mean of ``means``; the interval is for these wordings
    over_wordings: EstimateView  # the same mean; the interval is for wordings like these
    half_width: float  # half of the half-width of ``over_wordings``, and what it takes to reach that:
    episodes_for_it: int | None  # so many episodes in these wordings; ``None`` if no number is enough
    wordings_for_it: int | None  # at least so many wordings
    wording_worth: int | None
    """How many more episodes narrow ``over_wordings`` as one more wording does; ``None`` if no number does."""
    flips: list[WordingFlipView]  # with agents after this one by name


class Split(NamedTuple):
    """The variance of returns within and between wordings, of the returns' squared unit."""

    means: dict[str, float]  # by wording
    episodes: int  # in all wordings together, n
    within: float  # sigma^2
    between: float  # sigma_w^2, unbiased: below 0 if the means differ less than chance alone would make them
    error: float  # the variance of the mean that episodes alone make; sigma^2 / n where wordings have equally many
    confidence: float = CONFIDENCE

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.means.values())))

    @property
    def over_starts(self) -> Estimate:
        return self._interval(self.error, self.episodes - len(self.means))

    @property
    def over_wordings(self) -> Estimate:
        return self._interval(self.error + self._wordings_part, len(self.means) - 1)

    @property
    def _wordings_part(self) -> float:
        return max(0.0, self.between) / len(self.means)

    def _interval(self, variance: float, freedom: int) -> Estimate:
        half = student_quantile(freedom, self.confidence) * sqrt(variance)
        return Estimate(self.mean, self.mean - half, self.mean + half) if half else Estimate(self.mean)

    def episodes_for(self, half_width: float) -> int | None:
        """Return the episodes that bring the interval over these wordings to this half-width; ``None`` if none do."""
        left = (half_width / student_quantile(len(self.means) - 1, self.confidence)) ** 2 - self._wordings_part
        return ceil(self.within / left) if left > 0 else None

    @property
    def worth_of_a_wording(self) -> int | None:
        """How many more episodes lower the variance of the mean as much as one more wording; ``None`` if none do."""
        wordings = len(self.means)
        left = self.within / self.episodes - max(0.0, self.between) / (wordings * (wordings + 1))
        return ceil(self.within / left) - self.episodes if left > 0 else None

    def wordings_for(self, half_width: float) -> int | None:
        """Return the fewest wordings with which some number of episodes reaches this half-width, at least 2."""
        numbers = np.arange(2, MOST_WORDINGS + 1)
        reached = student_quantile(numbers - 1, self.confidence) ** 2 * max(0.0, self.between) / numbers < half_width**2
        return int(numbers[np.argmax(reached)]) if reached.any() else None


def split(returns: Array, wordings: Sequence[str], confidence: float = CONFIDENCE) -> Split | None:
    """Return the variance of returns (episodes,) within and between wordings, by a one-way analysis of random effects.

    ``None`` without two wordings of two episodes each, or if all returns are equal: that says little of what varies.
    """
    told = np.array(wordings)
    groups = {str(name): returns[told == name] for name in np.unique(told)}
    groups = {name: own for name, own in groups.items() if len(own) > 1}
    if len(groups) < 2 or np.ptp(np.concatenate([*groups.values()])) < 1e-9:  # luck is removed up to rounding
        return None
    episodes, number = sum(map(len, groups.values())), len(groups)
    within = sum(float(((own - own.mean()) ** 2).sum()) for own in groups.values()) / (episodes - number)
    means = {name: float(own.mean()) for name, own in groups.items()}
    of_a_mean = within * float(np.mean([1 / len(own) for own in groups.values()]))  # what episodes add to its variance
    between = float(np.var(list(means.values()), ddof=1)) - of_a_mean
    return Split(means, episodes, within, between, of_a_mean / number, confidence)


def wording_rows(results: ResultColumns) -> list[WordingView]:
    """Return every agent in every scenario in which it was prompted in several wordings, in units of the return."""
    rows = []
    solo = {scenario.name for scenario in solo_scenarios(results)}
    for (agent, name), cell in results.cells.items():
        told = tuple(wordings_of(results.agents[agent]))
        scenario = results.scenarios[name]
        if not told:
            continue
        seeds, returns = corrected_returns(cell, scenario)
        found = split(returns, [wording_of(int(seed), told) for seed in seeds], cell.confidence)
        if found is None:
            continue
        starts, wordings = found.over_starts, found.over_wordings
        half = 0.0 if wordings.high is None else (wordings.high - found.mean) / 2
        rows.append(
            WordingView(
                agent=agent,
                scenario=name,
                episodes=found.episodes,
                means=found.means,
                spread=sqrt(max(0.0, found.between)),
                over_starts=EstimateView(value=starts.value, low=starts.low, high=starts.high),
                over_wordings=EstimateView(value=wordings.value, low=wordings.low, high=wordings.high),
                half_width=half,
                episodes_for_it=found.episodes_for(half) if half else None,
                wordings_for_it=found.wordings_for(half) if half else None,
                wording_worth=found.worth_of_a_wording,
                flips=_flips(results, agent, scenario) if name in solo else [],
            )
        )
    return rows


def wordings_of(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{name: texts}`` of the wordings that an agent's card holds."""
    found: Any = card["settings"]
    for key in ("prompt_map", "texts", "wordings"):  # of a folder that may be anybody's
        found = found.get(key) if isinstance(found, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def _flips(results: ResultColumns, agent: str, scenario: Scenario) -> list[WordingFlipView]:
    """Return the agents that are better than this one in some wordings and worse in others, each beyond chance."""
    told = wordings_of(results.agents[agent])
    rows = []
    for other in results.agents:
        same = other > agent and wordings_of(results.agents[other]) == told
        if not same or (other, scenario.name) not in results.cells:
            continue
        ours, theirs = (corrected_returns(results.cells[name, scenario.name], scenario) for name in (agent, other))
        seeds, of_ours, of_theirs = np.intersect1d(ours[0], theirs[0], return_indices=True)
        differences = ours[1][of_ours] - theirs[1][of_theirs]
        better, worse = flipped(differences, [wording_of(int(seed), tuple(told)) for seed in seeds])
        if better and worse:
            rows.append(WordingFlipView(agent=other, better_in=better, worse_in=worse))
    return rows


def flipped(differences: Array, wordings: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the wordings in which paired differences are above 0, and below it, by sign-flip tests after Holm."""
    told = np.array(wordings)
    groups = {name: differences[told == name] for name in sorted(set(wordings))}
    sides: tuple[list[str], list[str]] = ([], [])
    for name, p in holm({name: paired_p_value(own) for name, own in groups.items()}).items():
        if p < FLIP_LEVEL:
            sides[int(groups[name].mean() < 0)].append(name)
    return sides


_NOTE = (
    "mean returns; the first interval is for these wordings, the second for wordings like these; the spread is the "
    "standard deviation between wordings; one more wording lowers the variance of the mean as much as the episodes "
    "that it is worth; and the last column says what would halve the second interval"
)


def _by_wording(row: WordingView) -> Figure:
    note = "; ".join(
        f"better than {flip['agent']} in {', '.join(flip['better_in'])}, and worse in {', '.join(flip['worse_in'])}"
        for flip in row["flips"]
    )
    return Figure(", ".join(f"{name} {number(mean, '.2f')}" for name, mean in row["means"].items()), note=note)


def _to_halve(row: WordingView) -> Figure:
    if row["episodes_for_it"] is not None:
        return Figure(f"{row['episodes_for_it']} episodes")
    return Figure("" if row["wordings_for_it"] is None else f"{row['wordings_for_it']} wordings")


_COLUMNS: tuple[Column[WordingView], ...] = (
    AGENT,
    SCENARIO,
    estimate("over_starts", "over starts"),
    estimate("over_wordings", "over starts and wordings"),
    value("spread", form=".3f"),
    Column("means", "by wording", _by_wording, wide_only=True, left=True),
    Column(
        "worth",
        "one more is worth",
        lambda row: Figure("more than any" if row["wording_worth"] is None else f"{row['wording_worth']} episodes"),
        wide_only=True,
    ),
    Column("to_halve", "to halve it", _to_halve, wide_only=True),
)


WORDINGS = Table("wordings", "wordings", _COLUMNS, (_NOTE,), lambda scored: wording_rows(scored.results))
