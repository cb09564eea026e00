"""Value iteration and minimax against plain recursion, on random games and on Frozen Lake's own solver."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from textgames.frozen_lake import FrozenLake
from textgames.snake import Snake
from textgames.solving.blind import blind_value
from textgames.solving.minimax import Minimax
from textgames.solving.value_iteration import ValueIteration
from textgames.tsmg import TSMG

ONE, TWO = ("player_0",), ("player_0", "player_1")


class RandomGame(TSMG[int]):
    """Twelve states with random chances, rewards, ends, turns and numbers of actions; zero-sum for two players."""

    actions = ("a", "b", "c")

    def __init__(self, *, players: tuple[str, ...], seed: int, states: int = 12, acyclic: bool = False) -> None:
        self.players = players
        rng = np.random.default_rng(seed)
        self.table = {
            (state, action): [
                (float(chance), int(rng.integers(state + 1 if acyclic else 0, states + 1)), float(rng.normal()))
                for chance in rng.dirichlet([1.0, 1.0, 1.0])
            ]
            for state in range(states)
            for action in self.actions
        }
        self.turns = [players[int(rng.integers(len(players)))] for _ in range(states)]
        self.options = [self.actions[: int(rng.integers(1, 4))] for _ in range(states)]
        self.end = states

    def initial_state(self, rng: np.random.Generator) -> int:
        return 0

    def to_move(self, state: int) -> tuple[str, ...]:
        return (self.turns[state],)

    def legal_actions(self, state: int, player: str) -> tuple[str, ...]:
        return self.options[state]

    def transition(
        self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[int, dict[str, float], bool]:
        raise AssertionError("a game that tells its outcomes is solved from them")

    def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[tuple[float, int, dict[str, float], bool]]:
        return [
            (chance, after, dict(zip(self.players, (reward, -reward), strict=False)), after == self.end)
            for chance, after, reward in self.table[state, joint_action[self.turns[state]]]
        ]

    def observe(self, state: int, player: str) -> str:
        return str(state)

    def instructions(self, player: str) -> str:
        return "a b c"


def recursion(game: TSMG[Any], state: Any, steps: int, uniform: bool = False) -> float:
    """The first player's value, by the definition and nothing else."""
    if steps == 0:
        return 0.0
    (mover,) = game.to_move(state)
    values = [
        sum(
            chance * (rewards["player_0"] + (0.0 if over else recursion(game, after, steps - 1, uniform)))
            for chance, after, rewards, over in game.outcomes(state, {mover: action})
        )
        for action in game.legal_actions(state, mover)
    ]
    if uniform:
        return sum(values) / len(values)
    return max(values) if mover == "player_0" else min(values)


@pytest.mark.parametrize("players", [ONE, TWO])
@pytest.mark.parametrize("seed", range(4))
def test_values_are_those_of_plain_recursion(players, seed):
    game = RandomGame(players=players, seed=seed)
    solver = ValueIteration(game) if players == ONE else Minimax(game)
    for state in range(0, 12, 4):
        for steps in (3, 1, 4, 0):
            expected = recursion(game, state, steps)
            assert solver.value(state, steps, "player_0") == pytest.approx(expected, abs=1e-12)
            assert solver.value(state, steps, players[-1]) == pytest.approx(
                expected if players == ONE else -expected, abs=1e-12
            )
            if players == ONE:
                uniform = recursion(game, state, steps, uniform=True)
                assert blind_value(game, state, steps, "player_0", {}) == pytest.approx(uniform, abs=1e-12)
            if steps:
                (mover,) = game.to_move(state)
                values = solver.values(state, steps, mover)
                assert tuple(values) == game.legal_actions(state, mover)
                assert max(values.values()) == pytest.approx(solver.value(state, steps, mover), abs=1e-12)


@pytest.mark.parametrize("players", [ONE, TWO])
def test_a_game_that_ends_by_itself_needs_no_limit(players):
    game = RandomGame(players=players, seed=3, acyclic=True)
    solver = ValueIteration(game) if players == ONE else Minimax(game)
    assert solver.value(4, None, "player_0") == pytest.approx(recursion(game, 4, 12), abs=1e-12)
    if players == ONE:
        uniform = recursion(game, 4, 12, uniform=True)
        assert blind_value(game, 4, None, "player_0", {}) == pytest.approx(uniform, abs=1e-12)
    assert solver.value(4, 1000, "player_0") == pytest.approx(recursion(game, 4, 12), abs=1e-12)
    assert solver.value(4, 2, "player_0") == pytest.approx(recursion(game, 4, 2), abs=1e-12)


def test_delay_that_never_pays_settles_and_delay_that_pays_is_refused(monkeypatch):
    lake = FrozenLake(desc=("SFFG",), is_slippery=True)
    start = lake.initial_state(np.random.default_rng(0))
    assert ValueIteration(lake).value(start, None, "player_0") == pytest.approx(1.0, abs=1e-9)

    class Mint(RandomGame):
        def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[Any]:
            return [(1.0, state, {"player_0": 1.0}, False)]

    monkeypatch.setattr("textgames.solving.backward_induction._MOST_ROUNDS", 1000)
    assert ValueIteration(Mint(players=ONE, seed=0)).value(0, 50, "player_0") == 50
    with pytest.raises(ValueError, match="give it a limit"):
        ValueIteration(Mint(players=ONE, seed=0)).value(0, None, "player_0")


