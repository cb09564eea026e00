"""A slow, independent Snake, written from the specification with sets of (x, y), compared with the fast one.

The slow one draws no random numbers: it says which moves an opponent may make and on which cells food may appear, and
for every round of the fast one there must be moves of the opponents that explain it.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from textgames.snake import Snake, SnakeState

STEPS = {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}
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


def play(board: Board, actions: list[str], worth: dict[str, float], death: float, step: float) -> Round:
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


# ---------------------------------------------------------------- comparison

KINDS = ("apples", "bananas", "fires")


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


def check_episode(game: Snake, seed: int, rounds: int) -> int:
    """Play randomly and compare every round; the number of rounds that were compared."""
    config = game
    worth = {"apples": config.apple_reward, "bananas": config.banana_reward, "fires": config.fire_reward}
    counts = {"apples": config.num_apples, "bananas": config.num_bananas, "fires": config.num_fires}
    rng = np.random.default_rng(seed)
    state = game.initial_state(rng)
    for played in range(rounds):
        board = as_board(state, game)
        # mostly sensible moves, or nobody would ever grow
        chosen = [
            str(rng.choice(polite_moves(board, i) if snake and rng.random() < 0.9 else list(STEPS)))
            for i, snake in enumerate(board.snakes[: config.num_players])
        ]
        joint_action = {player: chosen[i] for i, player in enumerate(game.players) if board.snakes[i]}
        state, rewards, terminated = game.transition(state, joint_action, rng)
        opponents = [
            polite_moves(board, i) if board.snakes[i] else ["up"] for i in range(config.num_players, config.num_snakes)
        ]
        results = [
            play(board, [*chosen, *moves], worth, config.death_reward, config.step_reward)
            for moves in product(*opponents)
        ]
        after = as_board(state, game)
        fitting = [result for result in results if explains(result, after, counts)]
        assert fitting, f"no move of the opponents explains {board} -> {after} after {joint_action}"
        assert any(
            list(rewards.values()) == pytest.approx(result.rewards[: config.num_players]) for result in fitting
        ), f"rewards {rewards} after {joint_action} on {board}"
        assert terminated == (not any(after.snakes[: config.num_players]))
        if terminated:
            return played + 1
    return rounds


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"width": 5, "height": 4, "num_apples": 12},
        {"num_players": 2, "num_opponents": 0, "width": 6, "height": 6},
        {"num_players": 4, "num_opponents": 2, "width": 7, "height": 5, "num_bananas": 3, "num_fires": 2},
        {"num_apples": 3, "apple_reward": -1.0, "num_bananas": 3},
    ],
    ids=["default", "crowded", "duel", "many", "poison"],
)
def test_long_random_play_agrees_with_the_reference(options):
    game = Snake(**options)
    compared = sum(check_episode(game, seed, rounds=40) for seed in range(60))
    assert compared > 300
