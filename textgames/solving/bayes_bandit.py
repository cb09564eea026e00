"""Bayes-optimal play of Bernoulli bandits with a known number of rounds, by dynamic programming over beliefs.

A player that doesn't know the arms' means but knows what they are drawn from is in a Markov decision process over
beliefs: after a pull of arm ``a`` it is paid 1 with the predictive probability ``p_a``, and its belief moves on::

    V_0 = 0,   V_h(belief) = max_a  p_a (1 + V_{h-1}(belief after a win of a)) + (1 - p_a) V_{h-1}(after a loss of a)

``V`` of the first belief is the most that any player can get on average over the prior (Bellman 1956; Berry and
Fristedt, "Bandit Problems", 1985). Arms are alike before they are pulled, so beliefs that differ in the names of arms
alone are one belief: a sorted row of one whole number an arm.
"""

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

Beliefs = NDArray[np.int64]
"""Shape (beliefs, arms): in every row one whole number an arm, sorted."""


class Prior(ABC):
    """What the means are drawn from, and how a belief about them is written.

    ``most_rounds``, ``{arms: rounds}``, are the largest problems that are solved here: a few seconds each.
    """

    most_rounds: ClassVar[dict[int, int]]

    @abstractmethod
    def beliefs(self, wins: Beliefs, losses: Beliefs) -> Beliefs:
        """Return the belief after so many wins and losses of every arm; shape (beliefs, arms), arms not sorted yet."""

    @abstractmethod
    def after(self, beliefs: Beliefs, arm: int, won: bool) -> Beliefs:
        """Return what is known after one more pull of one arm, in the same form."""

    @abstractmethod
    def chances(self, beliefs: Beliefs) -> NDArray[np.float64]:
        """Return the predictive probability that each arm pays, shape (beliefs, arms)."""


class UniformMeans(Prior):
    """Every mean is drawn by itself from the uniform distribution, Beta(1, 1). An arm's number holds its two counts."""

    most_rounds: ClassVar[dict[int, int]] = {2: 60, 3: 25, 4: 15, 5: 12}
    _WIN = 64  # more than any count of losses that occurs, and small enough that five arms fit into 64 bits

    def beliefs(self, wins: Beliefs, losses: Beliefs) -> Beliefs:
        return np.asarray(wins * self._WIN + losses, dtype=np.int64)

    def after(self, beliefs: Beliefs, arm: int, won: bool) -> Beliefs:
        moved = beliefs.copy()
        moved[:, arm] += self._WIN if won else 1
        return moved

    def chances(self, beliefs: Beliefs) -> NDArray[np.float64]:
        wins, losses = np.divmod(beliefs, self._WIN)
        return np.asarray((wins + 1) / (wins + losses + 2), dtype=np.float64)


class OneGoodArm(Prior):
    """One arm, any of them with equal chances, has the mean ``.5 + gap/2`` and all others ``.5 - gap/2``.

    A win multiplies the odds of its arm by ``(1 + gap) / (1 - gap)`` and a loss divides them by it, so only the
    differences of the arms' wins minus losses count. An arm's number is how far it is above the lowest one.
    """

    most_rounds: ClassVar[dict[int, int]] = {2: 200, 3: 100, 4: 60, 5: 50}

    def __init__(self, gap: float) -> None:
        self.low, self.gap = 0.5 - gap / 2, gap
        self._log_odds = np.log((1 + gap) / (1 - gap))

    def beliefs(self, wins: Beliefs, losses: Beliefs) -> Beliefs:
        return self._from_lowest(np.asarray(wins - losses, dtype=np.int64))

    def after(self, beliefs: Beliefs, arm: int, won: bool) -> Beliefs:
        moved = beliefs.copy()
        moved[:, arm] += 1 if won else -1
        return self._from_lowest(moved)

    def chances(self, beliefs: Beliefs) -> NDArray[np.float64]:
        weights = np.exp(self._log_odds * (beliefs - beliefs.max(axis=1, keepdims=True)))
        return np.asarray(self.low + self.gap * weights / weights.sum(axis=1, keepdims=True), dtype=np.float64)

    @staticmethod
    def _from_lowest(beliefs: Beliefs) -> Beliefs:
        return np.asarray(beliefs - beliefs.min(axis=1, keepdims=True), dtype=np.int64)


