"""Distributionally robust regularised policy optimisation, in tables: mirror ascent against the worst chances.

Our reading of DR-RPO (2025). A softmax policy is kept near a reference policy, here uniform play, and nature chooses
from a ball: ``max over pi of min over q of E[sum r - temperature KL(pi || reference)]``. A round of it computes the
exact ``Q`` of the policy at its worst chances, and steps at every state and number of rounds left by

``pi' ~ (pi exp(rate Q) reference^(rate temperature))^(1 / (1 + rate temperature))``

The paper learns ``Q`` from play, linear in features and with a bonus for the unknown: :mod:`.learned`.
"""

from collections.abc import Iterator

import numpy as np

from research.robustness.worst_case.balls import Ball
from research.robustness.worst_case.solver import Model, Solution
from textgames.solving import Floats, Indices


def optimise(
    model: Model, ball: Ball, radius: float, *, temperature: float = 1e-3, rate: float = 1000.0
) -> Iterator[Solution]:
    """Yield the regularised values of uniform play at its worst chances, and of the policy after every round."""
    first, ends = model.space.first_round[:-1], model.space.first_round[1:]
    sizes = ends - first
    reference = np.repeat(-np.log(sizes), sizes)  # of the logarithms of chances
    policy = np.tile(reference, (model.horizon, 1))

    def regularised(values: Floats, first: Indices, left: int) -> tuple[Floats, Floats]:
        logarithms = policy[left - 1, : len(values)]
        chances = np.exp(logarithms)
        paid = values - temperature * (logarithms - reference[: len(values)])
        return chances, np.add.reduceat(chances * paid, first)

    while True:
        solution = model.solve(regularised, ball, radius)
        yield solution
        stepped = (policy + rate * (solution.action_values + temperature * reference)) / (1 + rate * temperature)
        best = np.maximum.reduceat(stepped, first, axis=1)
        sums = np.add.reduceat(np.exp(stepped - np.repeat(best, sizes, axis=1)), first, axis=1)
        policy = stepped - np.repeat(best + np.log(sums), sizes, axis=1)
