"""The exact best response to an opponent inside a repeated matrix game, by dynamic programming.

``Q_h(m, a) = sum_o p(o | m) u(a, o) + V_{h-1}(m after a)`` over the opponent's memory ``m`` and the rounds left ``h``.
External regret holds the opponent's play fixed, so it can't tell what cooperating with tit-for-tat is worth; this can.
"""

from textgames.social.matrix_game.game import MatrixGame, MatrixState
from textgames.social.matrix_game.opponents import Memory
from textgames.tsmg import Action, Player
from textgames.yardsticks import Yardstick


class BestResponse(Yardstick):
    """The values of play against the opponent inside.

    Raises:
        ValueError: the game has two players.
    """

    def __init__(self, game: MatrixGame) -> None:
        if game.opponent is None:
            raise ValueError("there is no best response in a game of two players without knowing the other one")
        self._game, self._opponent = game, game.opponent
        self.method = "best response"
        self._best: dict[tuple[Memory, int], tuple[float, ...]] = {}
        self._uniform: dict[tuple[Memory, int], float] = {}

    def values(self, state: MatrixState, steps_left: int | None, player: Player) -> dict[Action, float]:
        left = self._left(state, steps_left)
        values = self.action_values(state.memory, left) if left else (0.0,) * len(self._game.actions)
        return dict(zip(self._game.actions, values, strict=True))

    def uniform_value(self, state: MatrixState, steps_left: int | None, player: Player) -> float:
        return self._uniform_value(state.memory, self._left(state, steps_left))

    def regret(self, state: MatrixState) -> float:
        """``sum_t V(m_t) - Q(m_t, a_t)``: what the choices so far lost in expectation against best responses."""
        memory, lost = self._opponent.start, 0.0
        for played, (mine, _) in enumerate(state.history):
            values = self.action_values(memory, self._game.rounds - played)
            lost += max(values) - values[mine]
            memory = self._opponent.remember(memory, mine)
        return lost

    def action_values(self, memory: Memory, left: int) -> tuple[float, ...]:
        """``Q`` of every action with at least one round left."""
        key = memory, left
        if key not in self._best:
            now = self._payoffs_now(memory)
            self._best[key] = tuple(
                [
                    paid + (max(self.action_values(self._opponent.remember(memory, a), left - 1)) if left > 1 else 0.0)
                    for a, paid in enumerate(now)
                ]
            )
        return self._best[key]

    def _uniform_value(self, memory: Memory, left: int) -> float:
        if not left:
            return 0.0
        key = memory, left
        if key not in self._uniform:
            now = self._payoffs_now(memory)
            later = [self._uniform_value(self._opponent.remember(memory, a), left - 1) for a in range(len(now))]
            self._uniform[key] = (sum(now) + sum(later)) / len(now)
        return self._uniform[key]

    def _payoffs_now(self, memory: Memory) -> list[float]:
        chances = self._opponent.chances(memory)
        return [sum(p * u for p, u in zip(chances, row, strict=True)) for row in self._game.payoffs.first]

    def _left(self, state: MatrixState, steps_left: int | None) -> int:
        left = self._game.rounds - len(state.history)
        return left if steps_left is None else min(left, steps_left)
