"""Kuhn poker: three cards, one bet, and everything that bluffing is about.

The rules are those of H. W. Kuhn, "A simplified two-person poker" (1950). In equilibrium the first player loses 1/18 of
a chip a hand; :mod:`textgames.solving.equilibrium` computes it, and what any policy can lose.
"""

from textgames.strategy.poker import Hand, Poker, deals

_RULES = """\
Kuhn poker, a card game for two players. You are {me}; the other player is {other}.
The deck has three cards: the jack is the lowest, then the queen, and the king is the highest. Each player puts \
1 chip into the pot and is dealt one card, which the other one doesn't see. The third card stays hidden.
player_0 acts first. As long as nobody has bet, the player whose turn it is may check (put in nothing) or bet \
(put in 1 more chip). After a bet, the other player may fold (give up the pot) or call (put in 1 chip as well). \
After two checks or a call both cards are shown, and the higher one wins the pot.
You are paid the chips that you win, and you lose the chips that you put in. In a game that is played often, a \
player who never bluffs and one who always does can both be beaten.
Actions: check, bet, fold, call."""


class KuhnPoker(Poker):
    """Kuhn poker for two: ``player_0`` acts first. Returns are chips won or lost, from -2 to 2."""

    actions = ("check", "bet", "fold", "call")
    return_range = (-2.0, 2.0)
    deck = ("jack", "queen", "king")
    starts = deals(len(deck))
    bets = (1,)
    words = ({"check": "checked", "bet": "bet 1 chip", "fold": "folded", "call": "called with 1 chip"},)
    rules = _RULES

    def table_told(self, state: Hand, me: int) -> str:
        card = self.deck[state.cards[me]]
        return f". Your card is the {card}.\nBetting so far: {self.bets_told(state, 0) or 'none'}."
