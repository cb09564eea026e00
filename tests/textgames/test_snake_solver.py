"""Snake solved: the search against exact values, its simulation against the rules, and the guess by enumeration."""

from collections import Counter
from functools import cache
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest

from tests.textgames.test_snake_rules import state_of
from textgames.scenarios import SCENARIOS
from textgames.snake import Snake, SnakeState
from textgames.snake.rules import ACTIONS
from textgames.snake.simulation import NO_TARGET, Boards, Simulation
from textgames.snake.solver import SnakeSearch, greedy_action
from textgames.snake.value import COEFFICIENTS, HORIZON, SnakeValue, distance_table, tour_times
from textgames.yardsticks import HeuristicYardstick, find_yardstick

ME = "player_0"


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


ALONE, POISON = Snake(num_opponents=0), Snake(num_opponents=0, num_apples=1, num_bananas=1, apple_reward=-1)


@pytest.mark.parametrize(
    ("game", "snakes", "food", "actions"),
    [
        (ALONE, [[(5, 5)]], {"apples": [(3, 3), (7, 7)]}, "up"),  # equally near: the first in the order of the actions
        (Snake(), [[(5, 1)], [(6, y) for y in range(9, 0, -1)]], {"apples": [(7, 1)]}, "down"),  # around the body
        (ALONE, [[(0, 0), (1, 0), (1, 1), (0, 1)]], {}, "up down left right"),  # boxed in
        (POISON, [[(5, 5)]], {"apples": [(6, 5)], "bananas": [(7, 5)]}, "up"),
        (POISON, [[(0, 0), (0, 1), (1, 1), (2, 1)]], {"apples": [(1, 0)]}, "right"),  # poison is better than death
    ],
)
def test_the_greedy_player_goes_to_its_nearest_food_and_lives(game, snakes, food, actions):
    assert greedy_action(state_of(game, *snakes, **food), "player_0", game) in actions.split()


def lane_state(boards: Boards, lane: int, game: Snake) -> SnakeState:
    """One of the simulated boards as a state of the rules."""
    simulation = boards.simulation
    cell_of = {int(walled): cell for cell, walled in enumerate(simulation.inner)}
    part = slice(lane * simulation.num_cells, (lane + 1) * simulation.num_cells)
    snakes = []
    for row in boards.rows:
        leaves, moves = boards.leaves[row][part], boards.tail_moves[row][lane]
        walled = [cell for cell in np.flatnonzero(leaves > moves) if not simulation.wall[cell]]
        ordered = sorted(walled, key=lambda cell: -leaves[cell])
        snakes.append(tuple(cell_of[int(cell)] for cell in ordered) if boards.alive[row][lane] else ())
    pieces = boards.food[part]
    ends = np.cumsum([1, game.num_apples, game.num_bananas, game.num_fires])
    kinds = [
        tuple(cell_of[int(cell)] for cell in np.flatnonzero((pieces >= ends[i]) & (pieces < ends[i + 1])))
        for i in range(3)
    ]
    return SnakeState(tuple(snakes), kinds[0], kinds[1], kinds[2])


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_players": 2, "num_opponents": 1, "num_apples": 12, "width": 7, "height": 6},
        {"num_apples": 3, "apple_reward": -1.0, "num_bananas": 3, "num_fires": 2, "width": 5, "height": 7},
    ],
    ids=["default", "crowded", "poison"],
)
def test_simulated_rounds_follow_the_rules(options, monkeypatch):
    game = Snake(**options)
    # the same rules with every snake controlled, to repeat what the simulated snakes did
    judge = Snake(**(options | {"num_players": game.num_snakes, "num_opponents": 0}))
    seen: dict[str, Any] = {}
    deaths = Boards._deaths

    def watch(self: Boards, row: int, targets: list[Any]) -> Any:
        seen["targets"] = targets
        return deaths(self, row, targets)

    monkeypatch.setattr(Boards, "_deaths", watch)
    compared = 0
    for seed in range(6):
        start = game.initial_state(rng(seed))
        boards = Boards(Simulation(game), start, 0, np.full((4, 1), NO_TARGET), 5)
        for t in range(15):
            lanes = [lane for lane in range(20) if boards.alive[0][lane]]
            before = {lane: lane_state(boards, lane, game) for lane in lanes}
            heads, returns = [row.copy() for row in boards.heads], boards.returns.copy()
            boards.play_round(None, rng(seed * 100 + t), stratified=t == 0)
            for lane in lanes:
                moves = [int(seen["targets"][row][lane] - heads[row][lane]) for row in boards.rows]
                names = [ACTIONS[list(boards.simulation.offsets).index(move)] for move in moves]
                joint_action = dict(zip(judge.players, names, strict=True))
                expected, rewards, _ = judge.transition(before[lane], joint_action, rng())
                after = lane_state(boards, lane, game)
                # once the measured snake is dead, its board isn't kept up
                if expected.snakes[0]:
                    assert after.snakes == expected.snakes
                    check_food(before[lane], after, expected)
                assert bool(after.snakes[0]) == bool(expected.snakes[0])
                assert boards.returns[lane] - returns[lane] == pytest.approx(rewards["player_0"])
                compared += 1
    assert compared > 500


