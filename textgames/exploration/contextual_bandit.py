"""The contextual bandit: what an arm pays depends linearly on who comes; learn for whom to choose what.

The linear model is that of Li et al., "A contextual-bandit approach to personalized news article recommendation" (WWW
2010). EVOLvE (arXiv 2410.06238) builds the same task from film ratings; here the weights are drawn anew in every
episode, so that nothing of it can be remembered from a training corpus and the regret is exact.
"""

import re
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from textgames.bases import OnePlayerGame
from textgames.exploration.bandit import MOST_ARMS, STORIES, number
from textgames.rounds import at_most
from textgames.settings import check_number, check_one_of, check_whole
from textgames.solving.fixed_policies import chances_of
from textgames.tsmg import Action, Player
from textgames.yardsticks import FixedPolicy, Yardstick

FEATURES = 3
CONTEXTS: tuple[tuple[float, ...], ...] = tuple(product((-1.0, -0.5, 0.0, 0.5, 1.0), repeat=FEATURES))
"""All contexts, with equal chances: 125 points of a grid, so that expectations over them are exact."""

NOBODY = -1  # the context after the last round

Weights = tuple[tuple[float, ...], ...]

_CONTEXTS = np.array(CONTEXTS)


class Visit(NamedTuple):
    """One round that was played: the index of the context, the arm, the reward."""

    context: int
    arm: int
    reward: float


class ContextualState(NamedTuple):
    """What the rules know; players don't see ``weights``, one row of ``FEATURES`` numbers an arm."""

    weights: Weights
    context: int
    log: tuple[Visit, ...] = ()


@lru_cache(maxsize=4096)
def expected_rewards(weights: Weights, context: int) -> tuple[float, ...]:
    """Return ``theta_a . x`` of every arm."""
    x = CONTEXTS[context]
    return tuple([sum(w * feature for w, feature in zip(row, x, strict=True)) for row in weights])


@lru_cache(maxsize=256)
def best_on_average(weights: Weights) -> float:
    """Return ``E_x max_a theta_a . x``: what a round pays on average to a player who knows the weights."""
    return float((_CONTEXTS @ np.array(weights).T).max(axis=1).mean())


_NAMES = tuple("(" + ", ".join(f"{feature:g}" for feature in context) + ")" for context in CONTEXTS)
_INDEX = {name: context for context, name in enumerate(_NAMES)}
_VISIT = re.compile(r"^Round \d+: for (\(.*\)) ([a-z]+), reward (-?[\d.]+)$", re.MULTILINE)
_NOW = re.compile(r"^Round \d+ of \d+: .* (\([^)]*\))\.$", re.MULTILINE)


@lru_cache(maxsize=8192)
def _visit_line(round_: int, context: int, name: str, reward: float) -> str:
    return f"Round {round_}: for {_NAMES[context]} {name}, reward {number(reward)}"


class Evidence(NamedTuple):
    """What an observation shows: who is there now, and ``(context, arm, reward)`` of all rounds so far."""

    context: int
    log: tuple[Visit, ...]


def read_evidence(observation: str, names: tuple[str, ...]) -> Evidence:
    """Return the evidence in an observation; a ValueError if the text is none."""
    now = _NOW.search(observation)
    if now is None or now[1] not in _INDEX:
        raise ValueError(f"not an observation of a contextual bandit: {observation[:80]!r}")
    log = [Visit(_INDEX[x], names.index(name), float(reward)) for x, name, reward in _VISIT.findall(observation)]
    return Evidence(_INDEX[now[1]], tuple(log))


_WHO = {"videos": "visitor", "ads": "visitor", "clothes": "customer"}  # the visitors, in the stories that have some


