"""Blackjack against a dealer, with the rules and the infinite deck of Gymnasium's ``Blackjack-v1``.

The game of Example 5.1 in Sutton and Barto, "Reinforcement Learning: An Introduction" (2nd edition, 2018). The dealer's
second card is drawn when it is turned over, not when it is dealt: it can't be seen before, and with an infinite deck
the chances are the same. So the state hides nothing.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from numpy.random import Generator

from textgames.bases import OnePlayerGame, ReadsBack

ACTIONS = ("stick", "hit")
ACE, TEN = 1, 10
CARD_CHANCES = tuple((card, 4 / 13 if card == TEN else 1 / 13) for card in range(ACE, TEN + 1))
"""``(card, probability)``; jack, queen and king are tens."""
DEALER_STANDS = 17
LIMIT = 21
NATURAL_REWARD = 1.5


class Hand(NamedTuple):
    """The cards of one player, as far as they count."""

    total: int  # their sum, with an ace as 11 if that doesn't take it beyond 21
    usable_ace: bool = False  # whether an ace counts as 11

    def with_card(self, card: int) -> "Hand":
        total, usable_ace = self.total + card, self.usable_ace
        if card == ACE and not usable_ace and total + 10 <= LIMIT:
            return Hand(total + 10, True)
        if total > LIMIT and usable_ace:
            return Hand(total - 10, False)
        return Hand(total, usable_ace)


class BlackjackState(NamedTuple):
    """The state of one deal."""

    hand: Hand  # the player's
    natural: bool  # whether the player holds an ace and a ten, and no third card
    showing: int  # the dealer's open card, 1 (an ace) to 10
    dealer: int = 0  # the dealer's total once the player sticks; 0 before
    reward: float = 0.0  # what the deal has paid
    over: bool = False  # whether the player stuck or went over 21


NO_CARDS = Hand(0)


def deal(first: int, second: int, showing: int) -> BlackjackState:
    """Return the state after the deal of two cards to the player and one open card to the dealer."""
    return BlackjackState(NO_CARDS.with_card(first).with_card(second), {first, second} == {ACE, TEN}, showing)


@lru_cache(maxsize=1)
def deals() -> tuple[tuple[float, BlackjackState], ...]:
    """Return every possible deal, as ``(probability, state)``."""
    chances: dict[BlackjackState, float] = {}
    for first, first_chance in CARD_CHANCES:
        for second, second_chance in CARD_CHANCES:
            for showing, showing_chance in CARD_CHANCES:
                state = deal(first, second, showing)
                chances[state] = chances.get(state, 0.0) + first_chance * second_chance * showing_chance
    return tuple((chance, state) for state, chance in chances.items())


@lru_cache(maxsize=16)
def dealer_ends(showing: int) -> tuple[tuple[float, int, bool], ...]:
    """Return ``(probability, total, whether it is a natural)`` of every end of the dealer's play."""
    chances: dict[tuple[int, bool], float] = {}

    def draw(hand: Hand, chance: float, cards: int) -> None:
        if hand.total >= DEALER_STANDS:
            end = (hand.total, cards == 2 and hand.total == LIMIT)
            chances[end] = chances.get(end, 0.0) + chance
            return
        for card, card_chance in CARD_CHANCES:
            draw(hand.with_card(card), chance * card_chance, cards + 1)

    draw(NO_CARDS.with_card(showing), 1.0, 1)
    return tuple((chance, *end) for end, chance in sorted(chances.items()))


def draw_card(rng: Generator) -> int:
    """Draw one of thirteen ranks; it takes one uniform number of ``rng``."""
    return min(int(rng.random() * 13) + 1, TEN)


