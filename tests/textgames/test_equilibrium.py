"""Poker and Liar's Dice by hand; values, best responses and equilibria against brute force and known values."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.textgames.own_game import OwnGame
from textgames.snake import Snake
from textgames.solving.equilibrium import (
    action_values,
    best_response,
    expected_values,
    exploitability,
    nash_conv,
    solve,
    uniform_policy,
)
from textgames.solving.game_tree import GameTree, expand
from textgames.strategy.kuhn_poker import KuhnPoker
from textgames.strategy.leduc_poker import LeducPoker
from textgames.strategy.liars_dice import LiarsDice, LiarsDiceState
from textgames.strategy.poker import Hand

JACK, QUEEN, KING = range(3)


@pytest.mark.parametrize(
    ("game", "dealt", "actions", "paid"),
    [
        (KuhnPoker(), Hand((KING, QUEEN)), "check check", 1),
        (KuhnPoker(), Hand((JACK, QUEEN)), "bet fold", 1),
        (KuhnPoker(), Hand((JACK, QUEEN)), "bet call", -2),
        (KuhnPoker(), Hand((KING, JACK)), "check bet fold", -1),
        (LeducPoker(), Hand((0, 5)), "check bet raise fold", 3),
        (LiarsDice(), LiarsDiceState(((3,), (4,))), "1x3 liar", 1),  # player_1 doubts what is true
        (LiarsDice(), LiarsDiceState(((3,), (4,))), "2x3 liar", -1),
        (LiarsDice(), LiarsDiceState(((3,), (6,))), "2x3 liar", 1),  # the six is wild
        (LiarsDice(), LiarsDiceState(((6,), (6,))), "1x2 2x5 liar", -1),  # and player_0 doubts here
    ],
)
def test_hands_pay_what_the_rules_say(game, dealt, actions, paid):
    state, over, total = dealt, False, 0.0
    for action in actions.split():
        assert not over
        state, rewards, over = game.transition(state, {game.to_move(state)[0]: action}, np.random.default_rng(0))
        total += rewards["player_0"]
    assert over
    assert total == paid == -rewards["player_1"]
    assert [game.succeeded(state, player) for player in game.players] == [paid > 0, paid < 0]


class Matrix(OwnGame):
    """A game of one simultaneous move."""

    players = ("player_0", "player_1")

    def __init__(self, first: Sequence[Sequence[float]], second: Sequence[Sequence[float]] | None = None) -> None:
        self.first = np.array(first, dtype=float)
        self.second = -self.first if second is None else np.array(second, dtype=float)
        self.actions = tuple("abcdef"[: len(first)])

    def initial_outcomes(self) -> Sequence[tuple[float, str]]:
        return [(1.0, 0)]

    def outcomes(self, state: str, joint_action: Mapping[str, str]) -> Any:
        cell = tuple(self.actions.index(joint_action[player]) for player in self.players)
        return [(1.0, "end", {"player_0": float(self.first[cell]), "player_1": float(self.second[cell])}, True)]


ROCK_PAPER_SCISSORS = Matrix([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
PRISONERS = Matrix([[3, 0], [5, 1]], [[3, 5], [0, 1]])


class Forgetful(KuhnPoker):
    """Kuhn poker in which a player doesn't read what was done."""

    def observe(self, state: Any, player: str) -> str:
        return f"You have the {state.cards[self.players.index(player)]}."


class Repeating(Matrix):
    """Goes on for ever, and nobody is told how often it was played."""

    def outcomes(self, state: str, joint_action: Mapping[str, str]) -> Any:
        return [(1.0, state, {"player_0": 1.0, "player_1": -1.0}, False)]


def brute_force_best(tree: GameTree, policy: Any, player: str) -> float:
    """The best of all pure strategies, tried one by one."""
    own = [each for each in tree.information_sets if each.player == player]
    values = []
    for choice in product(*[each.actions for each in own]):
        pure = {each.key: {action: 1.0} for each, action in zip(own, choice, strict=True)}
        values.append(expected_values(tree, {**policy, **pure})[player])
    return max(values)


