"""Luck as a check of entries: the luck of an honest player sums to a number whose spread is known.

**Draws after the start.** ``z`` is the sum of luck over the root of its summed variances (``docs/research/scores.md``).

**The hidden part of the start.** Before each action of an honest player the hidden state is distributed as the draw of
the start is, given all that happened, and the result of the action has a known mean::

    gain_t = x_t - sum_s P(s | what happened) E[x_t | s, a_t],    x_t = reward + forfeit of the next state

The mean of ``gain_t`` given what happened is zero, and it is never below ``-worst_t``. So a wealth that is multiplied
by ``1 + share * gain_t / worst_t`` at every action has mean 1 (a test by betting: Waudby-Smith and Ramdas, JRSS B
2024), and by Markov's inequality it reaches ``1 / p`` with a probability of at most ``p``: with few episodes, too.

All decisions are looked at if the possible starts can be listed. Else only the first one of an episode is, and only if
enough drawn starts look like it; its worth is taken from the true start then, without the noise of what came of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import log, sqrt
from typing import Any, NamedTuple, TypedDict

import numpy as np

from agents.common.intervals import Array
from benchmark.runs.replay import Replay
from benchmark.score.differences import holm
from benchmark.score.luck import EpisodeLuck, LuckValues, episode_luck
from textgames.scenarios import Scenario
from textgames.tsmg import TSMG
from textgames.yardsticks import Moments

DRAWS = 2_000
"""Starts that are drawn if a game doesn't list them."""
MOST = 20_000
"""The most starts that are looked at."""
SHARES = (0.01, 0.05, 0.2, 0.5, 0.9)
"""The shares of its wealth that are bet; the wealth is the mean over them."""


class Gain(NamedTuple):
    """The surplus of one action over the mean of what may be hidden."""

    gain: float
    variance: float
    worst: float  # the least that the gain could have been, with its sign turned


class HiddenStart:
    """The possible starts of one game, and how well an episode's actions suit its own."""

    def __init__(self, game: TSMG[Any]) -> None:
        self._game, self._player = game, game.players[0]
        self._complete, rng = game.has_initial_outcomes, np.random.default_rng(0)
        listed = (
            game.initial_outcomes() if self._complete else [(1 / DRAWS, game.initial_state(rng)) for _ in range(DRAWS)]
        )
        self._starts: dict[str, dict[Any, float]] = {}  # by what the player sees of them
        for chance, state in listed if len(listed) <= MOST else ():
            self._starts.setdefault(game.observe(state, self._player), {})[state] = chance

    @classmethod
    def of(cls, game: TSMG[Any]) -> "HiddenStart | None":
        """Return the starts of a game for one player that hides something and tells its chances; else ``None``."""
        return cls(game) if len(game.players) == 1 and game.hidden_information and game.has_outcomes else None

    def gains(self, played: Replay) -> Iterator[Gain]:
        """Yield the gains of an episode's actions, of those whose worth depends on chance or on what is hidden."""
        possible = self._starts.get(self._game.observe(played.states[0], self._player), {})
        if not self._complete:
            action = played.steps[0].action if played.steps else ""
            if action and len(possible) >= DRAWS / 2:

                def worth(state: Any) -> float:
                    outcomes = self._outcomes(state, action, _rounds_left(played, 0))
                    return sum(chance * worth for chance, _, (_, worth) in outcomes)

                worths = [(chance, worth(state)) for state, chance in possible.items()]
                yield from _gain(worth(played.states[0]), worths)
            return
        for number, step in enumerate(played.steps):
            if not step.action:
                return
            paid = step.reward + (0.0 if step.valid else played.rules.format_penalty)
            come = [
                (before * chance, *outcome)
                for state, before in possible.items()
                for chance, *outcome in self._outcomes(state, step.action, _rounds_left(played, number))
            ]
            seen = self._seen(played.states[number + 1], step.out, paid, _rounds_left(played, number))
            yield from _gain(seen[1], [(chance, worth) for chance, _, (_, worth) in come])
            possible = {}
            for chance, after, looks in come:
                if looks == seen:
                    possible[after] = possible.get(after, 0.0) + chance

    def _outcomes(self, state: Any, action: str, left: float) -> Iterator[tuple[float, Any, tuple[str, float]]]:
        for chance, after, rewards, over in self._game.outcomes(state, {self._player: action}):
            yield chance, after, self._seen(after, over, rewards[self._player], left)

    def _seen(self, state: Any, over: bool, paid: float, left: float) -> tuple[str, float]:
        """Return the player's next observation, and its pay with that of giving up then, which tells an end."""
        if over:
            return "", round(paid, 9)
        with suppress(NotImplementedError):
            paid += self._game.forfeit(state, self._player, left)[self._player]
        return self._game.observe(state, self._player), round(paid, 9)


