"""Snake beside a slow, independent one, rare cases by hand, what is drawn by chance, and what players are told.

The slow Snake is written from the specification with sets of (x, y), (0, 0) at the bottom left, and draws no random
numbers: it says which moves an opponent may make and on which cells food may appear, and for every round of the fast
one there must be moves of the opponents that explain it. Snakes are written head first.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from textgames.snake import Snake, SnakeState, read_observation
from textgames.snake.reading import share_bodies

STEPS = {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}
KINDS = ("apples", "bananas", "fires")
XY = tuple[int, int]


@dataclass
class Board:
    width: int
    height: int
    snakes: list[list[XY]]
    food: dict[str, set[XY]]


@dataclass
class Round:
    snakes: list[list[XY]]
    rewards: list[float]
    food_left: dict[str, set[XY]]
    empty: set[XY]


def moved(head: XY, action: str) -> XY:
    return head[0] + STEPS[action][0], head[1] + STEPS[action][1]


def polite_moves(board: Board, i: int) -> list[str]:
    """The moves that a built-in opponent chooses from, each with the same probability."""
    body = board.snakes[i]

    def hits(action: str) -> bool:
        x, y = moved(body[0], action)
        return not (0 <= x < board.width and 0 <= y < board.height) or (x, y) in set(body)

    return [action for action in STEPS if not hits(action)] or list(STEPS)


def play_slowly(board: Board, actions: list[str], worth: dict[str, float], death: float, step: float) -> Round:
    """One round; ``actions[i]`` is ignored for a dead snake ``i``."""
    alive = [i for i, snake in enumerate(board.snakes) if snake]
    heads = {i: moved(board.snakes[i][0], actions[i]) for i in alive}
    everything = {cell for snake in board.snakes for cell in snake}
    dead = set()
    for i in alive:
        x, y = heads[i]
        out = x < 0 or y < 0 or x >= board.width or y >= board.height
        crash = heads[i] in everything
        meets = any(heads[j] == heads[i] for j in alive if j != i)
        if out or crash or meets:
            dead.add(i)
    rewards = [0.0] * len(board.snakes)
    snakes: list[list[XY]] = [[] for _ in board.snakes]
    food_left = {kind: set(cells) for kind, cells in board.food.items()}
    for i in alive:
        rewards[i] += step
        if i in dead:
            rewards[i] += death
            continue
        snakes[i] = [heads[i], *board.snakes[i]]
        eaten = [kind for kind in food_left if heads[i] in food_left[kind]]
        for kind in eaten:
            food_left[kind].remove(heads[i])
            rewards[i] += worth[kind]
        if not eaten:
            snakes[i].pop()
    taken = {cell for snake in snakes for cell in snake}.union(*food_left.values())
    empty = {(x, y) for x in range(board.width) for y in range(board.height)} - taken
    return Round(snakes, rewards, food_left, empty)


def as_board(state: SnakeState, game: Snake) -> Board:
    def xy(cells: tuple[int, ...]) -> list[XY]:
        return [(cell % game.width, cell // game.width) for cell in cells]

    food = {kind: set(xy(getattr(state, kind))) for kind in KINDS}
    return Board(game.width, game.height, [xy(snake) for snake in state.snakes], food)


def explains(result: Round, after: Board, counts: dict[str, int]) -> bool:
    """Whether the fast game's board after the round is the slow game's, up to where food reappeared."""
    if result.snakes != after.snakes:
        return False
    appeared: set[XY] = set()
    missing = 0
    for kind in KINDS:
        new = after.food[kind] - result.food_left[kind]
        if result.food_left[kind] - after.food[kind] or new & appeared:
            return False
        appeared |= new
        missing += counts[kind] - len(result.food_left[kind])
    return appeared <= result.empty and len(appeared) == min(missing, len(result.empty))


def check_reading_back(game: Snake, state: SnakeState, reader: int) -> None:
    """Require that a state is read back from its text: exactly from coordinates, from a grid but for bodies' order."""
    snakes, text = state.snakes, game.observe(state, game.players[reader])
    true = state._replace(snakes=(snakes[reader], *snakes[:reader], *snakes[reader + 1 :]))
    read = read_observation(text, game)
    assert ("\nYou: dead" in text) == (not snakes[reader])
    if game.text.coordinates:
        assert read == true
        return
    assert read[1:] == true[1:]
    assert [snake[:1] for snake in read.snakes] == [snake[:1] for snake in true.snakes]
    assert sorted(sum(read.snakes, ())) == sorted(sum(true.snakes, ()))
    for snake in as_board(read, game).snakes:
        assert all(abs(x - next_x) + abs(y - next_y) == 1 for (x, y), (next_x, next_y) in pairwise(snake))