def random_policy(tree: GameTree, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return {
        each.key: dict(zip(each.actions, rng.dirichlet(np.ones(len(each.actions))).tolist(), strict=True))
        for each in tree.information_sets
    }


@pytest.mark.parametrize("seed", range(2))
def test_best_responses_are_the_best_of_all_strategies_and_nash_conv_what_they_gain(seed):
    tree = expand(KuhnPoker())
    policy, gains = random_policy(tree, seed), []
    for player in tree.players:
        best = best_response(tree, policy, player)
        assert best.value == pytest.approx(brute_force_best(tree, policy, player))
        mine = {key: {action: 1.0} for key, action in best.actions.items()}
        assert expected_values(tree, {**policy, **mine})[player] == pytest.approx(best.value)
        gains.append(best.value)
    assert nash_conv(tree, policy) == pytest.approx(sum(gains))  # zero-sum: the values themselves cancel
    assert exploitability(tree, policy) == pytest.approx(sum(gains) / 2)


def test_simultaneous_moves():
    tree = expand(ROCK_PAPER_SCISSORS)
    assert len(tree.information_sets) == 2
    assert nash_conv(tree, uniform_policy(tree)) == pytest.approx(0)
    rock = {key: {"a": 1.0} for key in uniform_policy(tree)}
    assert nash_conv(tree, rock) == pytest.approx(2)
    assert best_response(tree, rock, "player_1").actions == {("player_1", "0"): "b"}
    assert nash_conv(expand(PRISONERS), uniform_policy(expand(PRISONERS))) == pytest.approx(1.5)


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


def test_kuhn_is_worth_an_eighteenth_to_the_second_player():
    tree = expand(KuhnPoker())
    solution = solve(tree, 1000)
    assert solution.exploitability < 2e-4
    assert solution.values["player_0"] == pytest.approx(-1 / 18, abs=2e-4)
    assert sum(solution.values.values()) == pytest.approx(0)
    # the known equilibria: a queen never bets first, a king always calls, and kings bet three times as often as jacks
    opening = {
        text.split("Your card is the ")[1].split(".")[0]: chances
        for (_, text), chances in solution.policy.items()
        if "Betting so far: none" in text
    }
    assert opening["queen"]["bet"] == pytest.approx(0, abs=0.01)
    assert opening["king"]["bet"] == pytest.approx(3 * opening["jack"]["bet"], abs=0.02)
    assert opening["jack"]["bet"] <= 1 / 3 + 0.01
    for each in tree.information_sets:  # where it mixes, actions are worth the same
        values = action_values(tree, solution.policy, each.key)
        played = [values[action] for action, chance in solution.policy[each.key].items() if chance > 0.05]
        assert max(values.values()) - min(played) < 0.02


def test_leduc_and_small_liars_dice_are_solved():
    leduc = solve(expand(LeducPoker()), 300)
    assert leduc.exploitability < 0.01
    assert leduc.values["player_0"] == pytest.approx(-0.0856, abs=0.01)  # the known value of the game
    dice = solve(expand(LiarsDice(num_sides=3)), 2000, target=0.001)
    assert dice.exploitability <= 0.001
    assert dice.iterations < 2000


def test_action_values_are_conditional_on_being_there():
    tree = expand(KuhnPoker())
    key = next(each.key for each in tree.information_sets if "king" in each.observation and "bet" in each.actions)
    values = action_values(tree, uniform_policy(tree), key)
    # a king that bets is called half the time: 1.5; one that checks meets a check (1) or a bet, which it calls half the
    # time against uniform play: 0.5 * 1 + 0.5 * (0.5 * -1 + 0.5 * 2)
    expected = {"check": 0.75, "bet": 1.5} if key[0] == "player_0" else {"check": 1.0, "bet": 1.5}
    assert values == pytest.approx(expected)
    with pytest.raises(ValueError, match="never has to move at the observation 'nothing'"):
        action_values(tree, uniform_policy(tree), ("player_0", "nothing"))
    assert len(expand(KuhnPoker(), horizon=1).information_sets) == 3
    assert np.all(expand(KuhnPoker(), horizon=1).payoffs == 0)


def test_what_cannot_be_solved_is_said():
    with pytest.raises(ValueError, match=r"player_\d of Forgetful reads the same text where its legal actions are"):
        expand(Forgetful())
    with pytest.raises(ValueError, match="don't have perfect recall"):
        expand(Repeating([[0, 0], [0, 0]]))
    with pytest.raises(ValueError, match="too large to be solved: it has more than 50 histories"):
        expand(LeducPoker(), max_histories=50)
    with pytest.raises(ValueError, match="Snake can't be expanded: Snake has no initial_outcomes"):
        expand(Snake(num_players=2, num_opponents=0))
    with pytest.raises(ValueError, match="zero-sum games of two players"):
        solve(expand(PRISONERS))


def test_a_policy_must_be_complete():
    tree = expand(KuhnPoker())
    policy = uniform_policy(tree)
    key = tree.information_sets[0].key
    with pytest.raises(ValueError, match="the policy says nothing for player_0 where it reads 'You are"):
        nash_conv(tree, {other: value for other, value in policy.items() if other != key})
    for wrong in ({"check": 0.5}, {"check": 1.5, "bet": -0.5}, {"check": 0.5, "bet": 0.5, "dance": 0.0}):
        with pytest.raises(ValueError, match="must give check, bet probabilities that sum to 1"):
            nash_conv(tree, {**policy, key: wrong})
