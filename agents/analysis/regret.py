"""A policy's exact loss per decision: its action probabilities against a game's exact values.

The positions are those of random legal play from fixed seeds, so the same weights always have the same regret. A policy
that plays itself in a zero-sum game has a mean return of 0 however well it plays; this shows whether it learns.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

import textgames
from agents.analysis.action_probabilities import (
    NOT_SUMMED,
    action_probabilities,
    has_local_model,
    plays_legal_only,
    score_actions,
)
from agents.analysis.inspection import expected_regret
from agents.common.intervals import half_interval
from agents.episode import EpisodeTask
from agents.policy import LanguageAgentPolicy
from agents.turn import Policy, Prompt, Turn, TurnRequest, request_in
from textgames.rounds import rounds_of_play
from textgames.yardsticks import find_yardstick


class Position(NamedTuple):
    """One decision: its request, what its actions are worth, and the episode's seed."""

    request: TurnRequest
    values: Mapping[str, float]
    seed: int


class ExactRegret(NamedTuple):
    """The mean regret per decision, in units of the return."""

    mean: float  #: over the positions; 0 for a perfect player
    low: float  #: of the 95% interval (normal, over the episodes that the positions come from)
    high: float  #: likewise
    uniform: float  #: the regret of uniform play on the same positions
    invalid: float  #: the mean probability of a response that names no legal action
    positions: int  #: how many there are; equal ones count as often as they came up


def random_positions(tasks: Sequence[EpisodeTask]) -> list[Position]:
    """Return every decision in random play of episodes of one scenario, which has an exact yardstick."""
    env = textgames.parallel_env(tasks[0].env_id, **tasks[0].kwargs)
    game, limit, yardstick = env.game, env.rules.max_steps, find_yardstick(env.game)
    if yardstick is None or not yardstick.exact:
        raise ValueError(f"{tasks[0].scenario} has no exact yardstick that regret could be measured with")
    positions = []
    for task in tasks:
        # the moves have a generator of their own, so that the starts are those of the scenario's episodes
        state, rng = game.initial_state(np.random.default_rng(task.seed)), np.random.default_rng([task.seed, 1])
        for played, here, joint_action, *_ in rounds_of_play(game, state, limit, rng):
            left = None if limit is None else limit - played
            for player in joint_action:
                request = request_in(game, here, player, left)
                positions.append(Position(request, yardstick.values(here, left, player), task.seed))
    return positions


class DirectAnswers:
    """A policy with a local model that answers with the action alone, and so knows its own probabilities.

    They are kept by prompt: make a new one when the weights have changed.
    """

    def __init__(self, policy: LanguageAgentPolicy) -> None:
        if policy.prompt_map.mode == "think" or not has_local_model(policy):
            raise ValueError(
                f"{policy.name}'s action probabilities can't be computed: that takes a model of this process that "
                f"answers with the action alone; its mode is {policy.prompt_map.mode}"
            )
        if plays_legal_only(policy):
            raise ValueError(f"{policy.name} plays legal-only, where {NOT_SUMMED}")
        self.name, self._policy = policy.name, policy
        self._known: dict[tuple[Prompt, tuple[str, ...]], dict[str, float]] = {}

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return self._policy.act(requests)

    def action_probabilities(self, request: TurnRequest) -> dict[str, float]:
        prompt = self._policy.prompt_map(request)
        key = prompt, request.legal_actions
        if key not in self._known:
            self._known[key] = score_actions(self._policy, prompt, "", request.legal_actions) or {}
        return self._known[key]


def exact_regret(policy: Policy, positions: Sequence[Position]) -> ExactRegret:
    """Return the mean regret of a policy; a ValueError if its action probabilities aren't known."""
    if not positions:
        raise ValueError("there are no positions to measure regret on")
    found = action_probabilities(policy, [position.request for position in positions], samples=1)
    if found.samples is not None:
        raise ValueError(f"{policy.name}'s action probabilities aren't known, so its regret would not be exact")
    values = [list(position.values.values()) for position in positions]
    regrets = [
        expected_regret(probabilities, position.values)
        for probabilities, position in zip(found.probabilities, positions, strict=True)
    ]
    mean, half = float(np.mean(regrets)), half_interval(regrets, [position.seed for position in positions])
    return ExactRegret(
        mean=mean,
        low=mean - half,
        high=mean + half,
        uniform=float(np.mean([max(each) - np.mean(each) for each in values])),
        invalid=float(np.mean([max(0.0, 1.0 - sum(each.values())) for each in found.probabilities])),
        positions=len(positions),
    )
