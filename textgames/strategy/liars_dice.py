"""Liar's Dice for two: bid on dice of which half are hidden, or call the other one a liar.

Bids go up in number first and in face second. The highest face is wild: it counts for every bid. A correct call wins,
a wrong one loses.
"""

from functools import lru_cache
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import NamedTuple

from numpy.random import Generator

from textgames.bases import Duel
from textgames.settings import check_whole
from textgames.tsmg import Action, JointAction, Player

LIAR = "liar"
"""The action that doubts the last bid."""

MOST_DICE, FACES = 5, range(2, 11)

Dice = tuple[int, ...]


class Bid(NamedTuple):
    """At least ``number`` of all dice show ``face``; the wild face counts as well. Bids are ordered as they compare."""

    number: int
    face: int

    def __str__(self) -> str:
        return f"{self.number}x{self.face}"


class LiarsDiceState(NamedTuple):
    """The state of a round of bidding."""

    dice: tuple[Dice, Dice]  # of both players, each in ascending order
    bids: tuple[Bid, ...] = ()  # so far; ``player_0`` begins and the players take turns
    called: bool = False  # whether the last bid has been doubted, which ends the game

    @property
    def mover(self) -> int:
        """The place of the player whose turn it is; of the one who called, once the game is over."""
        return len(self.bids) % 2


def matching(state: LiarsDiceState, bid: Bid, wild: int) -> int:
    """Return how many of all dice count for a bid."""
    return sum(die in (bid.face, wild) for dice in state.dice for die in dice)


def winner(state: LiarsDiceState, wild: int) -> int:
    """Return the place of the winner after a call: the caller, unless the last bid was true."""
    true = matching(state, state.bids[-1], wild) >= state.bids[-1].number
    return 1 - state.mover if true else state.mover


def hands(num_dice: int, num_sides: int) -> list[tuple[float, Dice]]:
    """Return everything that one player can roll, in ascending order, with its probability."""
    rolled = []
    for dice in combinations_with_replacement(range(1, num_sides + 1), num_dice):
        ways = factorial(num_dice) // prod(factorial(dice.count(face)) for face in set(dice))
        rolled.append((ways / num_sides**num_dice, dice))
    return rolled


_RULES = """\
Liar's Dice, a game of bidding for two players. You are {me}; the other player is {other}.
Each player rolls {dice} with {sides} sides and looks at the result in secret, so there are {total} dice in all. \
The {wild} is wild: it counts as every face.
player_0 begins. A bid such as 1x3 claims that at least 1 of all the dice shows a 3 (or the wild {wild}). The \
players take turns: either bid higher than the last bid, or call liar. A bid is higher when its number is \
larger, or when its number is the same and its face is larger.
When somebody calls liar, all dice are shown. If the last bid was true, the player who made it wins; if it was \
false, the caller wins. The winner is paid +1 and the loser -1.
Actions, from the lowest bid to the highest: {bids}; and liar once there is a bid."""


def dice_text(dice: Dice) -> str:
    """Return a player's dice in words, such as ``"4"`` or ``"2 and 5"``."""
    *shown, last = map(str, dice)
    return f"{', '.join(shown)} and {last}" if shown else last


@lru_cache(maxsize=1 << 16)  # the same for everything that the other one may have
def bidding_text(own: Dice, bids: tuple[Bid, ...], me: int) -> str:
    """Return a player's own dice, and what was bid."""
    told = ", ".join([f"player_{number % 2} {bid.number}x{bid.face}" for number, bid in enumerate(bids)])
    shows = "die shows" if len(own) == 1 else "dice show"
    hidden = f"player_{1 - me} has {len(own)} hidden"
    return f"You are player_{me}. Your {shows} {dice_text(own)}; {hidden}.\nBids so far: {told or 'none'}."