def _rounds_left(played: Replay, number: int) -> float:
    return float("inf") if played.rules.max_steps is None else float(played.rules.max_steps - number - 1)


def _gain(worth: float, possible: Sequence[tuple[float, float]]) -> Iterator[Gain]:
    """Yield by how much a worth is above its mean over the possible ones, if these differ at all."""
    total = sum(chance for chance, _ in possible)
    if total > 0.0:
        mean, variance = Moments.of([(chance / total, each) for chance, each in possible])
        worst = mean - min(each for _, each in possible)
        if variance > 0.0 and worst > 0.0:
            yield Gain(max(worth - mean, -worst), variance, worst)


def chance_of(gains: list[Gain]) -> float:
    """Return the most that the probability can be with which honest play has gains like these, by betting on them."""
    shares = np.array(SHARES)[:, np.newaxis]
    ratios = np.array([one.gain / one.worst for one in gains])
    wealth = np.log1p(shares * ratios).sum(axis=1)
    return float(min(1.0, np.exp(log(len(SHARES)) - np.logaddexp.reduce(wealth))))


SUSPICIOUS = 1e-4
"""An entry is refused if the luck of a scenario has a smaller corrected probability than this."""


class LuckCheck(TypedDict):
    """The luck of an agent in one scenario."""

    z: float  # the sum of luck, or of what suited the hidden start, in standard deviations: whichever is less likely
    p: float  # one-sided: how likely an honest player is to have at least so much, or a bound of that


POWER = 0.8
"""The probability with which luck of :attr:`LuckPower.detectable` is found."""


class LuckPower(TypedDict):
    """The sensitivity of the check of one scenario."""

    episodes: int
    detectable: float  # the least undue luck an episode, in returns, that is found with the probability `power`
    power: float


def luck_check(luck: Array, variance: Array) -> LuckCheck | None:
    """Return the check of episodes' luck and variances, both (episodes,); ``None`` if there was no chance at all."""
    total = float(np.sum(variance))
    if total <= 0.0:
        return None
    from scipy.special import ndtr

    z = float(np.sum(luck)) / sqrt(total)
    return LuckCheck(z=z, p=float(ndtr(-z)))


def power_of(variance: Array, scenarios: int) -> LuckPower | None:
    """Return the power of the check of an entry of so many scenarios with chance; ``None`` without chance.

    With luck of ``d`` an episode beyond what is due, z is ``d sqrt(n) / sigma`` higher in the mean, if ``sigma`` is the
    root of the mean ``variance`` (episodes,). It is found where z is above the corrected quantile of
    :data:`SUSPICIOUS`.
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
        luck = episode_luck(played, values) if values is not None and played.over else None
        if luck is not None:
            self._luck.setdefault(scenario, []).append(luck)
        if (starts := self._starts[scenario]) is not None:
            self._gains.setdefault(scenario, []).extend(starts.gains(played))

    def checks(self) -> dict[str, LuckCheck]:
        """Return ``{scenario: check}`` of the scenarios with chance."""
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
            if luck is not None:  # the less likely of the two, whose probability is doubled
                least = min(luck, hidden, key=lambda each: each["p"])
                hidden = LuckCheck(z=least["z"], p=min(1.0, 2 * least["p"]))
            found[scenario] = hidden
        return found

    def powers(self) -> dict[str, LuckPower]:
        """Return ``{scenario: what its check can find}`` of those in which chance plays a part after the start."""
        variances = {name: np.array([e.variance for e in episodes]) for name, episodes in self._luck.items()}
        chancy = {name: variance for name, variance in variances.items() if variance.sum() > 0.0}
        found = {name: power_of(variance, len(chancy)) for name, variance in chancy.items()}
        return {name: power for name, power in found.items() if power is not None}


def luck_problems(checks: Mapping[str, LuckCheck]) -> Iterator[str]:
    """Report an entry that has more luck than an honest player, by Holm's correction over its scenarios."""
    adjusted = holm({scenario: check["p"] for scenario, check in checks.items()})
    for scenario, check in checks.items():
        if (p := adjusted[scenario]) < SUSPICIOUS:
            yield (
                f"{scenario}: the draws of chance favoured this player by {check['z']:.1f} standard deviations; honest "
                f"play has that much luck with probability {p:.1g}, and below {SUSPICIOUS:g} an entry is refused "
                "(it may know the random numbers or what is hidden, or its episodes were chosen)"
            )
