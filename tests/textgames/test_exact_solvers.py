"""Value iteration and minimax against looking at everything, on random games, and what they refuse."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.textgames.own_game import OwnGame
from tests.textgames.test_every_scenario import searched
from textgames.frozen_lake import FrozenLake
from textgames.snake import Snake
from textgames.solving.blind import blind_value
from textgames.solving.minimax import Minimax
from textgames.solving.value_iteration import ValueIteration

ONE, TWO = ("player_0",), ("player_0", "player_1")


class RandomGame(OwnGame):
    """Twelve states with random chances, rewards, ends, turns and numbers of actions; zero-sum for two players."""

    actions = ("a", "b", "c")

    def __init__(self, *, players: tuple[str, ...], seed: int, acyclic: bool = False) -> None:
        self.players = players
        rng = np.random.default_rng(seed)
        self.table = {
            (state, action): [
                (float(chance), int(rng.integers(state + 1 if acyclic else 0, 13)), float(rng.normal()))
                for chance in rng.dirichlet([1.0, 1.0, 1.0])
            ]
            for state in range(12)
            for action in self.actions
        }
        self.turns = [players[int(rng.integers(len(players)))] for _ in range(12)]
        self.options = [self.actions[: int(rng.integers(1, 4))] for _ in range(12)]

    def to_move(self, state: int) -> tuple[str, ...]:
        return (self.turns[state],)

    def legal_actions(self, state: int, player: str) -> tuple[str, ...]:
        return self.options[state]

    def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[tuple[float, int, dict[str, float], bool]]:
        return [
            (chance, after, dict(zip(self.players, (reward, -reward), strict=False)), after == 12)
            for chance, after, reward in self.table[state, joint_action[self.turns[state]]]
        ]


@pytest.mark.parametrize("players", [ONE, TWO])
@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_looking_at_everything(players, seed):
    game = RandomGame(players=players, seed=seed)
    solver = ValueIteration(game) if players == ONE else Minimax(game)
    for state in range(0, 12, 4):
        (mover,) = game.to_move(state)
        for steps in (3, 1, 4):
            plain = searched(game, state, steps, mover)
            values = solver.values(state, steps, mover)
            assert values == pytest.approx({action: best for action, (best, _) in plain.items()}, abs=1e-12)
            for player in players:
                sign = 1 if player == mover else -1
                assert solver.value(state, steps, player) == pytest.approx(sign * max(values.values()), abs=1e-12)
            if players == ONE:
                uniform = np.mean([each for _, each in plain.values()])
                assert blind_value(game, state, steps, mover, {}) == pytest.approx(uniform, abs=1e-12)
        assert solver.value(state, 0, mover) == 0.0


@pytest.mark.parametrize("players", [ONE, TWO])
def test_a_game_that_ends_by_itself_needs_no_limit(players):
    game = RandomGame(players=players, seed=3, acyclic=True)
    solver = ValueIteration(game) if players == ONE else Minimax(game)
    (mover,) = game.to_move(4)
    plain = searched(game, 4, 12, mover)
    for steps in (None, 1000):
        assert solver.value(4, steps, mover) == pytest.approx(max(best for best, _ in plain.values()), abs=1e-12)
    if players == ONE:
        uniform = np.mean([each for _, each in plain.values()])
        assert blind_value(game, 4, None, mover, {}) == pytest.approx(uniform, abs=1e-12)


class Mint(RandomGame):
    """Every round pays everybody 1, and it goes on."""

    def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[Any]:
        return [(1.0, state, dict.fromkeys(self.players, 1.0), False)]


def test_delay_that_never_pays_settles_and_delay_that_pays_is_refused(monkeypatch):
    lake = FrozenLake(desc=("SFFG",), is_slippery=True)
    start = lake.initial_state(np.random.default_rng(0))
    assert ValueIteration(lake).value(start, None, "player_0") == pytest.approx(1.0, abs=1e-9)
    monkeypatch.setattr("textgames.solving.state_space._MOST_ROUNDS", 1000)
    assert ValueIteration(Mint(players=ONE, seed=0)).value(0, 50, "player_0") == 50
    with pytest.raises(ValueError, match="give it a limit"):
        ValueIteration(Mint(players=ONE, seed=0)).value(0, None, "player_0")


class Countdown(OwnGame):
    """Take one or two of some matches in turns; who takes the last one wins. It has no outcomes."""

    players = TWO
    actions = ("one", "two")
    chancy = False

    def to_move(self, state: int) -> tuple[str, ...]:
        return (TWO[state % 2],)  # the lowest bit says whose turn it is

    def legal_actions(self, state: int, player: str) -> tuple[str, ...]:
        return self.actions if state // 2 > 1 else ("one",)

    def transition(self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator) -> Any:
        (mover,) = self.to_move(state)
        left = state // 2 - 1 - self.actions.index(joint_action[mover])
        if self.chancy:
            rng.random()
        won = 1.0 if left == 0 else 0.0
        return 2 * left + 1 - state % 2, {player: won if player == mover else -won for player in TWO}, left == 0


class Chancy(Countdown):
    chancy = True


def test_minimax_of_a_long_game_without_chance_asks_its_transitions():
    solver = Minimax(Countdown())
    for matches, mover in ((300, 0), (301, 1), (302, 0), (7, 1), (6, 1)):
        won = -1.0 if matches % 3 == 0 else 1.0  # a multiple of three is lost, whoever is to move
        state = 2 * matches + mover
        assert solver.value(state, None, TWO[mover]) == won == -solver.value(state, None, TWO[1 - mover])
    assert solver.values(2 * 8, None, "player_0") == {"one": -1.0, "two": 1.0}
    assert solver.values(2 * 8, 2, "player_0") == {"one": 0.0, "two": 0.0}  # nobody wins in two rounds


def test_the_states_that_are_kept_are_bounded():
    game = FrozenLake()
    solver = ValueIteration(game, max_states=40)
    for seed in range(20):
        solver.value(game.initial_state(np.random.default_rng(seed)), 8, "player_0")
        assert len(solver._solved) <= 40
    with pytest.raises(ValueError, match="more than 5 states can be reached within 8 rounds"):
        ValueIteration(game, max_states=5).value(game.initial_state(np.random.default_rng(0)), 8, "player_0")


def test_games_and_questions_that_cannot_be_solved_are_refused():
    duel, two = Snake(num_players=2, num_opponents=0), RandomGame(players=TWO, seed=0)
    solver, board = Minimax(two), duel.initial_state(np.random.default_rng(0))
    (mover,) = two.to_move(0)
    (other,) = set(TWO) - {mover}
    for ask, message in (
        (lambda: ValueIteration(two), "value iteration is for one player, RandomGame has 2"),
        (lambda: ValueIteration(Snake(num_opponents=4)), "needs Snake.outcomes"),  # too many to list
        (lambda: Minimax(FrozenLake()), "minimax is for two players, FrozenLake has 1"),
        (lambda: Minimax(duel).value(board, 3, "player_0"), "player_0 and player_1 moves"),
        (lambda: Minimax(Chancy()).value(20, None, "player_0"), "Chancy draws from its generator"),
        (lambda: Minimax(Mint(players=TWO, seed=0)).value(0, 2, "player_0"), "rewards sum to 0"),
        (lambda: solver.values(0, 3, other), f"{mover} is to move"),
        (lambda: solver.values(0, 0, mover), "steps_left must be at least 1, or None for no limit, got 0"),
        (lambda: solver.value(0, -1, mover), "got -1"),
        (lambda: solver.value(0, 1, "me"), "the game's players are player_0, player_1, got 'me'"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
