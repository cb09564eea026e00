"""Luck as a check: an honest player's luck sums to a number whose spread is known.

Every term of luck has mean zero and a known variance, given what happened before, so that the sum over an entry
divided by the root of the summed variances, ``z``, is close to a standard normal number for whoever can't see the
coming draw (a central limit theorem for martingales). A player that reads the random numbers, plays episodes again
until they end well, or leaves out unlucky ones has more luck than that.
"""

from collections.abc import Iterator, Mapping
from math import sqrt
from typing import TypedDict

import numpy as np

from benchmark.runs.replay import Replay
from benchmark.score import statistics as stats
from benchmark.score.luck.terms import EpisodeLuck, LuckValues, episode_luck
from benchmark.score.statistics import Array
from textgames.scenarios import Scenario

SUSPICIOUS = 1e-4
"""An entry is refused where the luck of a scenario has a smaller corrected probability than this."""


class LuckCheck(TypedDict):
    """How much luck an agent had in one scenario."""

    z: float  # the sum of luck in standard deviations
    p: float  # one-sided: how likely an honest player is to have at least so much


def luck_check(luck: Array, variance: Array) -> LuckCheck | None:
    """The check of episodes' luck and variances, both (episodes,); ``None`` where there was no chance at all."""
    total = float(np.sum(variance))
    if total <= 0.0:
        return None
    from scipy.special import ndtr

    z = float(np.sum(luck)) / sqrt(total)
    return LuckCheck(z=z, p=float(ndtr(-z)))


class LuckTally:
    """Collects the luck of an entry's episodes while they are played again."""

    def __init__(self, scenarios: Mapping[str, Scenario]) -> None:
        self._values = {name: LuckValues.of(scenario.game()) for name, scenario in scenarios.items()}
        self._luck: dict[str, list[EpisodeLuck]] = {}

    def add(self, scenario: str, played: Replay) -> None:
        """Count one episode, if its luck is known; one that isn't at its end has no final value."""
        values = self._values[scenario]
        luck = episode_luck(played, values) if values is not None and played.end.over else None
        if luck is not None:
            self._luck.setdefault(scenario, []).append(luck)

    def checks(self) -> dict[str, LuckCheck]:
        """``{scenario: check}`` of the scenarios with chance."""
        found = {}
        for scenario, episodes in self._luck.items():
            check = luck_check(np.array([e.luck for e in episodes]), np.array([e.variance for e in episodes]))
            if check is not None:
                found[scenario] = check
        return found


def luck_problems(checks: Mapping[str, LuckCheck]) -> Iterator[str]:
    """Where an entry has more luck than an honest player: Holm's correction is over its scenarios."""
    adjusted = stats.holm([check["p"] for check in checks.values()])
    for (scenario, check), p in zip(checks.items(), adjusted, strict=True):
        if p < SUSPICIOUS:
            yield (
                f"{scenario}: the draws of chance favoured this player by {check['z']:.1f} standard deviations; honest "
                f"play has that much luck with probability {p:.1g}, and below {SUSPICIOUS:g} an entry is refused "
                "(it may know the random numbers, or its episodes were chosen)"
            )
