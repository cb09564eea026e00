"""Kuhn poker as a user would write it; no player and no solver is registered for it."""

from collections.abc import Mapping
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

import textgames

CARDS = ("jack", "queen", "king")
DEALS = tuple(permutations(range(3), 2))


class Hand(NamedTuple):
    cards: tuple[int, int]
    bets: str = ""  # "c" for check or fold, "b" for bet or call


class KuhnPoker(textgames.TSMG[Hand]):
    players = ("player_0", "player_1")
    actions = ("pass", "bet")
    hidden_information = True

    def initial_outcomes(self) -> list[tuple[float, Hand]]:
        return [(1 / len(DEALS), Hand(deal)) for deal in DEALS]

    def initial_state(self, rng: np.random.Generator) -> Hand:
        return Hand(DEALS[int(rng.integers(len(DEALS)))])

    def to_move(self, state: Hand) -> tuple[str, ...]:
        return (self.players[len(state.bets) % 2],)

    def transition(self, state: Hand, joint_action: Mapping[str, str], rng: Any) -> tuple[Hand, dict[str, float], bool]:
        (me,) = self.to_move(state)
        if joint_action.get(me) not in self.actions:
            raise ValueError(f"{me} must pass or bet, got {joint_action.get(me)!r}")
        bets = state.bets + ("b" if joint_action[me] == "bet" else "c")
        after, won = Hand(state.cards, bets), 0.0  # what the first player wins
        if bets in ("cc", "bb", "cbb"):
            won = (1.0 if bets == "cc" else 2.0) * (1 if state.cards[0] > state.cards[1] else -1)
        elif bets in ("bc", "cbc"):
            won = 1.0 if bets == "bc" else -1.0
        return after, {"player_0": won, "player_1": -won}, won != 0

    def outcomes(self, state: Hand, joint_action: Mapping[str, str]) -> list[Any]:
        return [(1.0, *self.transition(state, joint_action, None))]

    def observe(self, state: Hand, player: str) -> str:
        so_far = ", ".join({"c": "pass", "b": "bet"}[bet] for bet in state.bets) or "nothing yet"
        return f"Your card: {CARDS[state.cards[self.players.index(player)]]}. Played so far: {so_far}."

    def instructions(self, player: str) -> str:
        return (
            "Kuhn poker. Each of two players antes 1 and gets one of a jack, a queen and a king. In turn they pass or "
            "bet 1. A pass after a bet gives up; after two passes or two bets the higher card wins."
        )


class Undealt(KuhnPoker):
    """The same without the chances of the deal, so that it can't be solved."""

    initial_outcomes = textgames.TSMG.initial_outcomes  # type: ignore[assignment]