def check_episode(game: Snake, seed: int, rounds: int) -> int:
    """Play randomly and compare every round; the number of rounds that were compared."""
    worth = {"apples": game.apple_reward, "bananas": game.banana_reward, "fires": game.fire_reward}
    counts = {"apples": game.num_apples, "bananas": game.num_bananas, "fires": game.num_fires}
    rng = np.random.default_rng(seed)
    state = game.initial_state(rng)
    for played in range(rounds):
        board = as_board(state, game)
        # mostly sensible moves, or nobody would ever grow
        chosen = [
            str(rng.choice(polite_moves(board, i) if snake and rng.random() < 0.9 else list(STEPS)))
            for i, snake in enumerate(board.snakes[: game.num_players])
        ]
        joint_action = {player: chosen[i] for i, player in enumerate(game.players) if board.snakes[i]}
        before = state
        state, rewards, terminated = game.transition(state, joint_action, rng)
        others = [
            polite_moves(board, i) if board.snakes[i] else ["up"] for i in range(game.num_players, game.num_snakes)
        ]
        results = [
            play_slowly(board, [*chosen, *moves], worth, game.death_reward, game.step_reward)
            for moves in product(*others)
        ]
        after = as_board(state, game)
        fitting = [result for result in results if explains(result, after, counts)]
        assert fitting, f"no move of the opponents explains {board} -> {after} after {joint_action}"
        paid = list(rewards.values())
        assert any(paid == pytest.approx(result.rewards[: game.num_players]) for result in fitting), (board, rewards)
        assert terminated == (not any(after.snakes[: game.num_players]))
        for i, player in enumerate(game.players):
            check_reading_back(game, state, i)
            told = game.what_happened(before, joint_action, state, player)
            died = bool(before.snakes[i]) and not state.snakes[i]
            grew = len(state.snakes[i]) > len(before.snakes[i])
            assert died == told.startswith(("hit the wall", "ran into", "head to head with snake "))
            assert grew == told.startswith("ate a")
            assert bool(told) == (died or grew)
        if terminated:
            return played + 1
    return rounds


@pytest.mark.parametrize(
    "options",
    [
        {"width": 5, "height": 4, "num_apples": 12},
        {"num_players": 2, "num_opponents": 0, "width": 6, "height": 6, "step_reward": -0.01, "coordinates": False},
        {"num_players": 4, "num_opponents": 2, "width": 7, "height": 5, "num_bananas": 3, "num_fires": 2, "axes": True},
        {"num_apples": 3, "apple_reward": -1.0, "num_bananas": 3, "grid": False},
    ],
    ids=["crowded", "duel", "many", "poison"],
)
def test_long_random_play_agrees_with_the_slow_snake_and_every_death_and_meal_is_told(options):
    game = Snake(**options)
    assert sum(check_episode(game, seed, rounds=40) for seed in range(60)) > 300


def make_game(num_players: int = 1, **options: Any) -> Snake:
    return Snake(num_players=num_players, **({"width": 6, "height": 5, "num_opponents": 0, "num_apples": 0} | options))


def state_of(game: Snake, *snakes: list[XY], apples: Any = (), bananas: Any = (), fires: Any = ()) -> SnakeState:
    def cells(items: Any) -> tuple[int, ...]:
        return tuple(y * game.width + x for x, y in items)

    food = [tuple(sorted(cells(kind))) for kind in (apples, bananas, fires)]
    return SnakeState(tuple(cells(snake) for snake in snakes), *food)


