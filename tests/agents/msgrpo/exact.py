"""Exact values of a known policy in small games, by plain recursion: what estimates are compared with.

A policy is ``state, player -> {action: probability}``; what is missing to 1 is the probability of an invalid response.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

import textgames
from agents.baselines.random import RandomPlayer
from agents.episode import EpisodeTask
from agents.msgrpo.credit import Floats, Start
from agents.turn import Turn, TurnRequest
from textgames import TSMG

Chances = Callable[[Any, str], Mapping[str, float]]
INVALID = "?"


def favour(game: TSMG[Any], share: float, invalid: float) -> Chances:
    """The state's favourite action with probability ``share``, nothing readable with ``invalid``, else any."""

    def chances(state: Any, player: str) -> dict[str, float]:
        legal = game.legal_actions(state, player)
        rest = (1 - share - invalid) / len(legal)
        best = legal[len(game.observe(state, player)) % len(legal)]
        return {action: rest + share * (action == best) for action in legal}

    return chances


class Known:
    """Plays a known policy; its responses have as many tokens as it is told."""

    name = "known"

    def __init__(self, share: float = 0.0, invalid: float = 0.0, tokens: int = 3) -> None:
        self.share, self.invalid, self.tokens = share, invalid, tokens
        self.seeds: list[tuple[int, ...]] = []

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [self._answer(request) for request in requests if isinstance(request, TurnRequest)]

    def _answer(self, request: TurnRequest) -> Turn:
        self.seeds.append(request.seed)
        legal = request.legal_actions
        best = legal[len(request.observation) % len(legal)]
        draw = np.random.default_rng((77, *request.seed)).random()  # numbers of its own, not the environment's
        if draw < self.invalid:
            said = INVALID
        elif draw < self.invalid + self.share:
            said = best
        else:
            said = RandomPlayer().choose(request).action
        return Turn(f"<action>{said}</action>", prompt_ids=(1,), response_ids=(1,) * self.tokens)


class Exact:
    """``V^pi`` and ``Q^pi`` of every player, in a state with so many rounds left."""

    def __init__(self, task: EpisodeTask, share: float = 0.0, invalid: float = 0.0) -> None:
        env = textgames.parallel_env(task.env_id, **task.kwargs)
        assert env.rules.invalid_action == "default"
        self.game, self.penalty, self.limit = env.game, env.rules.format_penalty, env.rules.max_steps
        self.chances = favour(self.game, share, invalid)
        self._values: dict[Any, dict[str, float]] = {}

    def value(self, state: Any, left: int, player: str) -> float:
        return self._all(state, left)[player]

    def action_value(self, state: Any, left: int, player: str, response: str) -> float:
        """Of what ``player`` says, an action or :data:`INVALID`, while the others play on."""
        mine = [(response, 1.0)]
        return self._expected(state, left, {player: mine})[player]

    def _all(self, state: Any, left: int) -> dict[str, float]:
        if left == 0:
            return dict.fromkeys(self.game.players, 0.0)
        if (state, left) not in self._values:
            self._values[state, left] = self._expected(state, left, {})
        return self._values[state, left]

    def _said(self, state: Any, player: str) -> Iterator[tuple[str, float]]:
        known = self.chances(state, player)
        yield from known.items()
        yield INVALID, 1 - sum(known.values())

    def _expected(self, state: Any, left: int, fixed: Mapping[str, list[tuple[str, float]]]) -> dict[str, float]:
        game, total = self.game, dict.fromkeys(self.game.players, 0.0)
        movers = game.to_move(state)
        for said in product(*[fixed.get(player) or list(self._said(state, player)) for player in movers]):
            joint, weight, penalties = {}, 1.0, dict.fromkeys(game.players, 0.0)
            for player, (response, probability) in zip(movers, said, strict=True):
                joint[player] = game.default_action(state, player) if response == INVALID else response
                penalties[player] = self.penalty * (response == INVALID)
                weight *= probability
            if weight <= 0:
                continue
            for chance, after, rewards, over in game.outcomes(state, joint):
                ahead = dict.fromkeys(game.players, 0.0) if over else self._all(after, left - 1)
                for player in game.players:
                    paid = rewards.get(player, 0.0) - penalties[player] + ahead[player]
                    total[player] += weight * chance * paid
        return total


class ExactRollouts:
    """Fresh rollouts whose mean is the exact value: what an infinite number of them would say."""

    tokens = 0

    def __init__(self, exact: Exact) -> None:
        self.exact, self.policy, self.asked = exact, RandomPlayer(), list[Start]()

    def returns_from(self, starts: Sequence[Start], count: int) -> Floats:
        self.asked += starts
        assert self.exact.limit is not None
        values = [self.exact.value(s.state, self.exact.limit - s.elapsed_steps, s.player) for s in starts]
        return np.repeat(np.array(values)[:, None], count, axis=1)
