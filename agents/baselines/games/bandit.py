"""The players of bandits: Bayes-optimal if beliefs can be enumerated, else an index or a sampling rule."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer
from agents.turn import TurnRequest
from textgames.exploration.bandit import Bandit, Evidence, exploration_bonuses, read_evidence
from textgames.exploration.contextual_bandit import CONTEXTS, FEATURES, ContextualBandit, Visit, best_on_average
from textgames.exploration.contextual_bandit import read_evidence as read_visits
from textgames.rounds import at_most
from textgames.solving.bayes_bandit import OneGoodArm, UniformMeans, bayes_bandit, is_solved

Method = Literal["bayes", "myopic", "thompson", "ucb"]

_UNSOLVED: dict[str, Method] = {"gap": "myopic", "uniform": "thompson", "gaussian": "ucb"}
_NAMES: dict[Method, str] = {
    "bayes": "Bayes-optimal",
    "myopic": "largest posterior mean",
    "thompson": "Thompson sampling",
    "ucb": "UCB",
}


class BanditPlayer(SearchPlayer):
    """``planner`` maximises the expected return over the prior exactly (:mod:`textgames.solving.bayes_bandit`).

    If that is too large to enumerate, it takes the arm of the largest expected reward if one arm is good and all others
    equal (optimal wherever that could be computed), samples like Thompson if means are uniform, and follows UCB if
    rewards are normal. ``greedy`` knows no prior: every arm once, then the largest average.
    """

    def __init__(self, game: Bandit) -> None:
        super().__init__(game)
        self._gap = game.gap if game.prior == "gap" else None
        self._prior = UniformMeans() if self._gap is None else OneGoodArm(self._gap)
        solved = game.prior != "gaussian" and is_solved(self._prior, game.num_arms, game.rounds)
        self._method: Method = "bayes" if solved else _UNSOLVED[game.prior]
        self.kind = "optimal" if self._method == "bayes" and game.tells_prior else "reference"
        self.method = _NAMES[self._method]

    def values(self, request: TurnRequest) -> dict[str, float]:
        """Return Bayes-optimal values; or, by another rule, those of staying with each arm to the end."""
        evidence, left = self._read(request)
        if self._method == "bayes" and left > 1:
            wins = tuple(round(total) for total in evidence.sums)
            losses = tuple(n - won for n, won in zip(evidence.pulls, wins, strict=True))
            solved = bayes_bandit(self._gap, self._game.num_arms, sum(evidence.pulls) + left)
            values = solved.action_values(wins, losses)
        else:
            values = [left * mean for mean in self._means(evidence)]
        return dict(zip(self._game.actions, values, strict=True))

    def plan(self, request: TurnRequest) -> Choice:
        if self._method in ("bayes", "myopic"):
            return super().plan(request)
        evidence, _ = self._read(request)
        if self._method == "ucb":
            arm = ucb(evidence, self._game.scale)
            return Choice(self._game.actions[arm], "It has the largest upper confidence bound.")
        pulls, sums, rng = np.array(evidence.pulls), np.array(evidence.sums), np.random.default_rng(request.seed)
        sampled = rng.beta(1 + sums, 1 + pulls - sums)
        return Choice(self._game.actions[int(np.argmax(sampled))], "It is the best in a world drawn from what I know.")

    def greedy(self, request: TurnRequest) -> Choice:
        evidence, _ = self._read(request)
        return Choice(self._game.actions[ucb(evidence, 0.0)], "It has the largest average so far.")

    def uniform_value(self, request: TurnRequest) -> float:
        """Return the mean of the arms' expected rewards for every round: random play never uses what it sees."""
        evidence, left = self._read(request)
        return left * float(np.mean(self._means(evidence)))

    def _read(self, request: TurnRequest) -> tuple[Evidence, int]:
        evidence = read_evidence(request.observation, self._game.actions)
        return evidence, at_most(self._game.rounds - sum(evidence.pulls), request.steps_left)

    def _means(self, evidence: Evidence) -> list[float]:
        """Return the expected reward of every arm, given the evidence."""
        if self._game.prior == "gaussian":  # prior and noise have the same standard deviation: it counts as one pull
            return [total / (n + 1) for n, total in zip(evidence.pulls, evidence.sums, strict=True)]
        pulls, wins = np.array([evidence.pulls]), np.array([evidence.sums]).round().astype(np.int64)
        chances: list[float] = self._prior.chances(self._prior.beliefs(wins, pulls - wins))[0].tolist()
        return chances


def ucb(evidence: Evidence, scale: float = 1.0) -> int:
    """Pick every arm once, in order, then the largest ``mean + scale * sqrt(.5 ln t / n)`` after ``t`` rounds."""
    bonuses = exploration_bonuses(evidence, scale)
    bounds = [total / max(n, 1) + bonus for n, total, bonus in zip(*evidence, bonuses, strict=True)]
    return bounds.index(max(bounds))


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
        context, log = read_visits(request.observation, self._game.actions)
        steps = at_most(self._game.rounds - len(log), request.steps_left)
        return LinearBelief(self._game.num_arms, self._game.noise, log), context, steps
