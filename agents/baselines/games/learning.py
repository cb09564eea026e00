"""Players of games in which payoffs have to be learnt: bandits, online learning, and repeated matrix games."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer, YardstickPlayer
from agents.turn import TurnRequest
from textgames.exploration.bandit import Bandit, Evidence, exploration_bonuses, read_evidence
from textgames.exploration.contextual_bandit import CONTEXTS, FEATURES, ContextualBandit, Visit, best_on_average
from textgames.exploration.contextual_bandit import read_evidence as read_visits
from textgames.exploration.online_learning import LARGEST_LOSS, OnlineLearning, read_losses
from textgames.rounds import at_most
from textgames.social.matrix_game import MatrixGame
from textgames.social.matrix_game.game import BestResponseYardstick
from textgames.solving.bayes_bandit import OneGoodArm, UniformMeans, bayes_bandit, is_solved
from textgames.solving.regret import hedge, hedge_rate

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


Floats = NDArray[np.float64]

MEAN = LARGEST_LOSS / 2
"""What every loss is on average before the first round, under each of the patterns but the adversarial one."""
PERIODS = (6.0, 8.0, 10.0, 12.0, 14.0)
"""Periods of the waves that are believed in; they are drawn from [5, 15]."""
STEADY, OTHERS = 0.98, 0.005
"""The chance of a pattern before the first round: that of steady means, and each of the four others, which show
themselves within a few rounds."""
LEADER_IS_HIT = 0.9
"""How sure it is, under the adversarial pattern, that the action that has cost least is hit: sums are read rounded."""


class Belief(NamedTuple):
    """One pattern after the rounds so far."""

    evidence: float  #: log-probability of the losses that were seen
    forecast: Floats  #: the expected losses of the next round, shape (actions,)


class OnlineLearningPlayer(SearchPlayer):
    """``planner`` takes the least expected loss over the patterns; ``greedy`` what would have cost least so far."""

    method = "Bayesian mixture of the patterns"
    _game: OnlineLearning

    def values(self, request: TurnRequest) -> dict[str, float]:
        """Return minus the expected loss of each action in the next round; rounds after it depend on none of them."""
        rows = np.array(read_losses(request.observation)).reshape(-1, self._game.num_actions)
        time = np.arange(len(rows) + 1.0)
        line = time / max(self._game.rounds - 1, 1)
        ends = np.stack([1 - line, line])  # of a straight line between two numbers of [0, 10], each drawn by itself
        beliefs: list[tuple[Belief, float]] = [
            # uniform: nothing to learn
            (_smooth(rows, np.zeros((len(time), len(time))), LARGEST_LOSS**2 / 12), OTHERS),
            # means of [2.5, 7.5], noise of deviation 2
            (_smooth(rows, np.full((len(time), len(time)), 25 / 12), 4.0), STEADY),
            (_smooth(rows, np.asarray(LARGEST_LOSS**2 / 12 * ends.T @ ends), 0.25), OTHERS),
            (_adversary(rows), OTHERS),
        ]
        waves = [8 * np.cos(2 * np.pi / period * (time[:, None] - time)) for period in PERIODS]
        beliefs += [(_smooth(rows, wave, 0.25), OTHERS / len(waves)) for wave in waves]
        logs = np.array([one.evidence + np.log(share) for one, share in beliefs])
        weights = np.exp(logs - logs.max())
        expected = weights @ np.array([one.forecast for one, _ in beliefs]) / weights.sum()
        return dict(zip(request.legal_actions, (-expected).tolist(), strict=True))

    def plan(self, request: TurnRequest) -> Choice:
        values = self.values(request)
        best = max(values, key=lambda name: values[name])
        return Choice(best, f"I expect it to cost {-values[best]:.1f}, and no other less.")

    def greedy(self, request: TurnRequest) -> Choice:
        rows = read_losses(request.observation)
        losses = [sum(row[action] for row in rows) for action in range(self._game.num_actions)]
        return Choice(request.legal_actions[losses.index(min(losses))], "It would have been the best so far.")


def _smooth(rows: Floats, covariance: Floats, noise: float) -> Belief:
    """Fit losses (rounds, actions) that vary around :data:`MEAN` with a covariance over the rounds and the next one,
    plus noise of a variance: Gaussian regression."""
    played = len(rows)
    lower = np.linalg.cholesky(covariance[:played, :played] + noise * np.eye(played))
    off = np.linalg.solve(lower, rows - MEAN)
    evidence = -0.5 * (off**2).sum() - rows.shape[1] * (np.log(np.diag(lower)).sum() + played * np.log(2 * np.pi) / 2)
    return Belief(float(evidence), MEAN + np.linalg.solve(lower, covariance[:played, -1]) @ off)


def _adversary(rows: Floats) -> Belief:
    """Fit the pattern in which the action that has cost least so far costs 8 to 10, all others 0 to 2."""
    actions = rows.shape[1]
    so_far = np.cumsum(np.vstack([np.zeros(actions), rows]), axis=0)  # before every round, and now
    evidence = 0.0
    for losses, before in zip(rows, so_far, strict=False):
        # one loss is uniform on [8, 10] and the others on [0, 2]; a tenth allows for rounding
        high, low = (losses >= 7.9) & (losses <= 10.1), losses <= 2.1
        hit = high & (low.sum() - low == actions - 1)
        evidence += float(np.log(max(_hit_chances(before) @ hit / 2.0**actions, 1e-12)))
    return Belief(evidence, 1 + 8 * _hit_chances(so_far[-1]))


def _hit_chances(so_far: Floats) -> Floats:
    """Return the chance of each action to be hit next, shape (actions,)."""
    least = so_far == so_far.min()
    if least.all():
        return np.full(len(so_far), 1 / len(so_far))
    sure = np.where(least, LEADER_IS_HIT / least.sum(), (1 - LEADER_IS_HIT) / (~least).sum())
    return np.asarray(sure, dtype=np.float64)


class MatrixGamePlayer(SearchPlayer):
    """``planner`` is Hedge, ``greedy`` takes the action that would have cost least so far.

    Hedge's expected regret is at most ``range * sqrt(T ln d / 2)``, whatever an opponent plays. It doesn't cooperate.
    """

    method = "Hedge"
    _game: MatrixGame

    def losses(self, request: TurnRequest) -> list[float]:
        """Return the loss of every action so far, in the order of the actions."""
        seat, payoffs = self._game.players.index(request.player), self._game.payoffs
        history = self._game.read_observation(request.observation, request.player).history
        others = [pair[1 - seat] for pair in history]
        return [-sum(payoffs.of(seat, mine, other) for other in others) for mine in range(len(payoffs.actions))]

    def values(self, request: TurnRequest) -> dict[str, float]:
        """Return minus each action's loss so far: the order of the leader's follower, and no forecast."""
        return {name: -loss for name, loss in zip(request.legal_actions, self.losses(request), strict=True)}

    def plan(self, request: TurnRequest) -> Choice:
        low, high = self._game.payoffs.span(self._game.players.index(request.player))
        rate = hedge_rate(len(self._game.actions), self._game.rounds, high - low)
        chances = hedge(self.losses(request), rate)
        drawn = int(np.random.default_rng(request.seed).choice(len(chances), p=chances))
        return Choice(request.legal_actions[drawn], f"I take it with probability {chances[drawn]:.2f}.")

    def greedy(self, request: TurnRequest) -> Choice:
        losses = self.losses(request)
        return Choice(request.legal_actions[losses.index(min(losses))], "It would have been the best so far.")


def matrix_game_player(game: MatrixGame) -> SearchPlayer:
    """Return the best response if the other player is a program, else Hedge."""
    return MatrixGamePlayer(game) if game.opponent is None else YardstickPlayer(game, BestResponseYardstick(game))