class _Layer(NamedTuple):
    """The beliefs that can be held after one number of pulls."""

    keys: NDArray[np.int64]  # (beliefs,), ascending
    values: NDArray[np.float64]  # (beliefs,), in the same order


class BayesBandit:
    """The exact values of one problem, computed once when it is made; a ValueError beyond ``prior.most_rounds``."""

    def __init__(self, prior: Prior, arms: int, rounds: int) -> None:
        if not is_solved(prior, arms, rounds):
            raise ValueError(
                f"{arms} arms and {rounds} rounds are too many beliefs to solve exactly; accepted: "
                + ", ".join(f"{k} arms up to {most} rounds" for k, most in prior.most_rounds.items())
            )
        self._prior, self._arms, self.rounds = prior, arms, rounds
        self._bits = 62 // arms
        self._layers = self._solve()

    def action_values(self, wins: tuple[int, ...], losses: tuple[int, ...]) -> list[float]:
        """Return ``Q_h`` of every arm after these counts, in the rounds that are left, at least one."""
        pulls = sum(wins) + sum(losses)
        if pulls >= self.rounds:
            raise ValueError(f"{pulls} of {self.rounds} rounds were played, none is left to value")
        counts = [np.array([each], dtype=np.int64) for each in (wins, losses)]
        belief = self._prior.beliefs(*counts)
        chances = self._prior.chances(belief)[0]
        won, lost = (self._values_after(belief, pulls + 1, won) for won in (True, False))
        return [float(p * (1 + v) + (1 - p) * w) for p, v, w in zip(chances, won, lost, strict=True)]

    def value(self) -> float:
        """Return the expected return of Bayes-optimal play, over the prior, from the first round."""
        return float(self._layers[0].values[0])

    def _values_after(self, belief: Beliefs, pulls: int, won: bool) -> list[float]:
        if pulls == self.rounds:
            return [0.0] * self._arms
        moved = np.concatenate([self._prior.after(belief, arm, won) for arm in range(self._arms)])
        layer = self._layers[pulls]
        return [float(value) for value in layer.values[np.searchsorted(layer.keys, self._keys(moved))]]

    def _keys(self, beliefs: Beliefs) -> NDArray[np.int64]:
        keys = np.zeros(len(beliefs), dtype=np.int64)
        for column in np.sort(beliefs, axis=1).T:
            keys = (keys << self._bits) | column
        return keys

    def _beliefs(self, keys: NDArray[np.int64]) -> Beliefs:
        mask = (1 << self._bits) - 1
        columns = [(keys >> (self._bits * place)) & mask for place in reversed(range(self._arms))]
        return np.stack(columns, axis=1)

    def _solve(self) -> list[_Layer]:
        nothing = np.zeros((1, self._arms), dtype=np.int64)
        keys = [self._keys(self._prior.beliefs(nothing, nothing))]
        moves = []  # of every layer: where each belief leads, shape (2, arms, beliefs), wins before losses
        for _ in range(self.rounds - 1):  # what is known after the last round is worth nothing
            beliefs = self._beliefs(keys[-1])
            reached = [
                self._keys(self._prior.after(beliefs, arm, won)) for won in (True, False) for arm in range(self._arms)
            ]
            next_keys, places = np.unique(np.concatenate(reached), return_inverse=True)
            keys.append(next_keys)
            moves.append(places.astype(np.int32).reshape(2, self._arms, -1))
        layers = [_Layer(keys[-1], self._prior.chances(self._beliefs(keys[-1])).max(axis=1))]
        for layer_keys, (won, lost) in zip(reversed(keys[:-1]), reversed(moves), strict=True):
            chances = self._prior.chances(self._beliefs(layer_keys)).T
            later = layers[-1].values
            layers.append(_Layer(layer_keys, (chances * (1 + later[won]) + (1 - chances) * later[lost]).max(axis=0)))
        return layers[::-1]


def is_solved(prior: Prior, arms: int, rounds: int) -> bool:
    """Return whether a problem is small enough for :class:`BayesBandit`."""
    return rounds <= prior.most_rounds.get(arms, 0)


@lru_cache(maxsize=8)
def bayes_bandit(gap: float | None, arms: int, rounds: int) -> BayesBandit:
    """Return the solved problem, kept: with :class:`OneGoodArm` of this gap, or :class:`UniformMeans` for ``None``."""
    return BayesBandit(UniformMeans() if gap is None else OneGoodArm(gap), arms, rounds)
