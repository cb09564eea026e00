"""Kuhn poker, Leduc poker and Liar's Dice: hands worked by hand, and their trees beside OpenSpiel's."""

from typing import Any

import numpy as np
import pytest

from textgames.solving.equilibrium import nash_conv, uniform_policy
from textgames.solving.game_tree import expand
from textgames.strategy.kuhn_poker import KuhnPoker
from textgames.strategy.leduc_poker import DECK, LeducPoker
from textgames.strategy.liars_dice import Bid, LiarsDice, LiarsDiceState
from textgames.strategy.poker import Hand
from textgames.tsmg import TSMG

RNG = np.random.default_rng(0)
JACK, QUEEN, KING = range(3)


def play_hand(game: TSMG[Any], state: Any, *actions: str) -> tuple[Any, tuple[float, ...], bool]:
    """The state after these actions, what they paid each player in all, and whether the game is over."""
    sums, over = np.zeros(len(game.players)), False
    for action in actions:
        assert not over
        (player,) = game.to_move(state)
        state, rewards, over = game.transition(state, {player: action}, RNG)
        sums += [rewards[player] for player in game.players]
    return state, tuple(sums.tolist()), over


@pytest.mark.parametrize(
    ("cards", "actions", "paid"),
    [
        ((KING, QUEEN), ("check", "check"), (1, -1)),
        ((JACK, QUEEN), ("bet", "fold"), (1, -1)),
        ((JACK, QUEEN), ("bet", "call"), (-2, 2)),
        ((KING, JACK), ("check", "bet", "fold"), (-1, 1)),
        ((KING, JACK), ("check", "bet", "call"), (2, -2)),
    ],
)
def test_kuhn_hands(cards, actions, paid):
    state, sums, over = play_hand(KuhnPoker(), Hand(cards), *actions)
    assert over
    assert sums == paid
    assert [KuhnPoker().succeeded(state, player) for player in KuhnPoker.players] == [paid[0] > 0, paid[1] > 0]


def card(name: str) -> int:
    return DECK.index(name)


@pytest.mark.parametrize(
    ("cards", "table", "first", "second", "paid"),
    [
        (("jack of spades", "king of spades"), None, "bet fold", "", (1, -1)),
        (("jack of spades", "king of spades"), None, "check bet raise fold", "", (3, -3)),
        (("jack of spades", "king of spades"), "jack of hearts", "check check", "check check", (1, -1)),
        (("jack of spades", "king of spades"), "queen of hearts", "bet call", "check check", (-3, 3)),
        (("jack of spades", "king of spades"), "queen of hearts", "bet raise call", "bet raise call", (-13, 13)),
        (("king of hearts", "king of spades"), "queen of hearts", "bet raise call", "bet call", (0, 0)),
        (("king of hearts", "queen of spades"), "queen of hearts", "check check", "check bet fold", (-1, 1)),
    ],
)
def test_leduc_hands(cards, table, first, second, paid):
    game = LeducPoker()
    state, sums, over = play_hand(game, Hand((card(cards[0]), card(cards[1]))), *first.split())
    if table is not None:
        assert not over
        assert sums == (0, 0)
        assert state.table in set(range(6)) - set(state.cards)
        state, sums, over = play_hand(game, state._replace(table=card(table)), *second.split())
    assert over
    assert sums == paid


def test_leduc_allows_two_bets_a_round_and_folds_only_to_a_bet():
    game, start = LeducPoker(), Hand((0, 2))
    assert game.legal_actions(start, "player_0") == ("check", "bet")
    raised, *_ = play_hand(game, start, "bet")
    assert game.legal_actions(raised, "player_1") == ("fold", "call", "raise")
    capped, *_ = play_hand(game, raised, "raise")
    assert game.legal_actions(capped, "player_0") == ("fold", "call")
    with pytest.raises(ValueError, match="player_0 is to move and can play fold, call; got"):
        game.transition(capped, {"player_0": "raise"}, RNG)


def test_leduc_table_card_is_any_of_the_other_four():
    game, state = LeducPoker(), Hand((0, 3), (("check",),))
    outcomes = game.outcomes(state, {"player_1": "check"})
    assert [(chance, after.table) for chance, after, *_ in outcomes] == [(0.25, table) for table in (1, 2, 4, 5)]


@pytest.mark.parametrize(
    ("dice", "bids", "winner"),
    [
        ((3, 4), ("1x3",), 0),  # player_1 doubts what is true
        ((3, 4), ("2x3",), 1),
        ((3, 6), ("2x3",), 0),  # the six is wild
        ((6, 6), ("1x2", "2x5"), 1),  # and player_0 doubts here
        ((6, 1), ("1x2", "2x6"), 0),
    ],
)
def test_liars_dice_calls(dice, bids, winner):
    game, start = LiarsDice(), LiarsDiceState(((dice[0],), (dice[1],)))
    _, sums, over = play_hand(game, start, *bids, "liar")
    assert over
    assert sums == ((1, -1), (-1, 1))[winner]


def test_liars_dice_bids_go_up():
    game = LiarsDice(num_sides=3)
    start = LiarsDiceState(((1,), (2,)))
    assert game.legal_actions(start, "player_0") == ("1x1", "1x2", "1x3", "2x1", "2x2", "2x3")
    state, *_ = play_hand(game, start, "1x3")
    assert game.legal_actions(state, "player_1") == ("liar", "2x1", "2x2", "2x3")
    for wrong in ("1x3", "1x1", "3x1", None):
        with pytest.raises(ValueError, match="player_1 is to move and can play liar, 2x1, 2x2, 2x3"):
            game.transition(state, {} if wrong is None else {"player_1": wrong}, RNG)
    with pytest.raises(ValueError, match="can play 1x1"):
        game.transition(start, {"player_0": "liar"}, RNG)
    top, *_ = play_hand(game, state, "2x3")
    assert top.bids == (Bid(1, 3), Bid(2, 3))
    assert game.legal_actions(top, "player_0") == ("liar",)


@pytest.mark.parametrize(
    "game", [KuhnPoker(), LeducPoker(), LiarsDice(num_sides=4), LiarsDice(num_dice=2, num_sides=2)]
)
def test_nobody_reads_what_is_hidden(game):
    """Until the cards are shown, a player reads the same whatever the other one holds."""
    read: dict[tuple[Any, ...], set[str]] = {}
    for seed in range(300):
        rng = np.random.default_rng(seed)
        state, over = game.initial_state(rng), False
        public: tuple[Any, ...] = ()
        while not over:
            for place, player in enumerate(game.players):
                own = state.cards[place] if hasattr(state, "cards") else state.dice[place]
                table = getattr(state, "table", None)
                read.setdefault((player, own, table, public), set()).add(game.observe(state, player))
            (player,) = game.to_move(state)
            action = game.sample_action(state, player, rng)
            state, _, over = game.transition(state, {player: action}, rng)
            public = (*public, action)
    assert all(len(texts) == 1 for texts in read.values())


@pytest.mark.parametrize(
    ("game", "information_sets", "value"),
    [
        (KuhnPoker(), 12, 0.9167),
        (LeducPoker(), 936, 4.747),
        pytest.param(LiarsDice(), 24_576, 1.562, marks=pytest.mark.slow),
    ],
)
def test_trees_are_those_of_the_literature(game, information_sets, value):
    tree = expand(game)
    assert len(tree.information_sets) == information_sets
    assert nash_conv(tree, uniform_policy(tree)) == pytest.approx(value, abs=6e-4)
