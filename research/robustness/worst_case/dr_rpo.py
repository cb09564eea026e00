"""Distributionally robust regularised policy optimisation: mirror ascent against the worst chances, and from play.

Our reading of DR-RPO (arXiv 2510.14246), first in tables. A softmax policy is kept near a reference policy, here
uniform play, and nature chooses from a ball: ``max over pi of min over q of E[sum r - temperature KL(pi, reference)]``.
A round of it computes the exact ``Q`` of the policy at its worst chances, and steps at every state and number of rounds
left by

``pi' ~ (pi exp(rate Q) reference^(rate temperature))^(1 / (1 + rate temperature))``

Then from play, the paper's algorithm in a d-rectangular linear game: robust least-squares values in linear features,
with a bonus for what is little known. ``phi(s, a)`` has d numbers of at least 0 and sum 1, and nature moves the
outcomes of each feature within total variation ``radius``. With ``W = r + V_{h-1}(s')``, over the n recorded rounds: ::

    Lambda = sum_n phi_n phi_n' + ridge I
    w_i(alpha) = (Lambda^-1 sum_n phi_n min(W_n, alpha))_i
    nu_i = max over alpha of w_i(alpha) - radius (alpha - least W that was seen with feature i)
    Q_h(s, a) = sum_i phi_i(s, a) (nu_i + bonus sqrt((Lambda^-1)_ii)),   between the least and the most that rounds pay

Policies step on Q as in tables, and play further episodes before every step. With a feature for each state and action
the ball is the table's. Our reading: a round counts for every number of rounds left, as rules don't know the time; the
paper's least worth is 0, that of a state in which all is lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from itertools import islice

import numpy as np

from research.robustness.worst_case.solver import Ball, Model, Policy, Solution, follow, greedy, total_variation
from textgames.solving import END, Floats, Indices


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


FEATURES = ("states", "actions")  # one for each state and action, or for each action alone
ROUNDS = 20  # of play, and of steps on all of it afterwards
MOST_FEATURES = 1_000


@dataclass(frozen=True, eq=False)
class Estimate(Model):
    """A model whose values are those of recorded rounds. Its tables are only played in."""

    features: Floats  # (actions of all states, d)
    seen: Floats  # (actions of all states, outcomes), how often each came about
    ridge: float = 0.01
    bonus: float = 0.1

    def play(self, policy: Floats, episodes: int, rng: np.random.Generator) -> None:
        """Add the rounds of episodes of a policy, (horizon, actions of all states), from starts in turn."""
        first = self.space.first_round
        for episode in range(episodes):
            state = self.space.starts[episode % len(self.space.starts)]
            for left in range(self.horizon, 0, -1):
                chances = policy[left - 1, first[state] : first[state + 1]]
                action = first[state] + rng.choice(len(chances), p=chances / chances.sum())
                outcome = rng.choice(self.chances.shape[1], p=self.chances[action])
                self.seen[action, outcome] += 1
                state = self.successors[action, outcome]
                if state == END:
                    break

    def solve(self, policy: Policy = greedy, ball: Ball = total_variation, radius: float = 0.0) -> Solution:
        """Return a policy's values by what was seen; the ball is total variation's."""
        shape = (self.horizon, len(self.chances))
        found = Solution(
            np.zeros((self.horizon + 1, self.space.within[-1] + 1)), np.zeros(shape), np.zeros(shape), np.zeros((0, 0))
        )
        inverse, known = np.zeros((0, 0)), -1
        least, most = min(0.0, float(self.paid.min())), max(0.0, float(self.paid.max()))
        for left in range(1, self.horizon + 1):
            first = self.space.first_round[: self.states(left)]
            rounds = int(self.space.first_round[self.states(left)])
            phi, seen = self.features[:rounds], self.seen[:rounds]
            if rounds != known:
                gram = (phi * seen.sum(axis=1, keepdims=True)).T @ phi
                inverse, known = np.linalg.inv(gram + self.ridge * np.eye(phi.shape[1])), rounds
            worths = self.paid[:rounds] + found.values[left - 1][self.successors[:rounds]]
            alphas = np.unique(worths[seen > 0]) if seen.any() else np.zeros(1)
            clipped = np.stack([(seen * np.minimum(worths, alpha)).sum(axis=1) for alpha in alphas], axis=1)
            lowest = np.where(seen > 0, worths, np.inf).min(axis=1)
            lowest = np.array([lowest[phi[:, i] > 0].min(initial=np.inf) for i in range(phi.shape[1])])
            lowest[np.isinf(lowest)] = least * left
            robust = (inverse @ (phi.T @ clipped) - radius * (alphas - lowest[:, None])).max(axis=1)
            values = phi @ (robust + self.bonus * np.sqrt(np.diag(inverse)))
            values = np.clip(values, least * left, most * left)
            chances, worth = policy(values, first, left)
            found.values[left, : len(first)] = worth
            found.action_values[left - 1, :rounds] = values
            found.policy[left - 1, :rounds] = chances
        return found


def learn(model: Model, features: Floats, radius: float, episodes: int, seed: int = 0, bonus: float = 0.1) -> Policy:
    """Return the policy that is learned from so many episodes of its own play, without the bonus in the end."""
    told = {each.name: getattr(model, each.name) for each in fields(Model)}
    estimate = Estimate(**told, features=features, seen=np.zeros(model.chances.shape), bonus=bonus)
    rng, done = np.random.default_rng(seed), 0
    for number, solution in enumerate(islice(optimise(estimate, total_variation, radius), ROUNDS)):
        wanted = episodes * (number + 1) // ROUNDS
        estimate.play(solution.policy, wanted - done, rng)
        done = wanted
    (found,) = islice(optimise(replace(estimate, bonus=0.0), total_variation, radius), ROUNDS, ROUNDS + 1)
    return follow(found.policy)


def features_of(name: str, model: Model) -> Floats:
    """Return the ``states`` or ``actions`` of :data:`FEATURES`, (actions of all states, d), each 0 or 1."""
    named = [action for ((_, actions),) in model.space.decisions for action in actions]
    known = list(dict.fromkeys(named))
    if name == "states" and len(named) > MOST_FEATURES:
        raise ValueError(
            f"--features states has {len(named):,} features, and at most {MOST_FEATURES:,} are accepted: take fewer "
            "--starts or a smaller game"
        )
    return np.eye(len(named)) if name == "states" else np.eye(len(known))[[known.index(each) for each in named]]
