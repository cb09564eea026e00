"""Liar's Dice for two: bid on dice of which half are hidden, or call the other one a liar.

Bids go up in number first and in face second. The highest face is wild: it counts for every bid. A correct call wins,
a wrong one loses.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from math import factorial, prod
from typing import TYPE_CHECKING, NamedTuple

from textgames.settings import check_whole
from textgames.tsmg import TSMG, Action, Outcome, Player

if TYPE_CHECKING:
    import numpy as np

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
    """The state of a round of bidding.

    Attributes:
        dice: of both players, each in ascending order.
        bids: so far; ``player_0`` begins and the players take turns.
        called: whether the last bid has been doubted, which ends the game.
    """

    dice: tuple[Dice, Dice]
    bids: tuple[Bid, ...] = ()
    called: bool = False

    @property
    def mover(self) -> int:
        """The place of the player whose turn it is; of the one who called, once the game is over."""
        return len(self.bids) % 2


# ---------------------------------------------------------------- rules


def matching(state: LiarsDiceState, bid: Bid, wild: int) -> int:
    """How many of all dice count for a bid."""
    return sum(die in (bid.face, wild) for dice in state.dice for die in dice)


def winner(state: LiarsDiceState, wild: int) -> int:
    """The place of the winner after a call: the caller, unless the last bid was true."""
    true = matching(state, state.bids[-1], wild) >= state.bids[-1].number
    return 1 - state.mover if true else state.mover


def hands(num_dice: int, num_sides: int) -> list[tuple[float, Dice]]:
    """Everything that one player can roll, in ascending order, with its probability."""
    rolled = []
    for dice in combinations_with_replacement(range(1, num_sides + 1), num_dice):
        ways = factorial(num_dice) // prod(factorial(dice.count(face)) for face in set(dice))
        rolled.append((ways / num_sides**num_dice, dice))
    return rolled


# ---------------------------------------------------------------- text

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
    """A player's dice in words, such as ``"4"`` or ``"2 and 5"``."""
    shown = [str(die) for die in dice]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def observation(state: LiarsDiceState, me: int, players: tuple[Player, Player], wild: int) -> str:
    """What the player at a place reads: its own dice and all bids, and the others' dice once they are shown."""
    text = bidding_text(state.dice[me], state.bids, me, players)
    if state.called:
        return f"{text}\n{_ending(state, me, players, wild)}"
    if state.mover != me:
        return f"{text}\nIt is the turn of {players[1 - me]}."
    if not state.bids:
        return f"{text}\nIt is your turn: make the first bid."
    (number, face), dice = state.bids[-1], 2 * len(state.dice[me])
    wilds = "" if face == wild else f" or the wild {wild}"
    claim = f"{players[1 - me]} claims that at least {number} of the {dice} dice show {face}{wilds}."
    return f"{text}\n{claim}\nIt is your turn: bid higher or call liar."


@lru_cache(maxsize=1 << 16)  # the same for everything that the other one may have
def bidding_text(own: Dice, bids: tuple[Bid, ...], me: int, players: tuple[Player, Player]) -> str:
    """A player's own dice, and what was bid."""
    told = ", ".join([f"{players[number % 2]} {bid.number}x{bid.face}" for number, bid in enumerate(bids)])
    shows = "die shows" if len(own) == 1 else "dice show"
    hidden = f"{players[1 - me]} has {len(own)} hidden"
    return f"You are {players[me]}. Your {shows} {dice_text(own)}; {hidden}.\nBids so far: {told or 'none'}."


def _ending(state: LiarsDiceState, me: int, players: Sequence[Player], wild: int) -> str:
    caller, bid = players[state.mover], state.bids[-1]
    shown = "; ".join(f"{player} {dice_text(dice)}" for player, dice in zip(players, state.dice, strict=True))
    count = matching(state, bid, wild)
    result = "You win." if winner(state, wild) == me else "You lose."
    return f"{caller} called liar on {bid}. The dice are shown: {shown}. {count} of them count for the bid. {result}"


# ---------------------------------------------------------------- the game


class LiarsDice(TSMG[LiarsDiceState]):
    """Liar's Dice for two players: +1 for the winner, -1 for the loser.

    Args:
        num_dice: dice of each player, 1 to 5.
        num_sides: faces of a die, 2 to 10; the highest one is wild.

    Raises:
        ValueError: a number that is out of its range.
    """

    success_means = "won the challenge"
    players = ("player_0", "player_1")
    hidden_information = True
    pays_late = False
    return_range = (-1.0, 1.0)
    zero_sum = True

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

    def initial_state(self, rng: "np.random.Generator") -> LiarsDiceState:
        rolled = rng.integers(1, self.num_sides + 1, size=2 * self.num_dice).tolist()
        return LiarsDiceState((tuple(sorted(rolled[: self.num_dice])), tuple(sorted(rolled[self.num_dice :]))))

    def initial_outcomes(self) -> Sequence[tuple[float, LiarsDiceState]]:
        rolls = hands(self.num_dice, self.num_sides)
        return [(p * q, LiarsDiceState((first, second))) for p, first in rolls for q, second in rolls]

    def to_move(self, state: LiarsDiceState) -> tuple[Player, ...]:
        return () if state.called else (self.players[state.mover],)

    def legal_actions(self, state: LiarsDiceState, player: Player) -> tuple[Action, ...]:
        if state.called:
            return ()
        return self._legal[state.bids[-1]] if state.bids else self.actions[:-1]

    def transition(
        self, state: LiarsDiceState, joint_action: Mapping[Player, Action], rng: "np.random.Generator"
    ) -> tuple[LiarsDiceState, dict[Player, float], bool]:
        return self._play(state, joint_action)

    def outcomes(
        self, state: LiarsDiceState, joint_action: Mapping[Player, Action]
    ) -> Sequence[Outcome[LiarsDiceState]]:
        return [(1.0, *self._play(state, joint_action))]

    def _play(
        self, state: LiarsDiceState, joint_action: Mapping[Player, Action]
    ) -> tuple[LiarsDiceState, dict[Player, float], bool]:
        player = self.players[state.mover]
        action = joint_action.get(player)
        bid = None if action is None else self._bid_of.get(action)
        if state.called or not (bid is not None if not state.bids else action == LIAR or (bid or ()) > state.bids[-1]):
            accepted = ", ".join(self.legal_actions(state, player)) or "nothing: the game is over"
            raise ValueError(f"{player} may play {accepted}; got {action!r}")
        if bid is not None:
            return LiarsDiceState(state.dice, (*state.bids, bid)), {"player_0": 0.0, "player_1": 0.0}, False
        after = state._replace(called=True)
        won = winner(after, self.num_sides)
        return after, {"player_0": 1.0 - 2 * won, "player_1": 2.0 * won - 1}, True

    def succeeded(self, state: LiarsDiceState, player: Player) -> bool:
        return state.called and winner(state, self.num_sides) == self.players.index(player)

    def observe(self, state: LiarsDiceState, player: Player) -> str:
        return observation(state, self.players.index(player), self.players, self.num_sides)

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
        self,
        state: LiarsDiceState,
        joint_action: Mapping[Player, Action],
        next_state: LiarsDiceState,
        player: Player,
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
