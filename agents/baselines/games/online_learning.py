"""The player of online learning: it weighs the patterns that losses may have by how well they forecast what came.

All losses are seen and none depends on the choices, so there is nothing to explore: the best play is the action of the
least expected loss, under a belief over :data:`textgames.exploration.online_learning.PATTERNS`. Models aren't told the
patterns, so this is a reference player and not the optimum of what a model knows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer
from agents.turn import TurnRequest
from textgames.exploration.online_learning import LARGEST_LOSS, OnlineLearning, read_losses

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
