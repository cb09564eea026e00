"""One seat of a game as an environment, players inside it, asked one by one or together, and what giving up pays."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import textgames
from tests.textgames.own_game import OwnGame
from textgames import SCENARIOS
from textgames.environments.opponents import OpponentTurn, Together
from textgames.environments.solo import TextGameEnv
from textgames.environments.vector import TextVectorEnv


def thoughtful(turn: OpponentTurn) -> str:
    """A player that takes in all that it is told, and sometimes writes nonsense."""
    number = sum(map(ord, turn.observation + turn.player)) + len(turn.instructions)
    return f"<action>{turn.legal_actions[number % len(turn.legal_actions)]}</action>" if number % 5 else "hm"


class Counted:
    """The same player for many turns, which counts how often it is asked."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, turns: list[OpponentTurn]) -> list[str]:
        self.calls.append(len(turns))
        return [thoughtful(turn) for turn in turns]


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("invalid", ["random", "terminate", "forfeit"])
@pytest.mark.parametrize("name", ["kuhn-poker", "snake-duel", "matching-pennies"])
def test_asked_together_it_plays_as_asked_one_by_one(name, invalid, mode):
    game, horizon, num_envs = SCENARIOS[name].game(), SCENARIOS[name].horizon, 5
    told = []
    for opponent in (thoughtful, Together(Counted())):
        settings: dict[str, Any] = {"opponents": opponent, "invalid_action": invalid, "autoreset_mode": mode}
        env = TextVectorEnv(game, num_envs, max_steps=horizon, seat="player_1", **settings)
        rng = np.random.default_rng(0)
        told.append([repr(env.reset(seed=3))])
        for _ in range(20):
            step = env.step([game.actions[int(rng.integers(len(game.actions)))] for _ in range(num_envs)])
            told[-1].append(repr(step))
            ended = step[2] | step[3]
            if mode is AutoresetMode.DISABLED and ended.any():
                told[-1].append(repr(env.reset(options={"reset_mask": ended})))
    assert told[0] == told[1]


@pytest.mark.parametrize("ask", [str, Together])
@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("name", ["kuhn-poker", "tic-tac-toe", "matching-pennies"])
def test_who_is_left_by_somebody_who_gives_up_has_won(name, seat, ask):
    """After its own move, in the same round, or before its first turn."""
    game = SCENARIOS[name].game()
    silent: Any = (lambda turn: "hm") if ask is str else Together(lambda turns: ["hm"] * len(turns))
    kwargs: Any = {"seat": game.players[seat], "opponents": silent, "invalid_action": "forfeit", "max_steps": 9}
    single, batch = TextGameEnv(game, **kwargs), TextVectorEnv(game, 2, **kwargs)
    _, told = single.reset(seed=0)
    batch.reset(seed=0)
    move = (told["legal_actions"] or game.actions)[0]
    _, reward, terminated, _, info = single.step(move)
    _, rewards, terminations, _, infos = batch.step([move] * 2)
    assert (terminated, info["success"]) == (True, True)
    assert reward > 0
    assert (terminations & infos["success"] & (rewards == reward)).all()


def test_a_round_of_a_batch_is_one_call():
    """64 games of tic-tac-toe ask 64 times what one call answers."""
    opponent = Counted()
    settings: dict[str, Any] = {"vectorization_mode": "vector_entry_point", "opponents": Together(opponent)}
    env: Any = gym.make_vec("TextTicTacToe-v0", num_envs=64, **settings)
    env.reset(seed=0)
    assert opponent.calls == []
    env.step(["?"] * 64)
    assert opponent.calls == [64]
    gym.make_vec("TextTicTacToe-v0", num_envs=64, seat="player_1", **settings).reset(seed=0)
    assert opponent.calls == [64, 64]


def test_an_opponent_of_ones_own_plays_inside():
    asked: list[OpponentTurn] = []
    env: Any = gym.make("TextTicTacToe-v0", opponents=lambda turn: asked.append(turn) or turn.legal_actions[0])
    env.reset(seed=0)
    env.step("b2")
    observation, *_ = env.step("c1")
    assert "\n3 O O .\n2 . X .\n1 . . X\n" in observation
    assert [(turn.player, turn.legal_actions[0]) for turn in asked] == [("player_1", "a3"), ("player_1", "b3")]
    assert asked[0].observation.startswith("You play O.")


@pytest.mark.parametrize(
    ("env_id", "settings", "message"),
    [
        ("TextTicTacToe-v0", {"seat": "player_7"}, "seat must be one of player_0, player_1, got 'player_7'"),
        ("TextTicTacToe-v0", {"opponents": 7}, "opponents must give player_1 'random', an agent such as 'planner'"),
        ("TextTicTacToe-v0", {"opponents": {"player_0": "random"}}, "opponents must give player_1"),
        ("TextTicTacToe-v0", {"opponents": None}, 'opponents="random"'),
        ("TextSnake-v0", {"opponents": "planner"}, "has one player, and opponents = 'planner' has no seat to fill"),
    ],
)
def test_seats_and_opponents_that_do_not_fit_are_refused(env_id, settings, message):
    for make in (gym.make, gym.make_vec):
        with pytest.raises(ValueError, match=message):
            make(env_id, **settings)


def test_a_wrong_number_of_responses_is_refused():
    env = TextGameEnv(SCENARIOS["tic-tac-toe"].game(), opponents=Together(lambda turns: []))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="opponents must give 1 responses to 1 turns, got"):
        env.step("?")


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
