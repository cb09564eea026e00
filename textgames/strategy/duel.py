"""What board games of two players who take turns have in common: whose turn it is, and that the winner takes all."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from textgames.tsmg import TSMG, Action, Player, StateT

if TYPE_CHECKING:
    import numpy as np

PLAYERS = ("player_0", "player_1")
FREE = "."
PALETTE = {"X": (213, 94, 0), "O": (0, 114, 178), FREE: (235, 235, 235)}
LEGEND = {"X": "player_0", "O": "player_1", FREE: "free"}


class Duel(TSMG[StateT]):
    """A game without chance in which two players take turns until one has won or nobody can.

    Winning pays 1, losing -1, a draw 0, all at the end. A game says which actions there are, what they lead to, and
    how it stands; the rest is here.
    """

    success_means = "won the game; a draw is none"
    players = PLAYERS
    return_range = (-1.0, 1.0)
    zero_sum = True

    @abstractmethod
    def mover(self, state: StateT) -> int:
        """The number of the player whose turn it is, 0 or 1."""

    @abstractmethod
    def moves(self, state: StateT) -> tuple[Action, ...]:
        """What the player can do, in order."""

    @abstractmethod
    def play(self, state: StateT, action: Action) -> StateT:
        """The state after the player has made a move."""

    @abstractmethod
    def result(self, state: StateT) -> float | None:
        """What the first player is paid at the end, 1, 0 or -1; ``None`` while the game goes on."""

    # ---------------------------------------------------------------- the contract

    def to_move(self, state: StateT) -> tuple[Player, ...]:
        return () if self.result(state) is not None else (PLAYERS[self.mover(state)],)

    def legal_actions(self, state: StateT, player: Player) -> tuple[Action, ...]:
        return self.moves(state)

    def transition(
        self, state: StateT, joint_action: Mapping[Player, Action], rng: "np.random.Generator | None"
    ) -> tuple[StateT, dict[Player, float], bool]:
        """Play one move; nothing of it is random."""
        mover, moves = PLAYERS[self.mover(state)], self.moves(state)
        action = joint_action.get(mover)
        if action is None or action not in moves:
            choice = ", ".join(moves) or "nothing, as the game is over"
            raise ValueError(f"{mover} is to move and can play {choice}; got {dict(joint_action)!r}")
        after = self.play(state, action)
        result = self.result(after)
        paid = 0.0 if result is None else result
        return after, {"player_0": paid, "player_1": 0.0 - paid}, result is not None

    def outcomes(
        self, state: StateT, joint_action: Mapping[Player, Action]
    ) -> list[tuple[float, StateT, dict[Player, float], bool]]:
        return [(1.0, *self.transition(state, joint_action, None))]

    def is_playing(self, state: StateT, player: Player) -> bool:
        return self.result(state) is None

    def succeeded(self, state: StateT, player: Player) -> bool:
        return self.result(state) == (1.0 if player == "player_0" else -1.0)

    def metrics(self, state: StateT, player: Player) -> Mapping[str, float]:
        """``{"won": 1.0, "drawn": 0.0}`` for a win; both 0 for a loss and for a game that was cut short."""
        return {"won": float(self.succeeded(state, player)), "drawn": float(self.result(state) == 0.0)}