class LiarsDice(Duel[LiarsDiceState]):
    """Liar's Dice for two players: +1 for the winner, -1 for the loser.

    Args:
        num_dice: dice of each player, 1 to 5.
        num_sides: faces of a die, 2 to 10; the highest one is wild.
    """

    success_means = "won the challenge"
    hidden_information = True
    pays_late = False

    def __init__(self, *, num_dice: int = 1, num_sides: int = 6) -> None:
        check_whole("num_dice", num_dice, 1, MOST_DICE)
        check_whole("num_sides", num_sides, FACES[0], FACES[-1])
        self.num_dice, self.num_sides = num_dice, num_sides
        self._bids = tuple(
            Bid(number, face) for number in range(1, 2 * num_dice + 1) for face in range(1, num_sides + 1)
        )
        self.longest_episode = len(self._bids) + 1
        self._bid_of = {str(bid): bid for bid in self._bids}
        self.actions = (*self._bid_of, LIAR)
        rank = {bid: index for index, bid in enumerate(self._bids)}
        # what may be done after each bid: every higher one, or a call; calling is what an unreadable response does
        self._legal = {bid: (LIAR, *map(str, self._bids[rank[bid] + 1 :])) for bid in self._bids}

    def initial_state(self, rng: Generator) -> LiarsDiceState:
        rolled = rng.integers(1, self.num_sides + 1, size=2 * self.num_dice).tolist()
        return LiarsDiceState((tuple(sorted(rolled[: self.num_dice])), tuple(sorted(rolled[self.num_dice :]))))

    def initial_outcomes(self) -> list[tuple[float, LiarsDiceState]]:
        rolls = hands(self.num_dice, self.num_sides)
        return [(p * q, LiarsDiceState((first, second))) for p, first in rolls for q, second in rolls]

    def moves(self, state: LiarsDiceState) -> tuple[Action, ...]:
        if state.called:
            return ()
        return self._legal[state.bids[-1]] if state.bids else self.actions[:-1]

    def play(self, state: LiarsDiceState, action: Action) -> list[LiarsDiceState]:
        if action == LIAR:
            return [state._replace(called=True)]
        return [LiarsDiceState(state.dice, (*state.bids, self._bid_of[action]))]

    def result(self, state: LiarsDiceState) -> float | None:
        return 1.0 - 2 * winner(state, self.num_sides) if state.called else None

    def observe(self, state: LiarsDiceState, player: Player) -> str:
        me, wild = self.players.index(player), self.num_sides
        other, text = self.players[1 - me], bidding_text(state.dice[me], state.bids, me)
        if state.called:
            shown = "; ".join(f"{who} {dice_text(dice)}" for who, dice in zip(self.players, state.dice, strict=True))
            return (
                f"{text}\n{self.players[state.mover]} called liar on {state.bids[-1]}. The dice are shown: {shown}. "
                f"{matching(state, state.bids[-1], wild)} of them count for the bid. "
                f"You {'win' if winner(state, wild) == me else 'lose'}."
            )
        if state.mover != me:
            return f"{text}\nIt is the turn of {other}."
        if not state.bids:
            return f"{text}\nIt is your turn: make the first bid."
        (number, face), dice = state.bids[-1], 2 * len(state.dice[me])
        wilds = "" if face == wild else f" or the wild {wild}"
        claim = f"{other} claims that at least {number} of the {dice} dice show {face}{wilds}."
        return f"{text}\n{claim}\nIt is your turn: bid higher or call liar."

    def instructions(self, player: Player) -> str:
        return _RULES.format(
            me=player,
            other=self.players[1 - self.players.index(player)],
            dice="one die" if self.num_dice == 1 else f"{self.num_dice} dice",
            sides=self.num_sides,
            total=2 * self.num_dice,
            wild=self.num_sides,
            bids=", ".join(self.actions[:-1]),
        )

    def what_happened(
        self, state: LiarsDiceState, joint_action: JointAction, next_state: LiarsDiceState, player: Player
    ) -> str:
        if not next_state.called:
            return ""
        me, bid = self.players.index(player), next_state.bids[-1]
        called = "called liar" if next_state.mover == me else "was called a liar"
        result = "won" if winner(next_state, self.num_sides) == me else "lost"
        return f"{called} on {bid} and {result}; {matching(next_state, bid, self.num_sides)} of the dice count for it"

    def describe(self, state: LiarsDiceState) -> str:
        lines = []
        for place, (player, dice) in enumerate(zip(self.players, state.dice, strict=True)):
            bids = " ".join(str(bid) for bid in state.bids[place::2])
            lines.append(f"{player}  {' '.join(f'[{die}]' for die in dice)}  {bids}".rstrip())
        if state.called:
            lines.append(f"{self.players[state.mover]} called liar: {self.players[winner(state, self.num_sides)]} wins")
        return "\n".join(lines)
