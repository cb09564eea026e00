"""How much a policy gives away per decision, exactly: its action probabilities against a game's exact values.

Nothing is played and nothing is sampled: the positions are fixed, those of random legal play from fixed seeds, and at
each the probability of every action is computed (:func:`agents.inspection.score_actions`). So the same weights have the
same regret always, and small changes show. In a zero-sum game, where a policy that plays itself has a mean return of 0
however well it plays, this is what tells whether it learns.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import textgames
from agents.action_probabilities import score_actions
from agents.episode import EpisodeTask
from agents.inspection import expected_regret
from agents.turn import Policy, Prompt, TurnRequest
from textgames.tsmg import TSMG
from textgames.yardsticks import find_yardstick


class Position(NamedTuple):
    """One decision of somebody: what it is asked, what its actions are worth, and the episode's seed."""

    request: TurnRequest
    values: Mapping[str, float]
    seed: int


class ExactRegret(NamedTuple):
    """The mean regret per decision, in units of the return.

    Attributes:
        mean: over the positions; 0 for a perfect player.
        low: of the 95% interval (normal, over the episodes that the positions come from).
        high: likewise.
        uniform: what a player gives away that picks every legal action with equal chances, on the same positions.
        invalid: the mean probability of a response that names no legal action.
        positions: how many there are; equal ones count as often as they came up.
    """

    mean: float
    low: float
    high: float
    uniform: float
    invalid: float
    positions: int


def random_positions(tasks: Sequence[EpisodeTask]) -> list[Position]:
    """Every decision of every player in episodes of one scenario that are played by random legal actions.

    Raises:
        ValueError: the game has no exact yardstick.
    """
    env = textgames.parallel_env(tasks[0].env_id, **tasks[0].kwargs)
    game, limit, yardstick = env.game, env.rules.max_steps, find_yardstick(env.game)
    if yardstick is None or not yardstick.exact:
        raise ValueError(f"{tasks[0].scenario} has no exact yardstick that regret could be measured with")
    positions = []
    for task in tasks:
        # the moves have a generator of their own, so that the starts are those of the scenario's episodes
        state, rng = game.initial_state(np.random.default_rng(task.seed)), np.random.default_rng([task.seed, 1])
        over, played = False, 0
        while not over and played != limit:
            left, joint = None if limit is None else limit - played, {}
            for player in game.to_move(state):
                request = _request(game, state, player, left)
                joint[player] = request.legal_actions[int(rng.integers(len(request.legal_actions)))]
                positions.append(Position(request, yardstick.values(state, left, player), task.seed))
            state, _, over = game.transition(state, joint, rng)
            played += 1
    return positions


def _request(game: TSMG[Any], state: Any, player: str, steps_left: int | None) -> TurnRequest:
    legal, told = game.legal_actions(state, player), game.action_help(state, player)
    observation, instructions = game.observe(state, player), game.instructions(player)
    return TurnRequest(observation, instructions, legal, player=player, steps_left=steps_left, action_help=told)


def exact_regret(policy: Policy, positions: Sequence[Position]) -> ExactRegret:
    """The mean regret of a policy with a local model that answers directly.

    An invalid response counts as the environment takes it: as the first legal action.

    Raises:
        ValueError: the policy's action probabilities can't be computed, or there are no positions.
    """
    if not positions:
        raise ValueError("there are no positions to measure regret on")
    known: dict[tuple[Prompt, tuple[str, ...]], Mapping[str, float]] = {}
    regrets, invalid, uniform = [], [], []
    for request, values, _ in positions:
        probabilities = _action_probabilities(policy, request, known)
        regrets.append(expected_regret(probabilities, values))
        invalid.append(max(0.0, 1.0 - sum(probabilities.values())))
        uniform.append(max(values.values()) - float(np.mean(list(values.values()))))
    mean = float(np.mean(regrets))
    half = half_interval(regrets, [position.seed for position in positions])
    return ExactRegret(mean, mean - half, mean + half, float(np.mean(uniform)), float(np.mean(invalid)), len(positions))


def _action_probabilities(
    policy: Policy, request: TurnRequest, known: dict[tuple[Prompt, tuple[str, ...]], Mapping[str, float]]
) -> Mapping[str, float]:
    prompt_map = getattr(policy, "prompt_map", None)
    mode = getattr(prompt_map, "mode", None)
    if prompt_map is None or mode == "think":
        raise ValueError(
            f"{policy.name}'s action probabilities can't be computed: that takes a language model that answers with "
            "the action alone (mode direct)"
        )
    prompt = prompt_map(request)
    key = prompt, request.legal_actions
    if key not in known:
        scored = score_actions(policy, prompt, "", request.legal_actions)
        if scored is None:
            raise ValueError(f"{policy.name}'s action probabilities can't be computed: it has no local model")
        known[key] = scored
    return known[key]


def half_interval(values: Sequence[float], episodes: Sequence[int]) -> float:
    """Half the width of the 95% interval of the mean of ``values`` (normal), where those of one episode go together.

    Values of one episode, such as the returns of its players, depend on each other: the episodes are the sample. With
    one value per episode it is the usual interval. NaN for a single episode.
    """
    _, episode = np.unique(episodes, return_inverse=True)
    sums = np.bincount(episode, weights=np.asarray(values) - np.mean(values))
    n = len(sums)
    return float(1.96 * np.sqrt((sums**2).sum() * n / (n - 1)) / len(values)) if n > 1 else float("nan")
