"""What giving up pays, the same in every form of environment; conformance checks that it is no more than a loss."""

import gymnasium as gym
import numpy as np
import pytest

import textgames
from tests.textgames.own_game import OwnGame
from textgames import SCENARIOS
from textgames.environments.solo import TextGameEnv


@pytest.mark.parametrize(
    ("name", "lost"),
    [("frozen-lake", 0.0), ("snake", -1.0), ("blackjack", -1.0), ("cliff-walking", -4_000.0), ("mastermind", -11.0)],
)
def test_it_ends_the_episode_of_one_player(name, lost):
    scenario = SCENARIOS[name]
    env = scenario.make(invalid_action="forfeit", format_penalty=0.5)
    env.reset(seed=scenario.first_seed + 1)
    _, reward, terminated, truncated, info = env.step("?")
    assert (reward, terminated, truncated) == (lost - 0.5, True, False)
    assert (info["action"], info["valid"], info["success"]) == ("", False, False)


@pytest.mark.parametrize("limit", [None, 100])
@pytest.mark.parametrize(
    ("env_id", "settings"), [("TextSlidingPuzzle-v0", {}), ("TextMatrixGame-v0", {"opponent": "uniform"})]
)
def test_a_game_that_ends_by_itself_pays_for_its_own_rounds(env_id, settings, limit):
    """No limit is asked for, and a longer one makes nothing dearer than the game's lowest return."""
    env = gym.make(env_id, invalid_action="forfeit", max_steps=limit, **settings).unwrapped
    env.reset(seed=0)
    first = env.step(env.game.default_action(env.state, "player_0"))[1]
    rest = env.game.worst_round * (env.game.longest_episode - 1)
    assert env.step("?")[1] == pytest.approx(rest)
    assert first + rest >= env.game.return_range[0]


def test_poison_that_is_still_to_come_costs_a_snake_that_gives_up():
    game = SCENARIOS["snake-poison"].game()
    start = game.initial_state(np.random.default_rng(0))
    assert game.forfeit(start, "player_0", 5) == {"player_0": -1.0 + 5 * -1.0}
    with pytest.raises(ValueError, match="giving up needs a step limit"):
        gym.make("TextSnake-v0", num_fires=3, max_steps=None, invalid_action="forfeit")


def test_the_other_player_of_a_zero_sum_game_wins():
    env = textgames.parallel_env("TextTicTacToe-v0", invalid_action="forfeit")
    env.reset(seed=0)
    env.step({"player_0": "b2"})
    _, rewards, terminations, truncations, infos = env.step({"player_1": "I give up"})
    assert rewards == {"player_0": 1.0, "player_1": -1.0}
    assert all(terminations.values())
    assert not any(truncations.values())
    assert (env.agents, env.elapsed_steps) == ([], 2)
    assert (infos["player_0"]["success"], infos["player_1"]["success"]) == (True, False)


@pytest.mark.parametrize("mode", ["terminate", "forfeit"])
def test_the_last_one_at_the_table_leaves_the_state_as_it_is(mode):
    """Nothing is executed in place of a response that ends the last episode, in any form of environment."""
    env = textgames.parallel_env("TextFrozenLake-v0", desc=["SFG"], invalid_action=mode)
    env.reset(seed=0)
    env.step({"player_0": "right"})
    before = env.state()
    env.step({"player_0": "?"})
    assert env.state() == before
    assert (env.agents, env.elapsed_steps) == ([], 2)


def test_the_others_of_another_game_play_on():
    env = textgames.parallel_env("TextSnake-v0", num_players=2, invalid_action="forfeit", max_steps=30)
    env.reset(seed=3)
    _, rewards, terminations, _, infos = env.step({"player_0": "?", "player_1": "left"})
    assert (rewards["player_0"], terminations["player_0"], infos["player_0"]["success"]) == (-1.0, True, False)
    assert env.agents == ["player_1"]


class Endless(OwnGame):
    """Pays a number for every round, and says neither how little that can be nor what a loss is."""

    actions = ("go",)

    def outcomes(self, state, joint_action):
        return [(1.0, state + 1, {"player_0": -3.0}, False)]


class Told(Endless):
    worst_round = -3.0


def test_a_game_that_does_not_say_what_a_loss_pays_is_refused():
    with pytest.raises(ValueError, match="return_range, or a worst_round"):
        TextGameEnv(Endless, invalid_action="forfeit", max_steps=5)
    with pytest.raises(ValueError, match="step limit"):
        TextGameEnv(Told, invalid_action="forfeit")
    env = TextGameEnv(Told, invalid_action="forfeit", max_steps=5)
    env.reset(seed=0)
    env.step("go")
    assert env.step("?")[1] == -3.0 * 4  # four rounds were left
