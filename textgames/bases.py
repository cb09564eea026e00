"""What games share, so that each of them is rules and a description: boards, solo games, duels.

A game of another kind is a :class:`~textgames.tsmg.TSMG` itself. Nothing here is needed to add a game.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from numpy.random import Generator

from textgames.tsmg import TSMG, Action, JointAction, Outcome, Player, Rewards, StateT, Transition

Marks = Mapping[str, tuple[str, tuple[int, int, int]]]
"""``{character of a board: (what it stands for, its colour as red, green, blue)}``"""


@lru_cache(maxsize=64)
def neighbours(nrow: int, ncol: int, ways: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], ...]:
    """Return ``table[cell][way]``, the cell that a step leads to; -1 when it leads off the board.

    Cells are numbered row by row from the top left; a way is ``(rows down, columns right)``.
    """
    return tuple(
        tuple(
            (row + down) * ncol + column + right if 0 <= row + down < nrow and 0 <= column + right < ncol else -1
            for down, right in ways
        )
        for row in range(nrow)
        for column in range(ncol)
    )


def steps_to(goals: Iterable[int], beside: Sequence[Iterable[int]], blocked: Collection[int]) -> dict[int, int]:
    """Return ``{cell: steps to the nearest goal}`` of the cells that have a way, none of which enters a blocked cell.

    ``beside[cell]`` are the cells next to it, from which a step leads back.
    """
    found, steps = dict.fromkeys(goals, 0), 0
    layer = set(found)
    while layer:
        steps += 1
        layer = {to for cell in layer for to in beside[cell] if to not in found and to not in blocked}
        found |= dict.fromkeys(layer, steps)
    return found


class BoardGame(TSMG[StateT]):
    """A game whose ``marks`` make palette and legend; one that stands for ``""`` is left out of the legend."""

    marks: ClassVar[Marks] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.palette = {mark: colour for mark, (_, colour) in cls.marks.items()}
        cls.legend = {mark: means for mark, (means, _) in cls.marks.items() if means}


class ReadsBack(TSMG[StateT]):
    """A game whose observations show the whole state, which :meth:`shown` reads back."""

    @abstractmethod
    def shown(self, observation: str, player: Player) -> StateT:
        """Read the state from an observation; any error, and any state that looks different, means that it is none."""

    def read_observation(self, observation: str, player: Player) -> StateT:
        try:
            state = self.shown(observation, player)
            if self.observe(state, player) == observation:
                return state
        except (ValueError, LookupError, TypeError):
            pass
        name = type(self).__name__
        raise ValueError(f"not an observation of {name} with these settings for {player}: {observation[:80]!r}")


class ListedStarts(TSMG[StateT]):
    """A game that begins in any of its ``starts`` with equal chances; a single one takes no random number."""

    starts: Sequence[StateT]

    def initial_state(self, rng: Generator) -> StateT:
        return self.starts[int(rng.integers(len(self.starts)))]

    def initial_outcomes(self) -> list[tuple[float, StateT]]:
        return [(1 / len(self.starts), state) for state in self.starts]


class OnePlayerGame(TSMG[StateT]):
    """A game for one player, told without players' names: ``state, action -> state, reward, over``.

    Once :meth:`is_playing` is false, every round leaves the state as it is and pays nothing.
    """

    @abstractmethod
    def act(self, state: StateT, action: Action, rng: Generator) -> tuple[StateT, float, bool]:
        """Play a legal action; ``rng`` may be absent in a game without chance."""

    def chances(self, state: StateT, action: Action) -> Sequence[tuple[float, StateT, float, bool]]:
        """List ``(probability, state, reward, over)`` of a legal action; by default a game without chance."""
        return [(1.0, *self.act(state, action, None))]  # type: ignore[arg-type]

    def told(self, state: StateT, action: Action, after: StateT) -> str:
        """Return :meth:`what_happened` of a round that was played."""
        return ""

    def chosen(self, state: StateT, joint_action: JointAction) -> Action:
        """Return the player's action; a ValueError if there is none, or one that is not legal in this state."""
        action, legal = joint_action.get("player_0", ""), self.legal_actions(state, "player_0")
        if action not in legal:
            raise ValueError(f"joint_action must give player_0 one of {', '.join(legal)}, got {dict(joint_action)!r}")
        return action

    def transition(self, state: StateT, joint_action: JointAction, rng: Generator) -> Transition[StateT]:
        if not self.is_playing(state, "player_0"):
            return state, {"player_0": 0.0}, True
        after, reward, over = self.act(state, self.chosen(state, joint_action), rng)
        return after, {"player_0": reward}, over

    def outcomes(self, state: StateT, joint_action: JointAction) -> list[Outcome[StateT]]:
        if not self.is_playing(state, "player_0"):
            return [(1.0, state, {"player_0": 0.0}, True)]
        listed = self.chances(state, self.chosen(state, joint_action))
        return [(chance, after, {"player_0": reward}, over) for chance, after, reward, over in listed]

    def what_happened(self, state: StateT, joint_action: JointAction, next_state: StateT, player: Player) -> str:
        return self.told(state, joint_action.get(player, ""), next_state) if self.is_playing(state, player) else ""


class Duel(TSMG[StateT]):
    """A game of two players in turns until one has won or neither can; what one is paid the other loses."""

    success_means = "won the game; a draw is none"
    players = ("player_0", "player_1")
    return_range = (-1.0, 1.0)
    zero_sum = True

    def mover(self, state: StateT) -> int:
        """Return the number of the player whose turn it is, 0 or 1: by default what the state has as ``mover``."""
        return int(state.mover)  # type: ignore[attr-defined]

    @abstractmethod
    def moves(self, state: StateT) -> tuple[Action, ...]:
        """List what the player can do, in order; nothing once the game is over."""

    @abstractmethod
    def play(self, state: StateT, action: Action) -> Sequence[StateT]:
        """Return the states that a move may lead to, equally likely: one in a game without chance."""

    @abstractmethod
    def result(self, state: StateT) -> float | None:
        """Return what the first player is paid at the end; ``None`` before."""

    def to_move(self, state: StateT) -> tuple[Player, ...]:
        return () if self.result(state) is not None else (self.players[self.mover(state)],)

    def legal_actions(self, state: StateT, player: Player) -> tuple[Action, ...]:
        return self.moves(state)

    def transition(self, state: StateT, joint_action: JointAction, rng: Generator) -> Transition[StateT]:
        states = self._played(state, joint_action)
        after = states[0] if len(states) == 1 else states[int(rng.integers(len(states)))]
        return after, *self._paid(after)

    def outcomes(self, state: StateT, joint_action: JointAction) -> list[Outcome[StateT]]:
        states = self._played(state, joint_action)
        return [(1 / len(states), after, *self._paid(after)) for after in states]

    def _played(self, state: StateT, joint_action: JointAction) -> Sequence[StateT]:
        mover, moves = self.players[self.mover(state)], self.moves(state)
        action = joint_action.get(mover)
        if action is None or action not in moves:
            choice = ", ".join(moves) or "nothing, as the game is over"
            raise ValueError(f"{mover} is to move and can play {choice}; got {dict(joint_action)!r}")
        return self.play(state, action)

    def _paid(self, state: StateT) -> tuple[Rewards, bool]:
        result = self.result(state)
        return {"player_0": result or 0.0, "player_1": 0.0 - (result or 0.0)}, result is not None

    def is_playing(self, state: StateT, player: Player) -> bool:
        return self.result(state) is None

    def succeeded(self, state: StateT, player: Player) -> bool:
        result = self.result(state) or 0.0
        return result > 0 if player == "player_0" else result < 0


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
