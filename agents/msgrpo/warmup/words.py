"""What a teacher's decision looks like in a response mode; what it says of a position is true.

``direct`` is the action alone. In every other mode a response reasons first: where a board of Frozen Lake or Snake is
seen, in the words of :mod:`agents.tiny.demonstrator`, which say where the target lies, which cells come into question
and what is in them; elsewhere in the teacher's own words. The plan has the teacher's moves as far as the rules alone
decide what comes of them.
"""

from typing import Any

import numpy as np

from agents.baselines.scripted_player import ScriptedPlayer
from agents.tiny.demonstrator import Demonstrator, StyleShares, has_demonstrator
from agents.turn import Policy, TurnRequest, request_in
from textgames.snake import Snake
from textgames.texts.actions import CLOSE_TAG, OPEN_TAG

_PLANNED = 8
"""Moves of a plan at most."""
_TRIES = range(16)
"""Seeds that a move is tried with in games that don't tell their chances: where these disagree, chance decides."""


class Words:
    """Writes one teacher's responses in one mode."""

    def __init__(self, mode: str, teacher: Policy) -> None:
        self.mode, self.teacher = mode, teacher
        self._demonstrators: dict[int, Demonstrator] = {}

    def __call__(self, request: TurnRequest, state: Any, action: str, response: str) -> str:
        """The response for a request in a state, where the teacher has answered ``response`` and plays ``action``."""
        acted = f"{OPEN_TAG}{action}{CLOSE_TAG}"
        if self.mode == "direct":
            return acted
        if not isinstance(self.teacher, ScriptedPlayer):
            return response  # a language model's own
        reasons = self._sight(request, action) or response.partition("<think>")[2].partition("</think>")[0]
        plan = ", ".join(self._plan(request, state, action))
        return f"<think>{reasons}</think><plan>{plan}</plan>{acted}"

    def _sight(self, request: TurnRequest, action: str) -> str:
        """What a board shows; empty where there are no words for it."""
        game = request.game
        if game is None or not has_demonstrator(game):
            return ""
        if id(game) not in self._demonstrators:
            foresight = 1 if isinstance(game, Snake) else 2  # on Snake's board the others have moved by then
            self._demonstrators[id(game)] = Demonstrator(game, StyleShares(), foresight=foresight, cells=True)
        try:
            return self._demonstrators[id(game)].reasons(request.observation, action)
        except ValueError:  # an observation without a grid
            return ""

    def _plan(self, request: TurnRequest, state: Any, action: str) -> list[str]:
        """The action and what the teacher would play after it, while nothing is left to chance or to others."""
        game: Any = request.game
        moves = [action]
        # a state with secrets would tell them by what comes of a move
        if game is None or len(game.players) > 1 or game.hidden_information or self.teacher.name == "random":
            return moves
        left = request.steps_left
        while len(moves) < _PLANNED and left != 1:
            coming = _coming(game, state, {request.player: moves[-1]})
            state, rewards, over = coming[0]
            if over or rewards[request.player] or any(other != coming[0] for other in coming):
                break
            left = None if left is None else left - 1
            moves.append(self._next(request_in(game, state, request.player, left)))
        return moves

    def _next(self, request: TurnRequest) -> str:
        assert isinstance(self.teacher, ScriptedPlayer)
        return self.teacher.choose(request).action


def _coming(game: Any, state: Any, joint: dict[str, str]) -> list[tuple[Any, dict[str, float], bool]]:
    """What may come of a round: next state, rewards, and whether the game is over."""
    if game.has_outcomes:
        return [(after, rewards, over) for _, after, rewards, over in game.outcomes(state, joint)]
    return [game.transition(state, joint, np.random.default_rng(seed)) for seed in _TRIES]
