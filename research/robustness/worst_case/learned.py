"""DR-RPO from play: robust least-squares values in linear features, with a bonus for what is little known.

The paper's algorithm (arXiv 2510.14246) in a d-rectangular linear game: ``phi(s, a)`` has d numbers of at least 0 and
sum 1, and nature moves the outcomes of each feature within total variation ``radius``. With ``W = r + V_{h-1}(s')``,
over the n recorded rounds: ::

    Lambda = sum_n phi_n phi_n' + ridge I
    w_i(alpha) = (Lambda^-1 sum_n phi_n min(W_n, alpha))_i
    nu_i = max over alpha of w_i(alpha) - radius (alpha - least W that was seen with feature i)
    Q_h(s, a) = sum_i phi_i(s, a) (nu_i + bonus sqrt((Lambda^-1)_ii)),   between the least and the most that rounds pay

Policies step on Q as in :mod:`.dr_rpo`, held to the reference, and play further episodes before every step. With a
feature for each state and action the ball is the table's. Our reading: a round counts for every number of rounds left,
as rules don't know the time; the paper's least worth is 0, that of a state in which all is lost.
"""

from dataclasses import dataclass, fields, replace
from itertools import islice

import numpy as np

from research.robustness.worst_case.balls import Ball, total_variation
from research.robustness.worst_case.dr_rpo import optimise
from research.robustness.worst_case.solver import Model, Policy, Solution, follow, greedy
from textgames.solving import END, Floats

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
