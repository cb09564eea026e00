"""What giving up pays, the same in every form of environment; conformance checks that it is no more than a loss."""

import gymnasium as gym
import numpy as np
import pytest

import textgames
from textgames import SCENARIOS, TSMG


@pytest.mark.parametrize(
    ("name", "lost"),
    [("frozen-lake", 0.0), ("snake", -1.0), ("blackjack", -1.0), ("cliff-walking", -100.0), ("mastermind", -11.0)],
)
def test_it_ends_the_episode_of_one_player(name, lost):
    scenario = SCENARIOS[name]
    env = scenario.make(invalid_action="forfeit", format_penalty=0.5)
    _, info = env.reset(seed=scenario.first_seed + 1)
    _, reward, terminated, truncated, info = env.step("?")
    if name == "cliff-walking":
        lost *= scenario.horizon
    assert (reward, terminated, truncated) == (lost - 0.5, True, False)
    assert info["action"] == ""
    assert info["valid"] is False
    assert info["success"] is False


@pytest.mark.parametrize("limit", [None, 100])
@pytest.mark.parametrize(
    ("env_id", "settings"),
    [("TextOnlineLearning-v0", {}), ("TextSlidingPuzzle-v0", {}), ("TextMatrixGame-v0", {"opponent": "uniform"})],
)
def test_a_game_that_ends_by_itself_pays_for_its_own_rounds(env_id, settings, limit):
    """No limit is asked for, and a longer one makes nothing dearer than the game's lowest return."""
    env = gym.make(env_id, invalid_action="forfeit", max_steps=limit, **settings)
    env.reset(seed=0)
    game = env.unwrapped.game
    first = env.step(env.unwrapped.game.default_action(env.unwrapped.state, "player_0"))[1]
    assert env.step("?")[1] == pytest.approx(game.worst_round * (game.longest_episode - 1))
    assert first + game.worst_round * (game.longest_episode - 1) >= game.return_range[0]


def test_poison_that_is_still_to_come_costs_a_snake_that_gives_up():
    game = SCENARIOS["snake-poison"].game()
    start = game.initial_state(np.random.default_rng(0))
    assert game.forfeit(start, "player_0", 5) == {"player_0": -1.0 + 5 * -1.0}
    with pytest.raises(ValueError, match="giving up needs a step limit"):
        gym.make("TextSnake-v0", num_fires=3, max_steps=None, invalid_action="forfeit")


def test_the_other_player_of_a_zero_sum_game_wins():
    env = textgames.parallel_env("TextTicTacToe-v0", invalid_action="forfeit")
    env.reset(seed=0)
    _, rewards, _, _, _ = env.step({"player_0": "b2"})
    _, rewards, terminations, truncations, infos = env.step({"player_1": "I give up"})
    assert rewards == {"player_0": 1.0, "player_1": -1.0}
    assert set(terminations.values()) == {True}
    assert set(truncations.values()) == {False}
    assert not env.agents
    assert (infos["player_0"]["success"], infos["player_1"]["success"]) == (True, False)
    assert env.elapsed_steps == 2


@pytest.mark.parametrize("loser", [0, 1])
def test_the_other_wins_where_both_move_at_once_whoever_is_read_first(loser):
    env = textgames.SCENARIOS["matching-pennies"].parallel_env(invalid_action="forfeit")
    env.reset(seed=0)
    gives_up, other = env.agents[loser], env.agents[1 - loser]
    _, rewards, _, _, infos = env.step({gives_up: "I give up", other: env.game.actions[0]})
    assert rewards[gives_up] == -rewards[other] < 0
    assert (infos[other]["success"], infos[gives_up]["success"]) == (True, False)


def test_the_last_one_at_the_table_leaves_the_state_as_it_is():
    """Nothing is executed in place of a response that ends the last episode, in any form of environment."""
    for mode in ("terminate", "forfeit"):
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
    assert rewards["player_0"] == -1.0
    assert terminations["player_0"]
    assert not infos["player_0"]["success"]
    assert env.agents == ["player_1"]


class Endless(TSMG[int]):
    """Pays a number for every round, and says neither how little that can be nor what a loss is."""

    actions = ("go",)

    def initial_state(self, rng):
        return 0

    def transition(self, state, joint_action, rng):
        return state + 1, {"player_0": -3.0}, False

    def observe(self, state, player):
        return str(state)

    def instructions(self, player):
        return "go"


class Told(Endless):
    worst_round = -3.0


def test_a_game_that_does_not_say_what_a_loss_pays_is_refused():
    from textgames.environments.solo import TextGameEnv

    with pytest.raises(ValueError, match="return_range, or a worst_round"):
        TextGameEnv(Endless, invalid_action="forfeit", max_steps=5)
    with pytest.raises(ValueError, match="step limit"):
        TextGameEnv(Told, invalid_action="forfeit")
    env = TextGameEnv(Told, invalid_action="forfeit", max_steps=5)
    env.reset(seed=0)
    env.step("go")
    assert env.step("?")[1] == -3.0 * 4  # four rounds were left
