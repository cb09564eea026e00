"""The players of Snake: the search against exact values on small boards, its simulation against the rules."""

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest

from textgames.snake import Snake, SnakeState
from textgames.snake.rules import ACTIONS
from textgames.snake.simulation import NO_TARGET, Boards, Simulation
from textgames.snake.solver import SnakeSearch, greedy_action

XY = tuple[int, int]


def state_of(
    game: Snake, *snakes: list[XY], apples: list[XY] | None = None, bananas: list[XY] | None = None
) -> SnakeState:
    def cells(items: list[XY] | None) -> tuple[int, ...]:
        return tuple(y * game.width + x for x, y in items or [])

    return SnakeState(
        tuple(cells(snake) for snake in snakes), tuple(sorted(cells(apples))), tuple(sorted(cells(bananas))), ()
    )


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---------------------------------------------------------------- the greedy player


ALONE, POISON = Snake(num_opponents=0), Snake(num_opponents=0, num_apples=1, num_bananas=1, apple_reward=-1)


@pytest.mark.parametrize(
    ("game", "snakes", "food", "actions"),
    [
        (ALONE, [[(5, 5)]], {"apples": [(5, 2), (0, 0)]}, "down"),
        (ALONE, [[(5, 5)]], {"apples": [(3, 3), (7, 7)]}, "up"),  # equally near: the first in the order of the actions
        (ALONE, [[(5, 5)]], {"apples": [(3, 3)]}, "down"),
        (Snake(), [[(5, 1)], [(6, y) for y in range(9, 0, -1)]], {"apples": [(7, 1)]}, "down"),  # around the body
        (ALONE, [[(0, 9), (1, 9)]], {}, "down"),
        (ALONE, [[(0, 0), (1, 0), (1, 1), (0, 1)]], {}, "up down left right"),  # boxed in
        (POISON, [[(5, 5)]], {"apples": [(6, 5)], "bananas": [(7, 5)]}, "up"),
        (POISON, [[(0, 0), (0, 1), (1, 1), (2, 1)]], {"apples": [(1, 0)]}, "right"),  # poison is better than death
    ],
)
def test_the_greedy_player_goes_to_its_nearest_food_and_lives(game, snakes, food, actions):
    assert greedy_action(state_of(game, *snakes, **food), "player_0", game) in actions.split()


def test_dead_players_have_no_move():
    game = Snake(num_players=2)
    state = state_of(game, [], [(3, 3)], [])
    with pytest.raises(ValueError, match="player_0 is dead"):
        greedy_action(state, "player_0", game)
    with pytest.raises(ValueError, match="player_0 is dead"):
        SnakeSearch(game).choose(state, "player_0", 5, rng())


# ---------------------------------------------------------------- the simulation against the rules


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


def test_first_moves_of_simulated_opponents_have_exact_proportions():
    game = Snake(num_apples=0)
    boards = Boards(Simulation(game), state_of(game, [(0, 0)], [(5, 5), (5, 4)]), 0, np.full((1, 1), NO_TARGET), 30)
    boards.play_round(None, rng(), stratified=True)
    _, counts = np.unique(boards.heads[1], return_counts=True)
    assert list(counts) == [10, 10, 10]


def test_routes_are_followed_to_their_food_in_order_past_other_food():
    game = Snake(num_opponents=0, num_apples=3)
    start = state_of(game, [(5, 5)], apples=[(2, 7), (5, 7), (5, 9)])
    simulation = Simulation(game)
    cells = [55, 65, 75, 74, 73, 72]
    route = simulation.inner[[[75, 72]]]
    boards = Boards(simulation, start, 0, route, 1)
    heads = [int(boards.heads[0][0])]
    for t in range(5):
        boards.play_round(None, rng(t), stratified=False)
        heads.append(int(boards.heads[0][0]))
    assert heads == [int(simulation.inner[cell]) for cell in cells]
    assert boards.returns[0] == 2.0


# ---------------------------------------------------------------- the search against exact values


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
        ({"width": 3, "height": 3, "num_opponents": 1, "num_apples": 1}, 3),
        ({"width": 4, "height": 3, "num_opponents": 1, "num_apples": 1, "apple_reward": -1.0}, 3),
        ({"width": 5, "height": 2, "num_opponents": 1, "num_apples": 1, "death_reward": -3.0}, 3),
    ],
    ids=["alone", "narrow", "poison", "deadly"],
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


def test_values_of_the_last_round_are_exact():
    # the opponent may enter the apple's cell with probability 1/4
    game = Snake(num_apples=1)
    values = SnakeSearch(game).action_values(state_of(game, [(4, 5)], [(6, 5)], apples=[(5, 5)]), "player_0", 1, rng())
    assert values == pytest.approx({"up": 0.0, "down": 0.0, "left": 0.0, "right": 0.75 - 0.25})


def test_certain_death_has_its_exact_value_and_no_other_action_is_worse():
    game = Snake(num_apples=0, death_reward=-2.5, step_reward=-0.5)
    values = SnakeSearch(game).action_values(state_of(game, [(0, 0), (0, 1)], [(9, 9)]), "player_0", 6, rng())
    assert values["left"] == values["down"] == values["up"] == -3.0
    assert values["right"] == pytest.approx(-3.0)
    boxed = [(0, 0), (1, 0), (1, 1), (0, 1)]
    values = SnakeSearch(game).action_values(state_of(game, boxed, []), "player_0", 6, rng())
    assert set(values.values()) == {-3.0}


