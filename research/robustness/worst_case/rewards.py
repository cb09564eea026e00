"""Two things that happen if the reward moves: the optimal policy may jump, and payments may be tuned.

**The policy cliff.** Our reading of "The Policy Cliff" (arXiv 2507.20150): the map from rewards to optimal policies is
discontinuous where actions tie, and regularisation by entropy makes it continuous. Here every step gets a price ``c``
more. With ``h`` rounds left the optimum's action values move by ``c h`` at most, and so does its return: what is lost
by the optimum for another price is at most ``c H``. The policy itself may jump at any ``c > 0``. The soft optimum,
``pi_h(a|s) ~ exp(Q_h(s, a) / temperature)``, has values of actions that change by amounts within ``c (h - 1)`` of each
other, so

``TV(pi_h(s), pi'_h(s)) <= tanh(c (h - 1) / (4 temperature))``

and it loses at most ``temperature H log(actions)`` by the reward that it is made for.

**Tuned payments.** Our reading of PARL (arXiv 2308.02585). A designer pays ``p_v = sum_k v_k f_k`` beside the game's
reward ``r``. The lower level is the soft optimum ``pi_v`` under both; the upper level maximises over ``v`` what that
policy gets by the game's own reward, less a charge for payments:

``pi_v = argmax over pi of E[sum_t r_t + p_v - temperature KL(pi || uniform)]``
``U(v) = E_{pi_v}[sum_t r_t - charge p_v^2]``

The policy moves with the reward: let ``F_k`` be the action values of ``pi_v`` if a round pays ``f_k``, and ``Q`` those
of what ``U`` counts. By the implicit function theorem ``d pi_v / d v_k = pi_v (F_k - E_{pi_v} F_k) / temperature``, so

``dU / dv_k = E_{pi_v}[-2 charge sum_t p_v f_k] + sum_s visits(s) sum_a d pi_v(a|s) / d v_k Q(s, a)``

Its first term alone is the gradient for a fixed policy, which sees what payments cost and not what they change.
"""

from collections.abc import Iterator, Mapping, Sequence
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
