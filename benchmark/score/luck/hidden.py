"""Luck with what was drawn at the start and hidden: whether a player's actions suit it better than guessing can.

An honest player knows what is hidden by its observations alone. So before each of its actions the hidden state is
distributed as the draw of the start is, given these observations, and what the action is worth has a known mean::

    gain_t = w(s_t, a_t) - sum_s P(s | observations) w(s, a_t),    w(s, a) = E[reward + forfeit of the next state]

The mean of ``gain_t`` is zero, whatever an honest player does, and it is never below ``-worst_t``. So a wealth that is
multiplied by ``1 + share * gain_t / worst_t`` at every action has mean 1 (a test by betting: Waudby-Smith and Ramdas,
JRSS B 2024), and by Markov's inequality it reaches ``1 / p`` with a probability of at most ``p``: with few episodes,
too, and however skewed the gains are. A player that reads the seed of a guessing game multiplies it at every hit.

All decisions are looked at if the possible starts can be listed. Else only the first one is, and only if enough drawn
starts look like it: what is known later isn't computed there.
"""

from collections.abc import Iterator, Mapping
from math import log
from typing import Any, NamedTuple

import numpy as np

from benchmark.runs.replay import Replay
from textgames.tsmg import TSMG
from textgames.yardsticks import Moments

DRAWS = 2_000
"""Starts that are drawn where a game doesn't list them."""
MOST = 20_000
"""The most starts that are looked at."""
SHARES = (0.01, 0.05, 0.2, 0.5, 0.9)
"""The shares of its wealth that are bet; the wealth is the mean over them."""


class Gain(NamedTuple):
    """How much better one action suited what was hidden than it had to."""

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
        """Yield the gains of an episode's actions, of those whose worth depends on what is hidden."""
        possible = self._starts.get(self._game.observe(played.states[0], self._player), {})
        if not self._complete and len(possible) < DRAWS / 2:
            return
        for number, step in enumerate(played.steps):
            if not step.action or not possible:
                return
            left = float("inf") if played.rules.max_steps is None else float(played.rules.max_steps - number - 1)
            total = sum(possible.values())
            worths = [(chance / total, self._worth(state, step.action, left)) for state, chance in possible.items()]
            mean, variance = Moments.of(worths)
            worst = mean - min(worth for _, worth in worths)
            if variance > 0.0 and worst > 0.0:
                gain = self._worth(played.states[number], step.action, left) - mean
                yield Gain(max(gain, -worst), variance, worst)
            if not self._complete or step.out or number + 2 >= len(played.states):
                return
            possible = self._after(possible, step.action, self._game.observe(played.states[number + 1], self._player))

    def _worth(self, state: Any, action: str, left: float) -> float:
        return sum(
            chance * (rewards[self._player] + (0.0 if over else self._floor(after, left)))
            for chance, after, rewards, over in self._game.outcomes(state, {self._player: action})
        )

    def _floor(self, state: Any, left: float) -> float:
        """Return what giving up pays in a state: any fixed number would do, and this tells an end from going on."""
        try:
            return self._game.forfeit(state, self._player, left)[self._player]
        except NotImplementedError:
            return 0.0

    def _after(self, possible: Mapping[Any, float], action: str, seen: str) -> dict[Any, float]:
        """Return the states that agree with the next observation, each with its chance times a number common to all."""
        found: dict[Any, float] = {}
        for state, before in possible.items():
            for chance, after, _, over in self._game.outcomes(state, {self._player: action}):
                if not over and self._game.observe(after, self._player) == seen:
                    found[after] = found.get(after, 0.0) + before * chance
        return found


def chance_of(gains: list[Gain]) -> float:
    """Return the most that the probability can be with which honest play has gains like these, by betting on them."""
    shares = np.array(SHARES)[:, np.newaxis]
    ratios = np.array([one.gain / one.worst for one in gains])
    wealth = np.log1p(shares * ratios).sum(axis=1)
    return float(min(1.0, np.exp(log(len(SHARES)) - np.logaddexp.reduce(wealth))))