def check_food(before: SnakeState, after: SnakeState, expected: SnakeState) -> None:
    """What wasn't eaten stays, and what was reappears on an empty cell (the rules' own draw is another one)."""
    heads = {snake[0] for snake in after.snakes if snake}
    bodies = {cell for snake in after.snakes for cell in snake}
    everything: list[int] = []
    for was, now, wanted in zip(before[1:], after[1:], expected[1:], strict=True):
        new = set(now)
        assert set(was) - heads <= new
        assert len(new) == len(wanted)
        assert not new & bodies
        everything += new
    assert len(everything) == len(set(everything))


def exact_values(game: Snake, state: SnakeState, steps: int) -> dict[str, float]:
    """The optimal return of every action, by enumeration of everything that can happen."""

    @cache
    def value(at: SnakeState, left: int) -> float:
        return max(of_action(at, action, left) for action in ACTIONS) if left and at.snakes[0] else 0.0

    def of_action(at: SnakeState, action: str, left: int) -> float:
        listed = game.outcomes(at, {"player_0": action})
        return sum(p * (rewards["player_0"] + value(after, left - 1)) for p, after, rewards, _ in listed)

    return {action: of_action(state, action, steps) for action in ACTIONS}


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"width": 4, "height": 4, "num_opponents": 0, "num_apples": 1}, 5),
        ({"width": 4, "height": 3, "num_opponents": 1, "num_apples": 1, "apple_reward": -1.0}, 3),
    ],
    ids=["alone", "poison"],
)
def test_search_is_nearly_optimal_where_the_optimum_can_be_computed(options, steps):
    game = Snake(**options)
    search = SnakeSearch(game)
    regrets = []
    for seed in range(8):
        state = game.initial_state(rng(seed))
        for _ in range(seed % 3):
            state, _, over = game.transition(state, {"player_0": greedy_action(state, "player_0", game)}, rng(seed))
            if over:
                break
        if not state.snakes[0]:
            continue
        exact = exact_values(game, state, steps)
        regrets.append(max(exact.values()) - exact[search.choose(state, "player_0", steps, rng(seed))])
    assert len(regrets) >= 6
    assert min(regrets) >= -1e-9
    assert np.mean(regrets) < 0.02


@pytest.mark.parametrize(
    "options", [{"num_players": 3, "num_opponents": 6}, {"width": 3, "height": 3, "num_apples": 7}]
)
def test_crowds_and_full_boards_are_searched_by_every_player(options):
    game = Snake(**options)
    for player in game.players:
        values = SnakeSearch(game, boards=32, horizon=9).action_values(game.initial_state(rng(1)), player, None, rng(2))
        assert all(np.isfinite(value) for value in values.values())


