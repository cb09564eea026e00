"""What the board games of two players who take turns have in common: nothing is hidden, and the winner takes all."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from textgames.bases import BoardGame, Duel, Marks, ReadsBack
from textgames.tsmg import Action, JointAction, Player, StateT

FREE = "."
MARKS = "XO"  # of the two players, in games on a grid


class BoardDuel(Duel[StateT], BoardGame[StateT], ReadsBack[StateT]):
    """A board game without chance. Winning pays 1, losing -1, a draw 0, all at the end."""

    marks: ClassVar[Marks] = {
        "X": ("player_0", (213, 94, 0)),
        "O": ("player_1", (0, 114, 178)),
        FREE: ("free", (235, 235, 235)),
    }

    def stands(self, state: StateT, player: Player) -> str:
        """Return whose turn it is, or how the game has ended."""
        own, ended = self.players.index(player), self.result(state)
        if ended is None:
            return "It is your turn." if self.mover(state) == own else f"It is the turn of {MARKS[1 - own]}."
        return f"The game is over: {'a draw' if ended == 0.0 else f'{MARKS[ended < 0]} has won'}."

    @abstractmethod
    def told(self, state: StateT, action: Action, after: StateT) -> str:
        """Return :meth:`what_happened` for the player that moved; the other one is told nothing."""

    def what_happened(self, state: StateT, joint_action: JointAction, next_state: StateT, player: Player) -> str:
        return self.told(state, joint_action[player], next_state) if self.to_move(state) == (player,) else ""

    def metrics(self, state: StateT, player: Player) -> Mapping[str, float]:
        """Return ``{"won": 1.0, "drawn": 0.0}`` for a win; both 0 for a loss and for a game that was cut short."""
        return {"won": float(self.succeeded(state, player)), "drawn": float(self.result(state) == 0.0)}
