"""Leduc poker: six cards, two rounds of betting, and a table card in between that may make a pair.

The rules are those of Southey et al., "Bayes' Bluff: Opponent Modelling in Poker" (UAI 2005), with the bets that are
usual since: an ante of 1, bets of 2 and then 4, at most two of them in a round.
"""

from functools import cache, lru_cache
from typing import NamedTuple

from textgames.strategy.poker import Betting, Poker
from textgames.tsmg import Action, JointAction, Player

RANKS, SUITS = ("jack", "queen", "king"), ("spades", "hearts")
DECK = tuple(f"{rank} of {suit}" for rank in RANKS for suit in SUITS)
"""Six cards; a card is its index, and its rank the half of that."""

ANTE, BETS = 1, (2, 4)
"""Chips that each player puts in before the deal, and that a bet or a raise adds in each round."""

MAX_BETS = 2
"""Bets and raises of a round, together."""

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
_TOLD_IN_ROUND = [_TOLD | {"bet": f"bet {size}", "raise": f"raised by {size}"} for size in BETS]


class LeducState(NamedTuple):
    """The state of one hand."""

    cards: tuple[int, int]  # of both players, as indices of :data:`DECK`
    table: int | None = None  # the table card; ``None`` in the first round
    first: Betting = ()  # the actions of the first round
    second: Betting = ()  # those of the second round


@cache  # a round has 15 beginnings
def legal_after(betting: Betting) -> tuple[Action, ...]:
    """List what may be done after these actions of a round; nothing once the round is over."""
    if not betting or betting == ("check",):
        return "check", "bet"
    if betting[-1] in ("fold", "call", "check"):
        return ()
    bets = sum(action in ("bet", "raise") for action in betting)
    return ("fold", "call", "raise") if bets < MAX_BETS else ("fold", "call")


@cache  # 15 times 15 bettings
def _chips(first: Betting, second: Betting) -> tuple[int, int]:
    paid = [ANTE, ANTE]
    for betting, size in zip((first, second), BETS, strict=True):
        for number, action in enumerate(betting):
            if action in ("bet", "raise", "call"):  # what was open is met, and a bet or raise adds its own
                paid[number % 2] = max(paid) + size * (action != "call")
    return paid[0], paid[1]


class LeducPoker(Poker[LeducState]):
    """Leduc poker for two: ``player_0`` acts first in both rounds. Returns are chips, from -13 to 13."""

    actions = ("check", "bet", "fold", "call", "raise")
    return_range = (-13.0, 13.0)
    deck = DECK
    rules = _RULES

    def dealt(self, cards: tuple[int, int]) -> LeducState:
        return LeducState(cards)

    def cards(self, state: LeducState) -> tuple[int, int]:
        return state.cards

    def betting(self, state: LeducState) -> Betting:
        return state.first if state.table is None else state.second

    def chips(self, state: LeducState) -> tuple[int, int]:
        return _chips(state.first, state.second)

    def showdown(self, state: LeducState) -> int | None:
        assert state.table is not None
        first, second = [(card // 2 == state.table // 2, card // 2) for card in state.cards]
        return None if first == second else int(second > first)

    def moves(self, state: LeducState) -> tuple[Action, ...]:
        return legal_after(self.betting(state))

    def play(self, state: LeducState, action: Action) -> list[LeducState]:
        """Return several states when the table card is turned up, which ends the first round."""
        if state.table is not None:
            return [state._replace(second=(*state.second, action))]
        after = state._replace(first=(*state.first, action))
        if legal_after(after.first) or action == "fold":
            return [after]
        return [after._replace(table=card) for card in range(len(DECK)) if card not in state.cards]

    def observe(self, state: LeducState, player: Player) -> str:
        return _observation(state, self.players.index(player))

    def what_happened(
        self, state: LeducState, joint_action: JointAction, next_state: LeducState, player: Player
    ) -> str:
        if next_state.table is not None and state.table is None:
            return f"the {DECK[next_state.table]} is turned up"
        return super().what_happened(state, joint_action, next_state, player)

    def describe(self, state: LeducState) -> str:
        table = f"table     [{'' if state.table is None else DECK[state.table]:^15}]"
        rounds = enumerate(zip((state.first, state.second), _TOLD_IN_ROUND, strict=True), 1)
        told = [f"round {number}: {self.bets_told(betting, words)}" for number, (betting, words) in rounds if betting]
        return "\n".join([*self.hands_drawn(state), table, *told])


_GAME = LeducPoker()


@lru_cache(maxsize=1 << 15)
def _observation(state: LeducState, me: int) -> str:
    first, second = [
        _GAME.bets_told(betting, words) or "none yet"
        for betting, words in zip((state.first, state.second), _TOLD_IN_ROUND, strict=True)
    ]
    if state.table is None:
        table = "Round 1 of 2 is being played; the table card is not turned up yet."
    else:
        pair = "You have a pair." if state.table // 2 == state.cards[me] // 2 else "You don't have a pair."
        table = f"The table card is the {DECK[state.table]}. {pair}\nRound 2 betting: {second}."
    *others, last = _GAME.moves(state) or ("",)
    choices = f"{', '.join(others)} or {last}"
    return (
        f"You are {_GAME.players[me]} and act {('first', 'second')[me]} in each round. "
        f"Your card is the {DECK[state.cards[me]]}.\nRound 1 betting: {first}.\n{table}\n"
        f"{_GAME.turn_told(state, me, choices)}"
    )
