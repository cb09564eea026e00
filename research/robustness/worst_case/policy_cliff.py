"""The exact jump of the optimal policy if the reward moves a little, and its remedy by entropy.

Our reading of "The Policy Cliff" (arXiv 2507.20150): the map from rewards to optimal policies is discontinuous where
actions tie, and regularisation by entropy makes it continuous. Here every step gets a price ``c`` more. With ``h``
rounds left the optimum's action values move by ``c h`` at most, and so does its return: what is lost by the optimum for
another price is at most ``c H``. The policy itself may jump at any ``c > 0``. The soft optimum, ``pi_h(a|s) ~
exp(Q_h(s, a) / temperature)``, has values of actions that change by amounts within ``c (h - 1)`` of each other, so

``TV(pi_h(s), pi'_h(s)) <= tanh(c (h - 1) / (4 temperature))``

and it loses at most ``temperature H log(actions)`` by the reward that it is made for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from research.robustness.worst_case.solver import Model, Policy, follow, greedy, soft
from textgames.solving import END, Floats


class Jump(NamedTuple):
    """The effects of a price on every step. Means are over the starts."""

    temperature: float  # of the soft optimum, 0 for the optimum
    price: float
    moved: float  # total variation between the policies of both rewards, a mean over the decisions of the first
    farthest: float  # the largest of them
    bound: float  # that the soft optimum has for it, 1 for the optimum
    lost: float  # by the reward without the price: the optimum's return less that of the policy made with it


def jumps(model: Model, prices: Sequence[float], temperatures: Sequence[float] = (0.0,)) -> Iterator[Jump]:
    """Yield what each price does to the optimum, evenly spread over ties, and to the soft optimum."""
    optimum = model.start_values(model.solve())
    for temperature in temperatures:
        policy: Policy = soft(temperature) if temperature else greedy
        before = model.solve(policy).policy
        visits = visited(model, before)
        for price in prices:
            after = replace(model, paid=model.paid - price).solve(policy).policy
            apart = np.add.reduceat(np.abs(after - before), model.space.first_round[:-1], axis=1) / 2
            lost = optimum - model.start_values(model.solve(follow(after)))
            bound = np.tanh(price * (model.horizon - 1) / (4 * temperature)) if temperature else 1.0
            moved = float((visits * apart).sum() / visits.sum())
            yield Jump(temperature, price, moved, float(apart[visits > 0].max()), float(bound), float(lost.mean()))


def visited(model: Model, policy: Floats) -> Floats:
    """Return how probable each state is with ``h`` rounds left, (horizon, states that are expanded), row ``h - 1``."""
    found = np.zeros((model.horizon, len(model.space.decisions)))
    here = np.bincount(model.space.starts, minlength=model.space.within[-1]) / len(model.space.starts)
    state_of = np.repeat(np.arange(found.shape[1]), np.diff(model.space.first_round))
    lasting = model.successors != END
    for left in range(model.horizon, 0, -1):
        found[left - 1] = here[: found.shape[1]]
        arriving = (found[left - 1][state_of] * policy[left - 1])[:, None] * model.chances
        counted = np.bincount(model.successors[lasting], arriving[lasting], model.space.within[-1])
        here = counted.astype(np.float64)
    return found
