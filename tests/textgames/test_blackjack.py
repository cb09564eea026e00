"""Blackjack against Gymnasium's functions and episodes, and its exact values."""

import itertools
from collections import Counter

import numpy as np
import pytest
from gymnasium.envs.toy_text import blackjack as gymnasiums

from textgames.planning.blackjack import Blackjack, BlackjackState, Hand, deal, dealer_ends
from textgames.solving.blind import blind_value
from textgames.solving.value_iteration import ValueIteration

SETTINGS = [{}, {"natural": True}, {"sab": True}, {"sab": True, "natural": True}]


def reward_in_gymnasium(settings: dict[str, bool], player: list[int], dealer: list[int]) -> float:
    """What sticking pays when the dealer already holds these cards, which are 17 or more."""
    env = gymnasiums.BlackjackEnv(**settings)
    env.reset(seed=0)
    env.player, env.dealer = list(player), list(dealer)
    return float(env.step(0)[1])


def test_hands_count_as_gymnasiums():
    for cards in itertools.chain.from_iterable(itertools.product(range(1, 11), repeat=count) for count in (2, 3, 4)):
        hand = Hand(0)
        for card in cards:
            hand = hand.with_card(card)
        assert hand == (gymnasiums.sum_hand(list(cards)), bool(gymnasiums.usable_ace(list(cards))))


def test_deals_have_gymnasiums_chances():
    expected: Counter[tuple[int, bool, int, bool]] = Counter()
    for first, second, showing in itertools.product(gymnasiums.deck, repeat=3):
        cards = [first, second]
        key = (gymnasiums.sum_hand(cards), bool(gymnasiums.usable_ace(cards)), showing, gymnasiums.is_natural(cards))
        expected[key] += 1
    found = {(*s.hand, s.showing, s.natural): p * 13**3 for p, s in Blackjack().initial_outcomes()}
    assert found == pytest.approx(dict(expected))


@pytest.mark.parametrize("showing", range(1, 11))
def test_the_dealer_plays_as_gymnasiums(showing):
    """All that the dealer may draw, each order of cards by itself, with Gymnasium's own sums."""
    expected: Counter[tuple[int, bool]] = Counter()

    def draw(cards: list[int], chance: float) -> None:
        if gymnasiums.sum_hand(cards) >= 17:
            expected[gymnasiums.sum_hand(cards), gymnasiums.is_natural(cards)] += chance
            return
        for card in range(1, 11):
            draw([*cards, card], chance * (4 if card == 10 else 1) / 13)

    draw([showing], 1.0)
    assert {(total, natural): chance for chance, total, natural in dealer_ends(showing)} == pytest.approx(expected)


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_an_end_pays_is_what_gymnasium_pays(settings):
    game = Blackjack(**settings)
    dealers = {(17, False): [10, 7], (21, True): [10, 1], (21, False): [10, 5, 6], (22, False): [10, 6, 6]}
    for player in ([10, 1], [10, 10], [10, 7], [2, 2]):
        state = deal(*player, 10)
        ends = {(after.dealer, after.reward) for _, after, _, _ in game.outcomes(state, {"player_0": "stick"})}
        paid = {(total, reward_in_gymnasium(settings, player, cards)) for (total, _), cards in dealers.items()}
        assert paid <= ends
    long = deal(5, 6, 10)._replace(hand=Hand(21), natural=False)
    assert all(
        after.reward == reward_in_gymnasium(settings, [5, 6, 10], dealers[after.dealer, False])
        for _, after, _, _ in game.outcomes(long, {"player_0": "stick"})
        if after.dealer in (17, 22)
    )


@pytest.mark.parametrize(
    ("settings", "optimal", "uniform"),
    [({"sab": True}, -0.04311, -0.3942), ({}, -0.04656, -0.3959), ({"natural": True}, -0.02573, -0.3855)],
)
def test_the_values_of_a_deal(settings, optimal, uniform):
    game = Blackjack(**settings)
    yardstick = ValueIteration(game)
    starts = game.initial_outcomes()
    for horizon in (20, None):  # twenty decisions are the most that a deal can have
        assert sum(p * yardstick.value(s, horizon, "player_0") for p, s in starts) == pytest.approx(optimal, abs=1e-5)
    values = sum(p * blind_value(game, s, 20, "player_0", {}) for p, s in starts)
    assert values == pytest.approx(uniform, abs=5e-5)


def test_the_optimal_policy_is_the_books():
    """Figure 5.2 of Sutton and Barto: without a usable ace stick at 17, from 13 against 2 to 6, from 12 against 4 to 6;
    with one, stick at 18, and at 19 against a dealer's 9, 10 or ace."""
    yardstick = ValueIteration(Blackjack(sab=True))
    for showing in range(1, 11):
        sticks = {
            ace: [
                total
                for total in range(12, 22)
                if (found := yardstick.values(BlackjackState(Hand(total, ace), False, showing), 20, "player_0"))[
                    "stick"
                ]
                >= found["hit"]
            ]
            for ace in (False, True)
        }
        assert sticks[False][0] == (12 if showing in (4, 5, 6) else 13 if showing in (2, 3) else 17)
        assert sticks[True][0] == (19 if showing in (9, 10, 1) else 18)


def test_ends_are_told():
    game, state = Blackjack(), deal(10, 6, 10)
    ends = {after.dealer: after for _, after, _, _ in game.outcomes(state, {"player_0": "stick"})}
    assert game.observe(ends[17], "player_0").endswith("The dealer has 17: you lost.")
    assert game.observe(ends[26], "player_0").endswith("The dealer has 26 and went over 21: you won.")
    assert game.what_happened(state, {"player_0": "stick"}, ends[26], "player_0") == "won against the dealer's 26"
    hits = {after.hand.total: after for _, after, _, _ in game.outcomes(state, {"player_0": "hit"})}
    assert game.what_happened(state, {"player_0": "hit"}, hits[19], "player_0") == "has 19 now"
    assert game.what_happened(state, {"player_0": "hit"}, hits[24], "player_0") == "went over 21"
    assert game.observe(hits[24], "player_0").endswith("You went over 21 and lost.")
    assert game.succeeded(ends[26], "player_0")
    assert not game.succeeded(hits[24], "player_0")
    assert game.transition(hits[24], {"player_0": "hit"}, np.random.default_rng(0))[1] == {"player_0": 0.0}
