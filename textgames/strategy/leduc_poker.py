"""Leduc poker: six cards, two rounds of betting, and a table card in between that may make a pair.

The rules are those of Southey et al., "Bayes' Bluff: Opponent Modelling in Poker" (UAI 2005), with the bets that are
usual since: an ante of 1, bets of 2 and then 4, at most two of them in a round.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from textgames.tsmg import TSMG, Action, Outcome, Player

if TYPE_CHECKING:
    import numpy as np

RANKS, SUITS = ("jack", "queen", "king"), ("spades", "hearts")
DECK = tuple(f"{rank} of {suit}" for rank in RANKS for suit in SUITS)
"""Six cards; a card is its index, and its rank the half of that."""

DEALS = tuple(permutations(range(len(DECK)), 2))
"""Every deal of two cards; all are equally likely."""

ANTE, BETS = 1, (2, 4)
"""Chips that each player puts in before the deal, and that a bet or a raise adds in each round."""

MAX_BETS = 2
"""Bets and raises of a round, together."""

History = tuple[Action, ...]


class LeducState(NamedTuple):
    """The state of one hand.

    Attributes:
        cards: of both players, as indices of :data:`DECK`.
        table: the table card; ``None`` in the first round.
        first: the actions of the first round; ``player_0`` begins and the players act in turn.
        second: those of the second round, likewise.
    """

    cards: tuple[int, int]
    table: int | None = None
    first: History = ()
    second: History = ()

    @property
    def betting(self) -> History:
        """The actions of the round that is being played."""
        return self.first if self.table is None else self.second


# ---------------------------------------------------------------- rules


@cache  # a round has 15 beginnings
def legal_after(betting: History) -> tuple[Action, ...]:
    """What may be done after these actions of a round; nothing once the round is over."""
    if not betting or betting == ("check",):
        return "check", "bet"
    if betting[-1] in ("fold", "call", "check"):
        return ()
    return ("fold", "call", "raise") if bets_of(betting) < MAX_BETS else ("fold", "call")


def bets_of(betting: History) -> int:
    """How many bets and raises there were."""
    return sum(action in ("bet", "raise") for action in betting)


@cache  # 15 times 15 bettings
def chips(first: History, second: History) -> tuple[int, int]:
    """What each player has put into the pot."""
    paid = [ANTE, ANTE]
    for betting, size in zip((first, second), BETS, strict=True):
        for number, action in enumerate(betting):
            if action in ("bet", "raise", "call"):  # what was open is met, and a bet or raise adds its own
                paid[number % 2] = max(paid) + size * (action != "call")
    return paid[0], paid[1]


def is_over(state: LeducState) -> bool:
    """Whether somebody has folded or the second round is complete."""
    return not legal_after(state.betting) and (state.table is not None or state.first[-1] == "fold")


def winner(state: LeducState) -> int | None:
    """The place of the player who has won a hand that is over; ``None`` where the pot is shared."""
    if state.betting[-1] == "fold":
        return len(state.betting) % 2  # who would be next: not the one who folded
    assert state.table is not None
    table = state.table // 2
    strengths = [(card // 2 == table, card // 2) for card in state.cards]
    return None if strengths[0] == strengths[1] else int(strengths[1] > strengths[0])


@lru_cache(maxsize=1 << 14)  # 4,380 hands and what can be done in them
def play(state: LeducState, action: Action) -> tuple[tuple[LeducState, ...], tuple[float, float], bool]:
    """What comes of a legal action.

    Returns:
        The next states, equally likely (several where the table card is turned up); what it pays both players in
        chips; and whether the hand is over.
    """
    if state.table is None:
        after = state._replace(first=(*state.first, action))
    else:
        after = state._replace(second=(*state.second, action))
    if legal_after(after.betting):
        return (after,), (0.0, 0.0), False
    if not is_over(after):
        hidden = [card for card in range(len(DECK)) if card not in state.cards]
        return tuple(after._replace(table=card) for card in hidden), (0.0, 0.0), False
    won = winner(after)
    if won is None:
        return (after,), (0.0, 0.0), True
    gain = float(chips(after.first, after.second)[1 - won])
    return (after,), ((gain, -gain) if won == 0 else (-gain, gain)), True


# ---------------------------------------------------------------- text

_RULES = """\
Leduc poker, a card game for two players. You are {me}; the other player is {other}.
The deck has six cards: two jacks, two queens and two kings. Jacks are the lowest and kings the highest; suits \
don't matter. Each player puts 1 chip into the pot and is dealt one card, which the other one doesn't see.
There are two rounds of betting, and player_0 acts first in both. As long as nobody has bet in the round, the \
player whose turn it is may check (put in nothing) or bet. After a bet, the other player may fold (give up the \
pot), call (put in as much as the other one) or raise (call and bet once more). A bet or raise is 2 chips in the \
first round and 4 chips in the second, and there are at most two of them in a round. A round ends with a call or \
after two checks.
After the first round one card of the deck is turned up on the table. After the second round both hands are \
shown: a player whose card has the rank of the table card has a pair and wins; if nobody has a pair, the higher \
card wins; equal cards share the pot.
You are paid the chips that you win, and you lose the chips that you put in.
Actions: check, bet, fold, call, raise."""

_TOLD = {"check": "checked", "fold": "folded", "call": "called"}


def betting_text(betting: History, size: int, players: Sequence[Player]) -> str:
    """``"player_0 checked, player_1 bet 2, player_0 raised by 2"``."""
    told = _TOLD | {"bet": f"bet {size}", "raise": f"raised by {size}"}
    return ", ".join(f"{players[number % 2]} {told[action]}" for number, action in enumerate(betting))


@lru_cache(maxsize=1 << 15)
def observation(state: LeducState, me: int, players: tuple[Player, Player]) -> str:
    """What the player at a place reads: its own card, the table card, and everything that was done in public."""
    paid, other, betting = chips(state.first, state.second), players[1 - me], state.betting
    lines = [
        f"You are {players[me]} and act {('first', 'second')[me]} in each round. "
        f"Your card is the {DECK[state.cards[me]]}.",
        f"Round 1 betting: {betting_text(state.first, BETS[0], players) or 'none yet'}.",
    ]
    if state.table is None:
        lines.append("Round 1 of 2 is being played; the table card is not turned up yet.")
    else:
        pair = "You have a pair." if state.table // 2 == state.cards[me] // 2 else "You don't have a pair."
        lines.append(f"The table card is the {DECK[state.table]}. {pair}")
        lines.append(f"Round 2 betting: {betting_text(state.second, BETS[1], players) or 'none yet'}.")
    lines.append(f"The pot holds {sum(paid)} chips: {paid[me]} of yours and {paid[1 - me]} of {other}.")
    legal = legal_after(betting)
    if not legal:
        lines.append(_ending(state, me, players))
    elif len(betting) % 2 == me:
        lines.append(f"It is your turn: {', '.join(legal[:-1])} or {legal[-1]}.")
    else:
        lines.append(f"It is the turn of {other}.")
    return "\n".join(lines)


def _ending(state: LeducState, me: int, players: Sequence[Player]) -> str:
    won, other = winner(state), players[1 - me]
    if won is None:
        result = "You share the pot."
    else:
        gain = chips(state.first, state.second)[1 - won]
        result = f"{'You win' if won == me else 'You lose'} {gain} chip{'s' * (gain > 1)}."
    if state.betting[-1] == "fold":
        return f"{'You' if won != me else other} folded. {result}"
    return f"The cards are shown: {other} has the {DECK[state.cards[1 - me]]}. {result}"


# ---------------------------------------------------------------- the game


class LeducPoker(TSMG[LeducState]):
    """Leduc poker for two: ``player_0`` acts first in both rounds. Returns are chips, from -13 to 13."""

    success_means = "won the hand, by the cards or because the other folded"
    players = ("player_0", "player_1")
    actions = ("check", "bet", "fold", "call", "raise")
    hidden_information = True
    pays_late = False
    return_range = (-13.0, 13.0)
    zero_sum = True

    def initial_state(self, rng: "np.random.Generator") -> LeducState:
        return LeducState(DEALS[int(rng.integers(len(DEALS)))])

    def initial_outcomes(self) -> Sequence[tuple[float, LeducState]]:
        return [(1 / len(DEALS), LeducState(cards)) for cards in DEALS]

    def to_move(self, state: LeducState) -> tuple[Player, ...]:
        betting = state.betting
        return (self.players[len(betting) % 2],) if legal_after(betting) else ()

    def legal_actions(self, state: LeducState, player: Player) -> tuple[Action, ...]:
        return legal_after(state.betting)

    def transition(
        self, state: LeducState, joint_action: Mapping[Player, Action], rng: "np.random.Generator"
    ) -> tuple[LeducState, dict[Player, float], bool]:
        states, rewards, over = self._play(state, joint_action)
        after = states[0] if len(states) == 1 else states[int(rng.integers(len(states)))]
        return after, dict(zip(self.players, rewards, strict=True)), over

    def outcomes(self, state: LeducState, joint_action: Mapping[Player, Action]) -> Sequence[Outcome[LeducState]]:
        states, rewards, over = self._play(state, joint_action)
        return [(1 / len(states), after, dict(zip(self.players, rewards, strict=True)), over) for after in states]

    def _play(
        self, state: LeducState, joint_action: Mapping[Player, Action]
    ) -> tuple[tuple[LeducState, ...], tuple[float, float], bool]:
        player = self.players[len(state.betting) % 2]
        action, legal = joint_action.get(player), legal_after(state.betting)
        if action not in legal:
            raise ValueError(f"{player} may {' or '.join(legal) or 'do nothing: the hand is over'}, got {action!r}")
        return play(state, action)

    def succeeded(self, state: LeducState, player: Player) -> bool:
        return not legal_after(state.betting) and winner(state) == self.players.index(player)

    def observe(self, state: LeducState, player: Player) -> str:
        return observation(state, self.players.index(player), self.players)

    def instructions(self, player: Player) -> str:
        return _RULES.format(me=player, other=self.players[1 - self.players.index(player)])

    def what_happened(
        self, state: LeducState, joint_action: Mapping[Player, Action], next_state: LeducState, player: Player
    ) -> str:
        if not legal_after(next_state.betting):
            return self._ending_text(next_state, self.players.index(player))
        if next_state.table is not None and state.table is None:
            return f"the {DECK[next_state.table]} is turned up"
        return ""

    def _ending_text(self, state: LeducState, me: int) -> str:
        won = winner(state)
        if won is None:
            return f"shared the pot, against the {DECK[state.cards[1 - me]]}"
        gain = chips(state.first, state.second)[1 - won]
        result = f"{'won' if won == me else 'lost'} {gain} chip{'s' * (gain > 1)}"
        if state.betting[-1] == "fold":
            return f"{result}{', as the other player folded' if won == me else ' by folding'}"
        return f"{result} against the {DECK[state.cards[1 - me]]}"

    def describe(self, state: LeducState) -> str:
        paid = chips(state.first, state.second)
        lines = [
            f"{player}  [{DECK[card]:^15}]  {'o' * stack}"
            for player, card, stack in zip(self.players, state.cards, paid, strict=True)
        ]
        lines.append(f"table     [{'' if state.table is None else DECK[state.table]:^15}]")
        for number, betting in enumerate((state.first, state.second)):
            if betting:
                lines.append(f"round {number + 1}: {betting_text(betting, BETS[number], self.players)}")
        return "\n".join(lines)
