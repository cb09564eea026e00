"""One seat of a game as an environment, and the players inside it, asked one by one or once for a whole batch."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

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
