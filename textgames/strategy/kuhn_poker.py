"""Kuhn poker: three cards, one bet, and everything that bluffing is about.

The rules are those of H. W. Kuhn, "A simplified two-person poker" (1950). In equilibrium the first player loses 1/18 of
a chip a hand; :mod:`textgames.solving.equilibrium` computes it, and what any policy can lose.
"""

from functools import cache
from typing import NamedTuple

from textgames.strategy.poker import Betting, Poker
from textgames.tsmg import Action, Player

ANTE = BET = 1

OPENING, FACING_A_BET = ("check", "bet"), ("fold", "call")
LEGAL_ACTIONS: dict[Betting, tuple[Action, ...]] = {
    (): OPENING, ("check",): OPENING, ("bet",): FACING_A_BET, ("check", "bet"): FACING_A_BET,
}  # fmt: skip
"""What may be done after each betting; after any other one the hand is over."""

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

_TOLD = {"check": "checked", "bet": "bet 1 chip", "fold": "folded", "call": "called with 1 chip"}


class KuhnState(NamedTuple):
    """The cards of both players, as indices of the deck, and the actions so far."""

    cards: tuple[int, int]
    history: Betting = ()


class KuhnPoker(Poker[KuhnState]):
    """Kuhn poker for two: ``player_0`` acts first. Returns are chips won or lost, from -2 to 2."""

    actions = (*OPENING, *FACING_A_BET)
    return_range = (-2.0, 2.0)
    deck = ("jack", "queen", "king")
    rules = _RULES

    def dealt(self, cards: tuple[int, int]) -> KuhnState:
        return KuhnState(cards)

    def cards(self, state: KuhnState) -> tuple[int, int]:
        return state.cards

    def betting(self, state: KuhnState) -> Betting:
        return state.history

    def chips(self, state: KuhnState) -> tuple[int, int]:
        first, second = [sum(action in ("bet", "call") for action in state.history[place::2]) for place in (0, 1)]
        return ANTE + BET * first, ANTE + BET * second

    def showdown(self, state: KuhnState) -> int:
        return 0 if state.cards[0] > state.cards[1] else 1

    def moves(self, state: KuhnState) -> tuple[Action, ...]:
        return LEGAL_ACTIONS.get(state.history, ())

    def play(self, state: KuhnState, action: Action) -> list[KuhnState]:
        return [KuhnState(state.cards, (*state.history, action))]

    def observe(self, state: KuhnState, player: Player) -> str:
        return _observation(state, self.players.index(player))

    def describe(self, state: KuhnState) -> str:
        betting = self.bets_told(state.history, _TOLD) or "nobody has acted yet"
        return "\n".join([*self.hands_drawn(state), betting])


_GAME = KuhnPoker()


@cache  # 6 deals, 9 histories and 2 players
def _observation(state: KuhnState, me: int) -> str:
    order, card = ("first", "second")[me], _GAME.deck[state.cards[me]]
    return (
        f"You are {_GAME.players[me]} and act {order}. Your card is the {card}.\n"
        f"Betting so far: {_GAME.bets_told(state.history, _TOLD) or 'none'}.\n"
        f"{_GAME.turn_told(state, me, ' or '.join(_GAME.moves(state)))}"
    )
