"""The exact best response to an opponent inside a repeated matrix game, by dynamic programming.

``Q_h(m, a) = sum_o p(o | m) u(a, o) + V_{h-1}(m after a)`` over the opponent's memory ``m`` and the rounds left ``h``.
External regret holds the opponent's play fixed, so it can't tell what cooperating with tit-for-tat is worth; this can.
"""

from collections.abc import Sequence

from textgames.social.matrix_game.opponents import Memory, Opponent
from textgames.social.matrix_game.payoffs import Payoffs


class BestResponse:
    """The values of play in the first seat against a program in the second one."""

    def __init__(self, payoffs: Payoffs, opponent: Opponent) -> None:
        self._payoffs, self._opponent = payoffs, opponent
        self._best: dict[tuple[Memory, int], tuple[float, ...]] = {}
        self._fixed: dict[tuple[float, ...], dict[tuple[Memory, int], float]] = {}  # by the shares of the actions

    def regret(self, actions: Sequence[int], rounds: int) -> float:
        """Return ``sum_t V(m_t) - Q(m_t, a_t)``: what the first actions of a game of ``rounds`` lost in expectation."""
        memory, lost = self._opponent.start, 0.0
        for played, action in enumerate(actions):
            values = self.action_values(memory, rounds - played)
            lost += max(values) - values[action]
            memory = self._opponent.remember(memory, action)
        return lost

    def action_values(self, memory: Memory, left: int) -> tuple[float, ...]:
        key = memory, left
        if key not in self._best:
            self._best[key] = tuple(
                [
                    paid + (max(self.action_values(self._opponent.remember(memory, a), left - 1)) if left > 1 else 0.0)
                    for a, paid in enumerate(self._payoffs_now(memory))
                ]
            )
        return self._best[key]

    def fixed_value(self, memory: Memory, left: int, shares: tuple[float, ...]) -> float:
        known = self._fixed.setdefault(shares, {})

        def value(memory: Memory, left: int) -> float:
            if not left:
                return 0.0
            key = memory, left
            if key not in known:
                now = self._payoffs_now(memory)
                later = [value(self._opponent.remember(memory, action), left - 1) for action in range(len(now))]
                known[key] = sum(share * (paid + then) for share, paid, then in zip(shares, now, later, strict=True))
            return known[key]

        return value(memory, left)

    def _payoffs_now(self, memory: Memory) -> list[float]:
        chances = self._opponent.chances(memory)
        return [sum(p * u for p, u in zip(chances, row, strict=True)) for row in self._payoffs.first]