def test_certain_death_has_its_exact_value():
    game, boxed = Snake(num_apples=0, death_reward=-2.5, step_reward=-0.5), [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert set(SnakeSearch(game).action_values(state_of(game, boxed, []), ME, 6, rng()).values()) == {-3.0}


def test_what_the_search_cannot_answer_is_refused():
    with pytest.raises(ValueError, match="stages must be at least 1, got -1"):
        SnakeSearch(Snake(), stages=-1)
    game = Snake(num_players=2)
    with pytest.raises(ValueError, match="steps_left must be at least 1"):
        SnakeSearch(game).choose(game.initial_state(rng()), "player_0", 0, rng())
    for choose in (greedy_action, lambda state, player, game: SnakeSearch(game).choose(state, player, 5, rng())):
        with pytest.raises(ValueError, match="player_0 is dead"):
            choose(state_of(game, [], [(3, 3)], []), "player_0", game)


def told(game, state, action):
    """``{(state, reward, over): probability}``."""
    found = Counter()
    for chance, after, rewards, over in game.outcomes(state, {ME: action}):
        found[after, rewards[ME], over] += chance
    assert sum(found.values()) == pytest.approx(1)
    return found


def test_food_without_an_empty_cell_waits_and_apples_come_first():
    game = Snake(width=2, height=2, num_opponents=0, num_apples=1, num_bananas=1)
    full = SnakeState(((1, 0, 2),), (3,), (), ())
    assert told(game, full, "up") == {(SnakeState(((3, 1, 0, 2),), (), (), ()), 1.0, False): pytest.approx(1)}
    one = SnakeState(((0, 2),), (1,), (), ())  # the banana is missing since before, and eating leaves one cell
    assert told(game, one, "right") == {(SnakeState(((1, 0, 2),), (3,), (), ()), 1.0, False): pytest.approx(1)}


def test_too_many_outcomes_are_refused():
    game = Snake(num_opponents=2)
    assert not game.has_outcomes
    with pytest.raises(NotImplementedError, match="too many outcomes"):
        game.outcomes(game.initial_state(rng()), {ME: "up"})
    assert find_yardstick(game) is None
    with pytest.raises(ValueError, match="needs one of the actions up, down, left, right"):
        Snake().outcomes(Snake().initial_state(rng()), {ME: "north"})
    for settings in ({"num_players": 2}, {"num_opponents": 3}, {"apple_reward": -1.0}):
        with pytest.raises(ValueError, match=r"for one player|too many outcomes|no food"):
            SnakeValue(Snake(**settings))


@pytest.mark.parametrize("pieces", [1, 3, 7])
def test_tours_are_the_shortest_ones(pieces):
    draws, distances = np.random.default_rng(pieces), distance_table(6, 5)
    heads = draws.integers(30, size=20)
    food = np.array([draws.permutation(30)[:pieces] for _ in heads])
    times = tour_times(heads, food, distances)
    assert times.shape == (20, min(pieces, 5))
    for head, cells, row in zip(heads, food, times, strict=True):
        near = sorted(cells, key=lambda cell: distances[head, cell])[:5]
        for count, time in enumerate(row, start=1):
            tours = ((head, *tour) for tour in permutations(near, count))
            assert time == min(sum(distances[a, b] for a, b in pairwise(tour)) for tour in tours)


@pytest.mark.parametrize(
    ("game", "episodes"),
    [(Snake(width=4, height=3, num_apples=2, num_fires=1), 60), (SCENARIOS["snake-poison"].game(), 3)],
    ids=["tiny board", "snake-poison"],
)
def test_what_is_expected_is_the_mean_over_all_outcomes(game, episodes):
    """The short way to the moments against the enumeration that it shortens."""
    several, value = 0, SnakeValue(game)
    for seed in range(episodes):
        draws = rng(seed)
        state, over, left = game.initial_state(draws), False, 10
        while not over and left:
            action = ACTIONS[int(draws.integers(4))]
            outcomes = game.outcomes(state, {ME: action})
            if len(outcomes) <= 3000:
                several += len(outcomes) > 1
                listed = HeuristicYardstick.moments(value, state, action, left, ME)
                assert value.moments(state, action, left, ME) == pytest.approx(listed, abs=1e-9)
                assert value.values(state, left, ME)[action] == pytest.approx(listed.mean)
            state, _, over = game.transition(state, {ME: action}, draws)
            left -= 1
    assert several > 10
    many = SnakeState(((0,), (3,)), (1, 2, 4, 13, 50), (), ())  # several pieces may return at once
    assert SnakeValue(Snake(num_opponents=1)).moments(many, "right", 8, ME).variance > 0


def test_the_guess_by_hand():
    """One apple three moves away and four rounds left: the tour of one piece has a round to spare."""
    game = Snake(width=4, height=1, num_opponents=0, num_apples=1, apple_reward=2.0)
    c, d, a, b, *_ = COEFFICIENTS[3]
    state, value = SnakeState(((0,),), (3,), (), ()), SnakeValue(game)
    assert value.value(state, 4, ME) == pytest.approx(2 * (c + 4 * d + a + b))
    assert value.value(state, 2, ME) == pytest.approx(2 * (c + 2 * d))
    assert value.value(state, 0, ME) == 0
    assert value.value(state, None, ME) == value.value(state, HORIZON, ME) == value.value(state, 99, ME)
    assert not value.exact
