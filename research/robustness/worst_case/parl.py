"""A reward whose parameters are tuned by the true return of the policy that is trained under it, in tables.

Our reading of PARL (arXiv 2308.02585). A designer pays ``p_v = sum_k v_k f_k`` beside the game's reward ``r``. The
lower level is the soft optimum ``pi_v`` under both; the upper level maximises over ``v`` what that policy gets by the
game's own reward, less a charge for payments:

``pi_v = argmax over pi of E[sum_t r_t + p_v - temperature KL(pi || uniform)]``
``U(v) = E_{pi_v}[sum_t r_t - charge p_v^2]``

The policy moves with the reward: let ``F_k`` be the action values of ``pi_v`` if a round pays ``f_k``, and ``Q`` those
of what ``U`` counts. By the implicit function theorem ``d pi_v / d v_k = pi_v (F_k - E_{pi_v} F_k) / temperature``, so

``dU / dv_k = E_{pi_v}[-2 charge sum_t p_v f_k] + sum_s visits(s) sum_a d pi_v(a|s) / d v_k Q(s, a)``

Its first term alone is the gradient for a fixed policy, which sees what payments cost and not what they change.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from research.robustness.worst_case.policy_cliff import visited
from research.robustness.worst_case.solver import Model, follow, soft
from textgames.solving import Floats


class Upper(NamedTuple):
    """The upper level at one vector of parameters."""

    objective: Floats  # (starts,) U of each start
    returned: Floats  # (starts,) the true return alone
    gradient: Floats  # (parameters,) of the mean of U over the starts
    fixed: Floats  # likewise, of a policy that doesn't move


def payments(model: Model) -> Mapping[str, Floats]:
    """Return the parameters' features, (rounds, outcomes): ``step`` is 1 in every round, ``progress`` how many rounds
    fewer it is to the nearest pay above 0, on the luckiest way; the end of the game is as far as the horizon."""
    away = np.full(model.space.within[-1] + 1, float(model.horizon))
    left = np.where(model.paid > 0, 0.0, model.horizon)
    for _ in range(model.horizon):
        left = np.where(model.paid > 0, 0.0, away[model.successors])
        luckiest = np.where(model.chances > 0, left, np.inf).min(axis=1)
        shortest = 1 + np.minimum.reduceat(luckiest, model.space.first_round[:-1])
        away[: len(shortest)] = np.minimum(shortest, model.horizon)
    state_of = np.repeat(np.arange(len(model.space.decisions)), np.diff(model.space.first_round))
    return {"step": np.ones_like(model.paid), "progress": away[state_of][:, None] - left}


def upper(model: Model, features: Floats, parameters: Floats, *, temperature: float, charge: float) -> Upper:
    """Return the upper level with its exact gradient; ``features`` are (parameters, rounds, outcomes)."""
    paid = np.tensordot(parameters, features, 1)
    policy = replace(model, paid=model.paid + paid).solve(soft(temperature)).policy
    played = follow(policy)

    def worth(each: Floats) -> tuple[Floats, Floats]:
        solution = replace(model, paid=each).solve(played)
        return model.start_values(solution), solution.action_values

    objective, values = worth(model.paid - charge * paid**2)
    first = model.space.first_round[:-1]
    sizes = np.diff(model.space.first_round)
    visits = np.repeat(visited(model, policy), sizes, axis=1)
    gradient, fixed = np.zeros(len(features)), np.zeros(len(features))
    for k, feature in enumerate(features):
        of_feature = worth(feature)[1]
        mean = np.repeat(np.add.reduceat(policy * of_feature, first, axis=1), sizes, axis=1)
        fixed[k] = worth(-2 * charge * paid * feature)[0].mean()
        gradient[k] = fixed[k] + (visits * policy * (of_feature - mean) / temperature * values).sum()
    return Upper(objective, worth(model.paid)[0], gradient, fixed)


def tune(
    model: Model, features: Floats, *, temperature: float, charge: float, bilevel: bool = True
) -> Iterator[tuple[Floats, Upper]]:
    """Yield the parameters, from 0 on, and the upper level after each step of ascent along the bilevel gradient, or
    along that of a fixed policy. A step that doesn't raise U is halved; the next one begins at twice the last."""
    parameters, rate = np.zeros(len(features)), 1.0
    now = upper(model, features, parameters, temperature=temperature, charge=charge)
    while True:
        yield parameters, now
        direction = now.gradient if bilevel else now.fixed
        while rate * np.abs(direction).max() > 1e-9:
            tried = parameters + rate * direction
            found = upper(model, features, tried, temperature=temperature, charge=charge)
            if found.objective.mean() > now.objective.mean():
                parameters, now, rate = tried, found, 2 * rate
                break
            rate /= 2
