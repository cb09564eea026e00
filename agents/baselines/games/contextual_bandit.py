"""The player of the contextual bandit: Bayesian linear regression and LinUCB."""

import numpy as np
from numpy.typing import NDArray

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer
from agents.turn import TurnRequest
from textgames.exploration.contextual_bandit import (
    CONTEXTS,
    FEATURES,
    ContextualBandit,
    Visit,
    best_on_average,
    read_evidence,
)
from textgames.rounds import at_most


class LinearBelief:
    """The posterior of every arm's weights, ``means`` (arms, features): Bayesian linear regression.

    The prior is the game's own, standard normal; the noise counts as normal with its true standard deviation, of at
    least .02, since rewards are read with two decimals.
    """

    def __init__(self, num_arms: int, noise: float, log: tuple[Visit, ...]) -> None:
        precision = 1 / max(noise, 0.02) ** 2
        gram = np.tile(np.eye(FEATURES), (num_arms, 1, 1))
        targets = np.zeros((num_arms, FEATURES))
        for context, arm, reward in log:
            x = np.array(CONTEXTS[context])
            gram[arm] += precision * np.outer(x, x)
            targets[arm] += precision * reward * x
        self.covariances = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        self.means = np.asarray(np.einsum("aij,aj->ai", self.covariances, targets), dtype=np.float64)

    def rewards(self, context: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of every arm's expected reward; two arrays of shape (arms,)."""
        x = np.array(CONTEXTS[context])
        return self.means @ x, np.sqrt(np.einsum("i,aij,j->a", x, self.covariances, x))


class ContextualBanditPlayer(SearchPlayer):
    """``planner`` takes the largest mean plus one standard deviation (LinUCB, Li et al. 2010), ``greedy`` the mean.

    Bayes-optimal play can't be computed here.
    """

    method = "LinUCB"
    _game: ContextualBandit

    def values(self, request: TurnRequest) -> dict[str, float]:
        """Estimate values: the posterior mean now, and later rounds as if the posterior means were the weights."""
        belief, context, left = self._read(request)
        means, _ = belief.rewards(context)
        later = max(left - 1, 0) * best_on_average(tuple(map(tuple, belief.means.tolist())))
        return {name: float(mean) + later for name, mean in zip(self._game.actions, means, strict=True)}

    def plan(self, request: TurnRequest) -> Choice:
        belief, context, _ = self._read(request)
        arm = int(np.argmax(np.add(*belief.rewards(context))))
        return Choice(self._game.actions[arm], "It has the largest upper confidence bound for them.")

    def _read(self, request: TurnRequest) -> tuple[LinearBelief, int, int]:
        context, log = read_evidence(request.observation, self._game.actions)
        steps = at_most(self._game.rounds - len(log), request.steps_left)
        return LinearBelief(self._game.num_arms, self._game.noise, log), context, steps