class Blackjack(OnePlayerGame[BlackjackState], ReadsBack[BlackjackState]):
    """Come closer to 21 than the dealer, without going over it. Winning pays 1, a draw 0, losing -1.

    The dealer draws until it has 17 or more. Settings as in Gymnasium:

    Args:
        natural: whether winning with an ace and a ten as the first two cards pays 1.5; plays no part with ``sab``.
        sab: the rules of Sutton and Barto: an ace and a ten as the first two cards win against anything but the same
            two of the dealer, and pay 1.
    """

    success_means = "won the hand; a draw is none"
    actions = ACTIONS

    def __init__(self, *, natural: bool = False, sab: bool = False) -> None:
        self.natural, self.sab = bool(natural), bool(sab)
        self.return_range = (-1.0, NATURAL_REWARD if natural and not sab else 1.0)

    def initial_state(self, rng: Generator) -> BlackjackState:
        return deal(draw_card(rng), draw_card(rng), draw_card(rng))

    def initial_outcomes(self) -> tuple[tuple[float, BlackjackState], ...]:
        return deals()

    def act(self, state: BlackjackState, action: str, rng: Generator) -> tuple[BlackjackState, float, bool]:
        """Draw a card for the player, or all of the dealer's; each card takes one uniform number of ``rng``."""
        if action == "hit":
            after = self._hit(state, draw_card(rng))
        else:
            dealer, cards = NO_CARDS.with_card(state.showing), 1
            while dealer.total < DEALER_STANDS:
                dealer, cards = dealer.with_card(draw_card(rng)), cards + 1
            after = self._stick(state, dealer.total, cards == 2 and dealer.total == LIMIT)
        return after, after.reward, after.over

    def chances(self, state: BlackjackState, action: str) -> list[tuple[float, BlackjackState, float, bool]]:
        if action == "hit":
            afters = [(chance, self._hit(state, card)) for card, chance in CARD_CHANCES]
        else:
            ends = dealer_ends(state.showing)
            afters = [(chance, self._stick(state, total, natural)) for chance, total, natural in ends]
        return [(chance, after, after.reward, after.over) for chance, after in afters]

    def _hit(self, state: BlackjackState, card: int) -> BlackjackState:
        hand = state.hand.with_card(card)
        if hand.total > LIMIT:
            return BlackjackState(hand, False, state.showing, 0, -1.0, True)
        return BlackjackState(hand, False, state.showing)

    def _stick(self, state: BlackjackState, dealer: int, dealer_natural: bool) -> BlackjackState:
        against = 0 if dealer > LIMIT else dealer  # a dealer that goes over 21 loses to any hand
        reward = float(state.hand.total > against) - float(state.hand.total < against)
        if self.sab and state.natural and not dealer_natural:
            reward = 1.0
        elif self.natural and not self.sab and state.natural and reward > 0:
            reward = NATURAL_REWARD
        return state._replace(dealer=dealer, reward=reward, over=True)

    def is_playing(self, state: BlackjackState, player: str) -> bool:
        return not state.over

    def succeeded(self, state: BlackjackState, player: str) -> bool:
        return state.reward > 0

    def observe(self, state: BlackjackState, player: str) -> str:
        return _observation(state)

    def instructions(self, player: str) -> str:
        if self.sab:
            natural = "An ace and a ten as your first two cards win against anything but the same two of the dealer.\n"
        elif self.natural:
            natural = f"Winning with an ace and a ten as your first two cards pays {NATURAL_REWARD:g} in place of 1.\n"
        else:
            natural = ""
        return (
            "You are playing blackjack against a dealer. Come closer to 21 than the dealer, without going over 21.\n"
            "Number cards count as their number; jack, queen and king count as 10; an ace counts as 11 where that "
            "doesn't take you over 21 (it is then a usable ace), and else as 1. Cards are drawn from an infinite deck: "
            "every rank has the same chance each time.\n"
            "Each turn you take one more card (hit) or stop (stick). Going over 21 loses at once. When you stick, the "
            f"dealer turns over its second card and takes cards until it has {DEALER_STANDS} or more, counting aces as "
            "you do. If it goes over 21 you win; else the higher total wins, and equal totals are a draw.\n"
            f"{natural}"
            "Winning gives a reward of 1, a draw 0, losing -1.\n"
            "Actions: stick, hit."
        )

    def shown(self, observation: str, player: str) -> BlackjackState:
        total, usable_ace, natural, showing = _READ.findall(observation)[0]
        dealer = ACE if showing == "an ace" else int(showing)
        return BlackjackState(Hand(int(total), usable_ace == "with"), bool(natural), dealer)

    def told(self, state: BlackjackState, action: str, after: BlackjackState) -> str:
        if not after.dealer:
            return f"went over {LIMIT}" if after.over else f"has {after.hand.total} now"
        return f"{_end(after)} against the dealer's {after.dealer}"


_READ = re.compile(
    r"^Your total: (\d+) \((with|without) a usable ace(, your first two cards: an ace and a ten)?\)\n"
    r"The dealer shows: (an ace|\d+)$",
    re.MULTILINE,
)


@lru_cache(maxsize=8192)
def _observation(state: BlackjackState) -> str:
    total, usable_ace = state.hand
    ace = "with a usable ace" if usable_ace else "without a usable ace"
    if state.natural:
        ace += ", your first two cards: an ace and a ten"
    shown = "an ace" if state.showing == ACE else f"{state.showing}"
    text = f"Your total: {total} ({ace})\nThe dealer shows: {shown}"
    if not state.over:
        return text
    if not state.dealer:
        return f"{text}\nYou went over {LIMIT} and lost."
    over = " and went over 21" if state.dealer > LIMIT else ""
    return f"{text}\nThe dealer has {state.dealer}{over}: you {_end(state)}."


def _end(state: BlackjackState) -> str:
    return "won" if state.reward > 0 else "lost" if state.reward < 0 else "drew"