class Countdown(TSMG[int]):
    """Take one or two of some matches in turns; who takes the last one wins. It has no outcomes."""

    players = TWO
    actions = ("one", "two")
    chancy = False

    def initial_state(self, rng: np.random.Generator) -> int:
        return 1000

    def to_move(self, state: int) -> tuple[str, ...]:
        return (TWO[state % 2],)  # the lowest bit says whose turn it is

    def legal_actions(self, state: int, player: str) -> tuple[str, ...]:
        return self.actions if state // 2 > 1 else ("one",)

    def transition(
        self, state: int, joint_action: Mapping[str, str], rng: np.random.Generator
    ) -> tuple[int, dict[str, float], bool]:
        (mover,) = self.to_move(state)
        left = state // 2 - 1 - self.actions.index(joint_action[mover])
        if self.chancy:
            rng.random()
        won = 1.0 if left == 0 else 0.0
        return 2 * left + 1 - state % 2, {player: won if player == mover else -won for player in TWO}, left == 0

    def observe(self, state: int, player: str) -> str:
        return str(state)

    def instructions(self, player: str) -> str:
        return "one two"


def test_minimax_of_a_long_game_without_chance_asks_its_transitions():
    solver = Minimax(Countdown())
    for matches in (300, 301, 302, 7, 6):  # a multiple of three is lost, whoever is to move
        for mover in (0, 1):
            won = -1.0 if matches % 3 == 0 else 1.0
            state = 2 * matches + mover
            assert solver.value(state, None, TWO[mover]) == won == -solver.value(state, None, TWO[1 - mover])
    assert solver.values(2 * 8, None, "player_0") == {"one": -1.0, "two": 1.0}
    assert solver.values(2 * 8, 2, "player_0") == {"one": 0.0, "two": 0.0}  # nobody wins in two rounds


def test_states_that_are_worth_the_same_are_solved_once():
    class Twice(RandomGame):
        """The random game with every state there twice, ``s`` and ``s + 100``; rounds change between the two."""

        def to_move(self, state: int) -> tuple[str, ...]:
            return super().to_move(state % 100)

        def legal_actions(self, state: int, player: str) -> tuple[str, ...]:
            return super().legal_actions(state % 100, player)

        def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[Any]:
            return [
                (chance, after if after == self.end or state >= 100 else after + 100, rewards, over)
                for chance, after, rewards, over in super().outcomes(state % 100, joint_action)
            ]

    game = Twice(players=ONE, seed=5)
    plain, merged = ValueIteration(game), ValueIteration(game, canonical=lambda state: state % 100)
    for state in (0, 3, 107):
        expected = plain.values(state, 6, "player_0")
        assert merged.values(state, 6, "player_0") == pytest.approx(expected, abs=1e-12)
        assert merged.value(state, 6, "player_0") == pytest.approx(max(expected.values()), abs=1e-12)
    assert len(plain._find(0, 6).space.numbers) > 1.5 * len(merged._find(0, 6).space.numbers)


def test_the_states_that_are_kept_are_bounded():
    game = FrozenLake()
    solver = ValueIteration(game, max_states=40)
    for seed in range(20):
        solver.value(game.initial_state(np.random.default_rng(seed)), 8, "player_0")
        assert len(solver._solved) <= 40
    with pytest.raises(ValueError, match="more than 5 states can be reached within 8 rounds"):
        ValueIteration(game, max_states=5).value(game.initial_state(np.random.default_rng(0)), 8, "player_0")


def test_games_that_cannot_be_solved_are_refused():
    with pytest.raises(ValueError, match="value iteration is for one player, RandomGame has 2"):
        ValueIteration(RandomGame(players=TWO, seed=0))
    with pytest.raises(ValueError, match=r"needs Snake.outcomes"):
        ValueIteration(Snake(num_opponents=4))  # too many outcomes to list
    with pytest.raises(ValueError, match="minimax is for two players, FrozenLake has 1"):
        Minimax(FrozenLake())
    duel = Snake(num_players=2, num_opponents=0)
    with pytest.raises(ValueError, match="player_0 and player_1 moves"):
        Minimax(duel).value(duel.initial_state(np.random.default_rng(0)), 3, "player_0")

    class Chancy(Countdown):
        chancy = True

    with pytest.raises(ValueError, match="Chancy draws from its generator"):
        Minimax(Chancy()).value(20, None, "player_0")

    class Shared(RandomGame):
        both_get = 1.0

        def outcomes(self, state: int, joint_action: Mapping[str, str]) -> list[Any]:
            return [(1.0, state, dict.fromkeys(TWO, self.both_get), True)]

    class SharedLoss(Shared):
        both_get = -1.0

    for shared in (Shared, SharedLoss):
        with pytest.raises(ValueError, match="rewards sum to 0"):
            Minimax(shared(players=TWO, seed=0)).value(0, 2, "player_0")


def test_questions_that_make_no_sense_are_refused():
    game = RandomGame(players=TWO, seed=0)
    solver = Minimax(game)
    (mover,) = game.to_move(0)
    (other,) = set(TWO) - {mover}
    with pytest.raises(ValueError, match=f"{mover} is to move"):
        solver.values(0, 3, other)
    with pytest.raises(ValueError, match="steps_left must be at least 1, or None for no limit, got 0"):
        solver.values(0, 0, mover)
    with pytest.raises(ValueError, match="got -1"):
        solver.value(0, -1, mover)
    with pytest.raises(ValueError, match="the game's players are player_0, player_1, got 'me'"):
        solver.value(0, 1, "me")
