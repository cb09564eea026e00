"""Luck as a check: an honest player's luck sums to a number whose spread is known.

Every term of luck has mean zero and a known variance, given what happened before, so that the sum over an entry
divided by the root of the summed variances, ``z``, is close to a standard normal number for whoever can't see the
coming draw (a central limit theorem for martingales). A player that reads the random numbers, plays episodes again
until they end well, or leaves out unlucky ones has more luck than that. How much more it takes to be found out is the
check's power (:func:`power_of`): a player that peeks now and then stays below it.

What a game draws at the start and hides is luck, too: :mod:`benchmark.score.luck.hidden`.
"""

from collections.abc import Iterator, Mapping
from math import sqrt
from typing import TypedDict

import numpy as np

from agents.common.intervals import Array
from benchmark.runs.replay import Replay
from benchmark.score.differences import holm
from benchmark.score.luck.hidden import Gain, HiddenStart, chance_of
from benchmark.score.luck.terms import EpisodeLuck, LuckValues, episode_luck
from textgames.scenarios import Scenario

SUSPICIOUS = 1e-4
"""An entry is refused where the luck of a scenario has a smaller corrected probability than this."""


class LuckCheck(TypedDict):
    """How much luck an agent had in one scenario."""

    z: float  # the sum of luck, or of what suited the hidden start, in standard deviations: whichever is less likely
    p: float  # one-sided: how likely an honest player is to have at least so much, or a bound of that


POWER = 0.8
"""How likely the luck of :attr:`LuckPower.detectable` is found."""


class LuckPower(TypedDict):
    """How much undue luck the check of one scenario can find."""

    episodes: int
    detectable: float  # the least undue luck an episode, in returns, that is found with the probability `power`
    power: float


def luck_check(luck: Array, variance: Array) -> LuckCheck | None:
    """The check of episodes' luck and variances, both (episodes,); ``None`` where there was no chance at all."""
    total = float(np.sum(variance))
    if total <= 0.0:
        return None
    from scipy.special import ndtr

    z = float(np.sum(luck)) / sqrt(total)
    return LuckCheck(z=z, p=float(ndtr(-z)))


def power_of(variance: Array, scenarios: int) -> LuckPower | None:
    """What the check finds in an entry of so many scenarios with chance; ``None`` where there was no chance at all.

    With luck of ``d`` an episode beyond what is due, z is ``d sqrt(n) / sigma`` higher in the mean, where ``sigma`` is
    the root of the mean ``variance`` (episodes,) of an episode's luck. It is found where z is above the quantile of
    :data:`SUSPICIOUS`, which Holm's correction divides by the number of scenarios.
    """
    total, episodes = float(np.sum(variance)), len(variance)
    if total <= 0.0:
        return None
    from scipy.special import ndtri

    deviations = float(ndtri(1 - SUSPICIOUS / scenarios) + ndtri(POWER))
    return LuckPower(episodes=episodes, detectable=deviations * sqrt(total) / episodes, power=POWER)


class LuckTally:
    """Collects the luck of an entry's episodes while they are played again."""

    def __init__(self, scenarios: Mapping[str, Scenario]) -> None:
        self._values = {name: LuckValues.of(scenario.game()) for name, scenario in scenarios.items()}
        self._luck: dict[str, list[EpisodeLuck]] = {}
        self._starts = {name: HiddenStart.of(scenario.game()) for name, scenario in scenarios.items()}
        self._gains: dict[str, list[Gain]] = {}

    def add(self, scenario: str, played: Replay) -> None:
        """Count one episode, if its luck is known; one that isn't at its end has no final value."""
        values = self._values[scenario]
        luck = episode_luck(played, values) if values is not None and played.end.over else None
        if luck is not None:
            self._luck.setdefault(scenario, []).append(luck)
        if (starts := self._starts[scenario]) is not None:
            self._gains.setdefault(scenario, []).extend(starts.gains(played))

    def checks(self) -> dict[str, LuckCheck]:
        """``{scenario: check}`` of the scenarios with chance."""
        found = {}
        for scenario, episodes in self._luck.items():
            check = luck_check(np.array([e.luck for e in episodes]), np.array([e.variance for e in episodes]))
            if check is not None:
                found[scenario] = check
        for scenario, gains in self._gains.items():
            if not gains:
                continue
            z = sum(one.gain for one in gains) / sqrt(sum(one.variance for one in gains))
            hidden, luck = LuckCheck(z=z, p=chance_of(gains)), found.get(scenario)
            found[scenario] = hidden if luck is None else _less_likely(luck, hidden)
        return found

    def powers(self) -> dict[str, LuckPower]:
        """``{scenario: what its check can find}`` of those in which chance plays a part after the start."""
        variances = {name: np.array([e.variance for e in episodes]) for name, episodes in self._luck.items()}
        chancy = {name: variance for name, variance in variances.items() if variance.sum() > 0.0}
        found = {name: power_of(variance, len(chancy)) for name, variance in chancy.items()}
        return {name: power for name, power in found.items() if power is not None}


def _less_likely(one: LuckCheck, other: LuckCheck) -> LuckCheck:
    """Return the check of smaller probability, which is doubled as there were two."""
    least = min(one, other, key=lambda each: each["p"])
    return LuckCheck(z=least["z"], p=min(1.0, 2 * least["p"]))


def luck_problems(checks: Mapping[str, LuckCheck]) -> Iterator[str]:
    """What is wrong with an entry that has more luck than an honest player; Holm's correction is over its scenarios."""
    adjusted = holm({scenario: check["p"] for scenario, check in checks.items()})
    for scenario, check in checks.items():
        if (p := adjusted[scenario]) < SUSPICIOUS:
            yield (
                f"{scenario}: the draws of chance favoured this player by {check['z']:.1f} standard deviations; honest "
                f"play has that much luck with probability {p:.1g}, and below {SUSPICIOUS:g} an entry is refused "
                "(it may know the random numbers or what is hidden, or its episodes were chosen)"
            )