def play(game: Snake, state: SnakeState, *actions: str, seed: int = 0) -> tuple[SnakeState, list[float], bool]:
    joint_action = dict(zip(game.players, actions, strict=True))
    after, rewards, terminated = game.transition(state, joint_action, np.random.default_rng(seed))
    return after, [rewards[player] for player in game.players], terminated


ROUNDS: dict[str, tuple[list[list[XY]], str, list[list[XY]], list[float]]] = {
    "the right edge doesn't wrap into the next row": ([[(5, 0)]], "right", [[]], [-1]),
    "own tail, although it would move away": ([[(2, 2), (2, 1), (3, 1), (3, 2)]], "right", [[]], [-1]),
    "a snake of two that reverses": ([[(2, 2), (1, 2)]], "left", [[]], [-1]),
    "the tail of another, although it moves away": ([[(1, 2)], [(2, 3), (2, 2)]], "right up", [[], None], [-1, 0]),
    "head to head of three": ([[(1, 2)], [(3, 2)], [(2, 3), (2, 4)]], "right left down", [[], [], []], [-1, -1, -1]),
    "a swap of heads of longer snakes": ([[(1, 2), (0, 2)], [(2, 2), (3, 2)]], "right left", [[], []], [-1, -1]),
    "who dies on its own tail takes along who enters that cell": (
        [[(1, 2)], [(3, 2), (3, 1), (2, 1), (2, 2)], [(5, 4)]], "right left down", [[], [], [(5, 3)]], [-1, -1, 0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ROUNDS)
def test_a_round(case):
    before, actions, expected, paid = ROUNDS[case]
    game = make_game(len(before))
    after, rewards, terminated = play(game, state_of(game, *before), *actions.split())
    for snake, cells in zip(after.snakes, expected, strict=True):
        assert cells is None or snake == state_of(game, cells).snakes[0]
    assert rewards == paid
    assert terminated == (not any(after.snakes))


def opponent_moves(state: SnakeState, game: Snake, rounds: int) -> Counter[tuple[int, ...]]:
    rng = np.random.default_rng(12)
    return Counter(game.transition(state, {"player_0": "up"}, rng)[0].snakes[1] for _ in range(rounds))


@pytest.mark.parametrize(
    ("snake", "expected"),
    [
        ([(5, 0)], {(5, 1), (4, 0)}),
        ([(3, 1), (4, 1), (4, 2), (3, 2)], {(3, 0), (2, 1)}),
    ],
    ids=["corner", "tail"],
)
def test_opponent_moves_are_uniform_over_the_polite_ones(snake, expected):
    game = make_game(num_opponents=1)
    seen = opponent_moves(state_of(game, [(0, 0)], snake), game, 4000)
    heads = {(cells[0] % 6, cells[0] // 6): number for cells, number in seen.items()}
    assert set(heads) == expected
    assert chisquare(list(heads.values())).pvalue > 0.001


@pytest.mark.parametrize("crowded", [False, True])
def test_reappearing_food_is_uniform_over_the_empty_cells(crowded):
    """With 3 empty cells of 64, half of the draws come from the list of empty cells."""
    if crowded:
        game = make_game(width=8, height=8, num_apples=60)
        state = SnakeState(((0,),), tuple(range(1, 61)), (), ())
    else:
        game = make_game(width=4, height=4, num_apples=3)
        state = state_of(game, [(1, 1), (0, 1)], apples=((2, 1), (0, 0), (3, 3)))
    rng, seen = np.random.default_rng(5), Counter[int]()
    for _ in range(5000):
        after = game.transition(state, {"player_0": "right"}, rng)[0]
        seen.update(set(after.apples) - set(state.apples))
    kept = set(state.apples) - set(after.snakes[0])
    assert set(seen) == set(range(game.num_cells)) - kept - set(after.snakes[0])
    assert chisquare(list(seen.values())).pvalue > 0.001


def test_the_first_cell_is_found_when_it_is_the_last_one_that_is_empty():
    """By the list of empty cells, as hardly a random try meets one of a hundred."""
    game = Snake(width=10, height=10, num_opponents=0, num_apples=1)
    state = SnakeState((tuple(range(2, 100)),), (1,), (), ())
    for seed in range(5):
        after, rewards, _ = play(game, state, "left", seed=seed)
        assert (rewards, after.apples) == ([1.0], (0,))


def told_of(game: Snake, *snakes: list[XY], actions: str, player: int = 0, seed: int = 0, **food: Any) -> str:
    state = state_of(game, *snakes, **food)
    after, _, _ = play(game, state, *actions.split(), seed=seed)
    joint_action = dict(zip(game.players, actions.split(), strict=True))
    return game.what_happened(state, joint_action, after, game.players[player])


def test_how_a_snake_died_is_told_with_the_numbers_on_the_board():
    assert told_of(make_game(), [(5, 4)], actions="up") == "hit the wall"
    assert told_of(make_game(), [(2, 2), (2, 1), (3, 1), (3, 2)], actions="right") == "ran into its own body"
    poison = make_game(num_apples=1, num_bananas=1, banana_reward=-0.5)
    assert told_of(poison, [(2, 2)], actions="up", bananas=((2, 3),)) == "ate a banana (-0.5)"
    game = make_game(3)
    bodies = [(1, 2)], [(2, 3), (2, 2), (2, 1)], [(5, 4)]
    assert told_of(game, *bodies, actions="right up down") == "ran into snake 2"
    heads = [(1, 2)], [(3, 2)], [(2, 3), (2, 4)]
    assert told_of(game, *heads, actions="right left down") == "head to head with snake 2 and snake 3"
    assert told_of(game, *heads, actions="right up down", player=2) == "head to head with snake 1"
    # two heads that swap their cells each run into the other; and the first cell is no wall
    assert told_of(game, [(1, 2)], [(2, 2)], [], actions="right left up", player=1) == "ran into snake 1"
    assert told_of(make_game(2), [(1, 0)], [(0, 0), (0, 1)], actions="left right").startswith("ran into")


def test_the_opponent_whose_head_was_met_is_the_one_that_died_of_it():
    game, head = make_game(num_opponents=2), "head to head with snake "
    told = {told_of(game, [(1, 2)], [(3, 2)], [(2, 3)], actions="right", seed=seed) for seed in range(200)}
    assert told == {"", f"{head}2", f"{head}3", f"{head}2 or snake 3"}


def test_bodies_are_shared_as_far_as_they_can_be():
    # whichever cell the first snake tries first, one order of the heads makes it the second one's only cell
    row, board = Snake(width=4, height=1, num_apples=0), Snake(width=9, height=9)
    assert share_bodies([1, 3], [0, 2], row) == [(1, 0), (3, 2)]
    assert share_bodies([2, 0], [3, 1], row) == [(2, 3), (0, 1)]
    # cells that can't be shared still block the board
    assert share_bodies([0], [80, 1], board) == [(0, 1, 80)]
    every_other = [cell for cell in range(1, 81) if cell != 40]
    assert sorted(cell for snake in share_bodies([0, 40], every_other, board) for cell in snake) == list(range(81))
    assert share_bodies([], [], board) == []


def test_text_that_is_no_observation_is_refused():
    you = "You: head (3, 3), body none"
    for text, complaint in (
        ("", "You"),
        (f"{you}\nEnemy 2: head (10, 3), body none", r"\(10, 3\) is not on a board of 10 by 10"),
        (f"{you}\nEnemy 2: head (3, 3), body none", "two things are on one cell"),
    ):
        with pytest.raises(ValueError, match=complaint):
            read_observation(text, Snake())
    with pytest.raises(ValueError, match="10 by 10 cells"):
        read_observation(you, Snake(coordinates=False))