def test_search_does_not_chase_food_into_a_likely_collision():
    # the apple is worth less than the risk: entering its cell dies with probability 1/3 and forfeits nothing else
    game = Snake(num_apples=1, apple_reward=0.5, death_reward=-10)
    state = state_of(game, [(4, 5)], [(6, 5), (7, 5)], apples=[(5, 5)])
    assert SnakeSearch(game).choose(state, "player_0", 1, rng()) != "right"
    generous = Snake(num_apples=1, apple_reward=50, death_reward=-10)
    assert SnakeSearch(generous).choose(state, "player_0", 1, rng()) == "right"


def test_another_player_may_come_for_the_same_food():
    # in half of the boards it is careless, and mostly enters the apple's cell
    game = Snake(num_players=2, num_opponents=0, num_apples=1)
    state = state_of(game, [(4, 5)], [(6, 5)], apples=[(5, 5)])
    value = SnakeSearch(game).action_values(state, "player_0", 1, rng())["right"]
    assert -0.3 < value < 0.5
    dear = Snake(num_players=2, num_opponents=0, num_apples=1, death_reward=-5)
    assert SnakeSearch(dear).choose(state, "player_0", 1, rng()) != "right"


@pytest.mark.parametrize(
    ("game", "food", "steps", "actions"),
    [
        (ALONE, {"apples": [(5, 2), (9, 5), (8, 5), (8, 6)]}, 6, "right up"),  # the richer side
        (ALONE, {"apples": [(2, 5), (8, 5), (9, 5), (9, 6)]}, 6, "right"),
        (POISON, {"apples": [(6, 5)], "bananas": [(7, 5)]}, 6, "up down"),
        (POISON, {"apples": [(6, 5)], "bananas": [(7, 5)]}, 2, "up down left"),
    ],
)
def test_search_looks_past_the_next_food(game, food, steps, actions):
    assert SnakeSearch(game).choose(state_of(game, [(5, 5)], **food), "player_0", steps, rng()) in actions.split()


# ---------------------------------------------------------------- the search as a function


def test_equal_generators_give_equal_values_and_nothing_is_changed():
    game = Snake(num_bananas=1)
    search = SnakeSearch(game)
    state = game.initial_state(rng(3))
    kept = copy.deepcopy(state)
    first = search.action_values(state, "player_0", 8, rng(5))
    assert search.action_values(state, "player_0", 20, rng(6)) != first
    assert search.action_values(state, "player_0", 8, rng(5)) == first
    assert SnakeSearch(game).action_values(state, "player_0", 8, rng(5)) == first
    assert state == kept


@pytest.mark.parametrize(
    "options",
    [
        {"num_players": 2, "num_opponents": 0},
        {"num_players": 3, "num_opponents": 6},
        {"num_opponents": 0, "num_apples": 0},
        {"width": 1, "height": 9, "num_apples": 2},
        {"width": 3, "height": 3, "num_apples": 7},
        {"apple_reward": -1.0, "num_fires": 2},
        {"width": 30, "height": 8, "num_apples": 40},
    ],
    ids=["duel", "nine", "nothing", "corridor", "full", "all-harmful", "wide"],
)
@pytest.mark.parametrize("steps_left", [1, 7, None])
def test_every_configuration_is_played_by_every_player(options, steps_left):
    game = Snake(**options)
    search = SnakeSearch(game, boards=32, horizon=9)
    state = game.initial_state(rng(1))
    for player in game.players:
        values = search.action_values(state, player, steps_left, rng(2))
        assert tuple(values) == ACTIONS
        assert all(np.isfinite(value) for value in values.values())
    joint_action = {player: search.choose(state, player, steps_left, rng(2)) for player in game.players}
    after, _, _ = game.transition(state, joint_action, rng(4))
    assert len(after.snakes) == game.num_snakes


def test_actions_that_were_given_up_are_not_better_than_those_that_went_on(monkeypatch):
    game = Snake(num_opponents=0, num_apples=0)
    means = iter(({"up": 5.0, "down": 4.0, "left": 3.0, "right": 2.0}, {"up": -9.0, "down": -1.0}))

    def scripted(self: Simulation, state: Any, snake: int, first: Any, targets: Any, repeats: int, *_: Any) -> Any:
        stage = next(means)
        assert [ACTIONS[action] for action in first] == list(stage)
        return np.array(list(stage.values()))[:, None].repeat(repeats, axis=1)

    monkeypatch.setattr(Simulation, "play", scripted)
    values = SnakeSearch(game, boards=40).action_values(state_of(game, [(5, 5)]), "player_0", 5, rng())
    # 10 boards at 5 and 20 at -9; 10 at 4 and 20 at -1
    assert values["down"] == pytest.approx(2 / 3)
    assert values["up"] == values["left"] == values["right"] == pytest.approx(-13 / 3)


@pytest.mark.parametrize("budget", [{"boards": 0}, {"num_routes": 0}, {"stages": -1}, {"horizon": 0}])
def test_bad_budgets_are_refused(budget):
    ((name, value),) = budget.items()
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {value}"):
        SnakeSearch(Snake(), **budget)
    with pytest.raises(ValueError, match="steps_left must be at least 1"):
        SnakeSearch(Snake()).choose(Snake().initial_state(rng()), "player_0", 0, rng())