class ContextualBandit(OnePlayerGame[ContextualState]):
    """In every round a visitor is described by three numbers; choose an arm for it.

    An arm pays ``theta_a . x + e``: its three hidden weights, drawn from the standard normal distribution in every
    episode, times the three numbers, each one of -1, -0.5, 0, 0.5 and 1; and ``e`` is plus or minus ``noise`` with
    equal chances, so that all outcomes of a round can be listed.

    Args:
        num_arms: 2 to 20.
        rounds: after which the game is over; players are told.
        noise: how much every reward is off, from 0 to 10.
        story: ``"videos"``, ``"ads"`` or ``"clothes"``.
    """

    hidden_information = True

    def __init__(self, *, num_arms: int = 4, rounds: int = 30, noise: float = 0.2, story: str = "videos") -> None:
        check_whole("num_arms", num_arms, 2, MOST_ARMS)
        check_whole("rounds", rounds, 1)
        check_number("noise", noise, 0, 10)
        check_one_of("story", story, tuple(_WHO))
        self.num_arms, self.rounds, self.noise = int(num_arms), int(rounds), float(noise)
        self.longest_episode = self.rounds
        self.story, self._who = STORIES[story], _WHO[story]
        self.actions = tuple(self.story.names.split()[: self.num_arms])

    def initial_state(self, rng: Generator) -> ContextualState:
        weights = rng.normal(size=(self.num_arms, FEATURES)).tolist()
        return ContextualState(tuple(map(tuple, weights)), int(rng.integers(len(CONTEXTS))))

    def act(self, state: ContextualState, action: Action, rng: Generator) -> tuple[ContextualState, float, bool]:
        noise = self.noise if rng.random() < 0.5 else -self.noise
        next_context = int(rng.integers(len(CONTEXTS))) if self.rounds_left(state) > 1 else NOBODY
        return self._paid(state, action, noise, next_context)

    def chances(self, state: ContextualState, action: Action) -> list[tuple[float, ContextualState, float, bool]]:
        noises = (self.noise, -self.noise) if self.noise else (0.0,)
        contexts = range(len(CONTEXTS)) if self.rounds_left(state) > 1 else (NOBODY,)
        chance = 1 / (len(noises) * len(contexts))
        return [(chance, *self._paid(state, action, noise, context)) for noise in noises for context in contexts]

    def _paid(
        self, state: ContextualState, action: Action, noise: float, next_context: int
    ) -> tuple[ContextualState, float, bool]:
        arm = self.actions.index(action)
        reward = expected_rewards(state.weights, state.context)[arm] + noise
        log = (*state.log, Visit(state.context, arm, reward))
        return ContextualState(state.weights, next_context, log), reward, next_context == NOBODY

    def is_playing(self, state: ContextualState, player: Player) -> bool:
        return state.context != NOBODY

    def forfeit(self, state: ContextualState, player: Player, rounds_left: float) -> dict[Player, float]:
        """Return what is paid if every round that is left goes to the arm and the context that pay least."""
        worst = min(min(expected_rewards(state.weights, context)) for context in range(len(CONTEXTS)))
        return {player: worst * self.rounds_left(state)}

    def rounds_left(self, state: ContextualState) -> int:
        return self.rounds - len(state.log)

    def metrics(self, state: ContextualState, player: Player) -> dict[str, float]:
        """Return the pseudo-regret ``sum_t (max_a theta_a . x_t - theta_{a_t} . x_t)``, as ``regret``."""
        rewards = [(expected_rewards(state.weights, visit.context), visit.arm) for visit in state.log]
        return {"regret": float(sum(max(of_arms) - of_arms[arm] for of_arms, arm in rewards))}

    def observe(self, state: ContextualState, player: Player) -> str:
        played, names = len(state.log), self.actions
        lines = [_visit_line(index, visit[0], names[visit[1]], visit[2]) for index, visit in enumerate(state.log, 1)]
        if played:
            lines.append(f"Total reward so far: {number(sum([visit[2] for visit in state.log]))}.")
        if state.context == NOBODY:
            lines.append(f"All {played} rounds are over.")
        else:
            lines.append(f"Round {played + 1} of {self.rounds}: the {self._who} now is {_NAMES[state.context]}.")
        return "\n".join(lines)

    def instructions(self, player: Player) -> str:
        thing, who = self.story.thing, self._who
        noise = f", and exactly {self.noise:g} more or {self.noise:g} less, with equal chances" if self.noise else ""
        return "\n".join(
            [
                f"{self.story.scene} There are {self.rounds} rounds.",
                f"Actions, one for every {thing}: {', '.join(self.actions)}.",
                f"Every {who} is described by three numbers (x, y, z), each one of -1, -0.5, 0, 0.5 and 1, drawn at "
                "random in every round.",
                f"Every {thing} has three weights (a, b, c) of its own, which you don't know. They were drawn from a "
                "normal distribution with mean 0 and standard deviation 1 and stay the same. The reward of a round is "
                f"a*x + b*y + c*z with the weights of the {thing} that you chose{noise}.",
                f"Your goal is the largest total reward over all {self.rounds} rounds.",
            ]
        )

    def told(self, state: ContextualState, action: Action, after: ContextualState) -> str:
        means = expected_rewards(state.weights, state.context)
        best, lost = self.actions[means.index(max(means))], max(means) - means[self.actions.index(action)]
        told = f"{action} gave {number(after.log[-1].reward)}"
        return told if action == best else f"{told}; {best} is {lost:.2f} better for them"

    def describe(self, state: ContextualState) -> str:
        width = max(map(len, self.actions))
        means = None if state.context == NOBODY else expected_rewards(state.weights, state.context)
        lines = [] if means is None else [f"{self._who}: {_NAMES[state.context]}"]
        for arm, (name, weights) in enumerate(zip(self.actions, state.weights, strict=True)):
            worth = "" if means is None else f"  worth {means[arm]:5.2f}{'*' if means[arm] == max(means) else ' '}"
            chosen = "#" * sum(visit.arm == arm for visit in state.log)
            lines.append(f"{name:<{width}}  weights {' '.join(f'{w:5.2f}' for w in weights)}{worth} {chosen}".rstrip())
        return "\n".join(lines)


class ContextualOracle(Yardstick):
    """The values for a player who knows the weights: the best arm in every context."""

    kind = "clairvoyant"
    method = "known weights"

    def values(self, state: ContextualState, steps_left: int | None, player: Player) -> dict[Action, float]:
        left = at_most(self._game.rounds_left(state), steps_left)
        if not left:
            return dict.fromkeys(self._game.actions, 0.0)
        later = (left - 1) * best_on_average(state.weights)
        means = expected_rewards(state.weights, state.context)
        return {name: mean + later for name, mean in zip(self._game.actions, means, strict=True)}

    def blind_value(self, state: ContextualState, steps_left: int | None, player: Player, policy: FixedPolicy) -> float:
        if not at_most(self._game.rounds_left(state), steps_left):
            return 0.0
        return float(np.dot(chances_of(policy, self._game.actions), expected_rewards(state.weights, state.context)))
