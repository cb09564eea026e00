"""Leduc poker: six cards, two rounds of betting, and a table card in between that may make a pair.

The rules are those of Southey et al., "Bayes' Bluff: Opponent Modelling in Poker" (UAI 2005), with the bets that are
usual since: an ante of 1, bets of 2 and then 4, at most two of them in a round.
"""

from textgames.strategy.poker import Hand, Poker, deals

RANKS, SUITS = ("jack", "queen", "king"), ("spades", "hearts")
DECK = tuple(f"{rank} of {suit}" for rank in RANKS for suit in SUITS)
"""Six cards; a card is its index, and its rank the half of that."""

BETS = (2, 4)

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


class LeducPoker(Poker):
    """Leduc poker for two: ``player_0`` acts first in both rounds. Returns are chips, from -13 to 13."""

    actions = ("check", "bet", "fold", "call", "raise")
    return_range = (-13.0, 13.0)
    deck = DECK
    starts = deals(len(DECK))
    bets = BETS
    most_bets = 2
    words = tuple(
        {"check": "checked", "fold": "folded", "call": "called", "bet": f"bet {size}", "raise": f"raised by {size}"}
        for size in BETS
    )
    rules = _RULES

    def strength(self, state: Hand, card: int) -> tuple[bool, int]:
        assert state.table is not None
        return card // 2 == state.table // 2, card // 2

    def table_told(self, state: Hand, me: int) -> str:
        first, second = [self.bets_told(state, number) or "none yet" for number in (0, 1)]
        if state.table is None:
            table = "Round 1 of 2 is being played; the table card is not turned up yet."
        else:
            pair = "You have a pair." if self.strength(state, state.cards[me])[0] else "You don't have a pair."
            table = f"The table card is the {DECK[state.table]}. {pair}\nRound 2 betting: {second}."
        card = DECK[state.cards[me]]
        return f" in each round. Your card is the {card}.\nRound 1 betting: {first}.\n{table}"
