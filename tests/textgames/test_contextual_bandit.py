"""The contextual bandit: rules, the oracle's values, regret, and the players' regression."""

import numpy as np
import pytest

from agents.baselines.games.bandit import ContextualBanditPlayer, LinearBelief
from agents.baselines.search import find_search_player
from agents.turn import TurnRequest
from textgames import SCENARIOS
from textgames.exploration.contextual_bandit import (
    CONTEXTS,
    NOBODY,
    ContextualBandit,
    ContextualState,
    Visit,
    expected_rewards,
    read_evidence,
)
from textgames.yardsticks import find_yardstick

ME = "player_0"
WEIGHTS = ((1.0, 0.0, 0.0), (0.0, 2.0, -1.0))
HERE = CONTEXTS.index((0.5, 1.0, -0.5))


def test_a_reward_is_the_weights_times_the_numbers_and_the_noise():
    assert expected_rewards(WEIGHTS, HERE) == (0.5, 2.5)
    game, rng = ContextualBandit(num_arms=2, rounds=3, noise=0.2), np.random.default_rng(0)
    state = ContextualState(WEIGHTS, HERE)
    rewards = {round(game.transition(state, {ME: "travel"}, rng)[1][ME], 9) for _ in range(40)}
    assert rewards == {2.3, 2.7}
    after, paid, over = game.transition(state, {ME: "cooking"}, rng)
    assert not over
    assert after.log == (Visit(HERE, 0, paid[ME]),)
    for _ in range(2):
        after, _, over = game.transition(after, {ME: "cooking"}, rng)
    assert over
    assert after.context == NOBODY
    assert game.transition(after, {ME: "cooking"}, rng) == (after, {ME: 0.0}, True)


def test_regret_by_hand():
    game = ContextualBandit(num_arms=2)
    state = ContextualState(WEIGHTS, NOBODY, (Visit(HERE, 0, 0.7), Visit(HERE, 1, 2.3), Visit(HERE, 0, 0.3)))
    assert game.metrics(state, ME) == {"regret": pytest.approx(4.0)}  # 2.5 instead of .5, twice; noise plays no part
    rest = ContextualBandit(num_arms=2, rounds=5)
    assert rest.forfeit(state, ME, 2) == {ME: -3.0 * 2}  # the second arm for (any, -1, 1) in the rounds that are left


def test_the_oracle_against_value_iteration_over_all_outcomes():
    game = ContextualBandit(num_arms=2, rounds=2)
    oracle = find_yardstick(game)
    assert oracle is not None
    state = ContextualState(WEIGHTS, HERE)

    def value(state: ContextualState) -> float:
        return max(action_value(state, action) for action in game.actions)

    def action_value(state: ContextualState, action: str) -> float:
        listed = game.outcomes(state, {ME: action})
        return sum(p * (paid[ME] + (0.0 if over else value(after))) for p, after, paid, over in listed)

    expected = {action: action_value(state, action) for action in game.actions}
    assert oracle.values(state, None, ME) == pytest.approx(expected)
    assert oracle.value(state, 5, ME) == pytest.approx(max(expected.values()))  # the game is over after two rounds
    assert oracle.values(state, 1, ME) == pytest.approx({"cooking": 0.5, "travel": 2.5})
    uniform = sum(action_value_uniform(game, state, action) for action in game.actions) / 2
    assert oracle.blind_value(state, None, ME, {}) == pytest.approx(uniform)


def action_value_uniform(game: ContextualBandit, state: ContextualState, action: str) -> float:
    return sum(
        p * (paid[ME] + (0 if over else sum(action_value_uniform(game, after, other) for other in game.actions) / 2))
        for p, after, paid, over in game.outcomes(state, {ME: action})
    )


def test_the_log_can_be_read_back():
    game, rng = ContextualBandit(num_arms=3, rounds=6), np.random.default_rng(3)
    state = game.initial_state(rng)
    for _ in range(5):
        state, _, _ = game.transition(state, {ME: game.sample_action(state, ME, rng)}, rng)
    evidence = read_evidence(game.observe(state, ME), game.actions)
    assert evidence.context == state.context
    assert [visit[:2] for visit in evidence.log] == [visit[:2] for visit in state.log]
    assert [visit.reward for visit in evidence.log] == pytest.approx([v.reward for v in state.log], abs=0.0051)
    with pytest.raises(ValueError, match="not an observation of a contextual bandit"):
        read_evidence("Round 1 of 25. Nothing was pressed yet.", game.actions)


def test_regression_is_ridge_regression():
    """The posterior mean solves (I + X'X/s^2) w = X'y/s^2."""
    rng, x = np.random.default_rng(0), [3, 50, 77, 120]
    rewards = rng.normal(size=4)
    belief = LinearBelief(2, 0.5, tuple(Visit(c, 1, r) for c, r in zip(x, rewards, strict=True)))
    design = np.array([CONTEXTS[c] for c in x])
    expected = np.linalg.solve(np.eye(3) + 4 * design.T @ design, 4 * design.T @ rewards)
    assert belief.means[1] == pytest.approx(expected)
    assert belief.means[0] == pytest.approx(np.zeros(3))
    here = np.array(CONTEXTS[HERE])
    assert belief.rewards(HERE)[1][0] == pytest.approx(np.linalg.norm(here))  # the prior's own deviation


@pytest.mark.slow
def test_players_learn_and_say_that_they_are_not_exact():
    scenario = SCENARIOS["bandit-context"]
    game = scenario.game()
    assert isinstance(game, ContextualBandit)
    planner = find_search_player(game)
    assert isinstance(planner, ContextualBanditPlayer)
    assert (planner.exact, planner.method) == (False, "LinUCB")
    regrets: dict[str, list[float]] = {"ucb": [], "greedy": [], "random": []}
    for name in regrets:
        for seed in range(25):
            rng = np.random.default_rng(seed)
            state, over = game.initial_state(rng), False
            while not over:
                request = TurnRequest(game.observe(state, ME), steps_left=5, game=game, seed=(seed, len(state.log)))
                action = {
                    "ucb": lambda r: planner.plan(r).action,
                    "greedy": lambda r: planner.greedy(r).action,
                    "random": lambda r: game.actions[int(rng.integers(4))],  # noqa: B023
                }[name](request)
                state, _, over = game.transition(state, {ME: action}, rng)
            regrets[name].append(game.metrics(state, ME)["regret"])
    means = {name: np.mean(each) for name, each in regrets.items()}
    assert max(means["ucb"], means["greedy"]) < 0.5 * means["random"]
