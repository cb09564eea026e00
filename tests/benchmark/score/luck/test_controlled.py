"""Luck by a guess: intervals that cover, for players who eat and for those who don't, and a seer that is seen."""

import numpy as np
import pytest

from agents.common import intervals as stats
from benchmark.score import results as cells
from benchmark.score.luck import LuckValues, corrected
from benchmark.score.luck_check import luck_check, luck_problems
from benchmark.score.results import Cell
from textgames.scenarios import SCENARIOS
from textgames.snake.solver import greedy_action

ME = "player_0"
SNAKE = SCENARIOS["snake"]


def play(player, episodes):
    """Returns, values of the starts and luck of many episodes, each (episodes,)."""
    game = SNAKE.game()
    values = LuckValues.of(game)
    rows = []
    for seed in range(episodes):
        rng, own = np.random.default_rng([9, seed]), np.random.default_rng([10, seed])
        state, over, gain, luck = game.initial_state(rng), False, 0.0, 0.0
        start = values.value(state, SNAKE.horizon)
        for left in range(SNAKE.horizon, 0, -1):
            random = player == "random" or (player == "careless" and own.random() < 0.3)
            action = game.actions[int(own.integers(4))] if random else greedy_action(state, ME, game)
            expected = values.expects(state, (action,), left).mean
            state, rewards, over = game.transition(state, {ME: action}, rng)
            gain += rewards[ME]
            luck += rewards[ME] + (0.0 if over else values.value(state, left - 1)) - expected
            if over:
                break
        rows.append((gain, start, luck))
    return np.array(rows).T


@pytest.mark.slow
@pytest.mark.parametrize("player", ["greedy", "careless", "random"])
def test_intervals_of_fifty_episodes_cover_the_truth(player):
    """1,500 runs of 50 episodes, drawn from a pool of 3,000: the pool's mean is the truth, and its luck is fair."""
    returns, start, luck = play(player, 3000)
    assert abs(luck.mean()) < 4 * luck.std() / np.sqrt(len(luck))
    luck -= luck.mean()
    rng = np.random.default_rng(0)
    plain, free = [], []
    for _ in range(1500):
        drawn = rng.integers(len(returns), size=50)
        found = corrected(returns[drawn], start[drawn], luck[drawn])
        table = np.stack([returns[drawn], found.values], axis=1)
        one, other = stats.bootstrap(table, [stats.column(0), stats.column(1)])
        plain.append(one)
        free.append(other)
    true, spread = returns.mean(), 3 * np.sqrt(0.05 * 0.95 / 1500)
    covered = np.mean([one.low <= true <= one.high for one in free])
    bias = np.mean([one.value for one in free]) - true
    ratio = np.std([one.value for one in free]) / np.std([one.value for one in plain])
    print(
        f"{player}: coverage {covered:.3f}, plain {np.mean([one.low <= true <= one.high for one in plain]):.3f}, ",
        ratio,
    )
    assert covered >= 0.95 - spread
    assert abs(bias) <= 3.5 * np.std([one.value for one in free]) / np.sqrt(1500)
    assert ratio < {"greedy": 0.9, "careless": 1.0, "random": 1.03}[player]


def foreseen(game, values, state, rng, horizon, width=24):
    """The actions that are best for the draws to come: a beam search that plays with the generator itself."""
    beam = [(0.0, 0.0, state, rng.bit_generator.state, False, ())]
    for left in range(horizon, 0, -1):
        reached = {}
        for worth, gain, board, numbers, over, actions in beam:
            if over:
                reached[actions] = (worth, gain, board, numbers, over, actions)
                continue
            for action in game.actions:
                rng.bit_generator.state = numbers
                after, rewards, end = game.transition(board, {ME: action}, rng)
                total = gain + rewards[ME]
                worth = total + (0.0 if end else values.value(after, left - 1))
                reached.setdefault(after, (worth, total, after, rng.bit_generator.state, end, (*actions, action)))
        beam = sorted(reached.values(), key=lambda path: -path[0])[:width]
    return beam[0][-1]


@pytest.mark.slow
def test_a_player_that_foresees_where_food_reappears_is_suspected():
    """On twenty episodes of snake-poison; the greedy player's luck on the same ones is ordinary."""
    scenario = SCENARIOS["snake-poison"]
    game = scenario.game()
    values = LuckValues.of(game)
    checks = {}
    for name in ("seer", "greedy"):
        luck, variance = [], []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            state, over, left = game.initial_state(rng), False, scenario.horizon
            numbers = rng.bit_generator.state
            actions = foreseen(game, values, state, rng, left) if name == "seer" else ()
            rng.bit_generator.state = numbers
            while left and not over:
                action = actions[scenario.horizon - left] if actions else greedy_action(state, ME, game)
                expected = values.expects(state, (action,), left)
                state, rewards, over = game.transition(state, {ME: action}, rng)
                left -= 1
                luck.append(rewards[ME] + (0.0 if over else values.value(state, left)) - expected.mean)
                variance.append(expected.variance)
        checks[name] = luck_check(np.array(luck), np.array(variance))
    assert abs(checks["greedy"]["z"]) < 3
    (problem,) = luck_problems(checks)
    assert problem.startswith("seer: the draws of chance favoured this player")


def test_very_many_episodes_are_not_played_again(monkeypatch):
    asked = []
    cell = Cell(planned=30, ask_luck=lambda: asked.append(1))
    for name, values in cell.columns.items():
        values.extend(range(30) if name == "seed" else [0.0] * 30)
    monkeypatch.setattr(cells, "CONTROLLED_LIMIT", 29)
    assert cells.without_luck(cell, SNAKE) == (None, False)
    assert not asked
    monkeypatch.setattr(cells, "CONTROLLED_LIMIT", 30)
    cell.memo.clear()
    assert cells.without_luck(cell, SNAKE) == (None, False)  # nobody knew the luck
    assert asked
    assert cells.luck_free(cell, SNAKE) is None
