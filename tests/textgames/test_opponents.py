"""Players inside an environment, asked one by one or once for a whole batch."""

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


GAMES = ["kuhn-poker", "tic-tac-toe", "snake-duel", "connect-four-small", "matching-pennies"]


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("invalid", ["default", "random", "terminate", "forfeit"])
@pytest.mark.parametrize("name", [*GAMES[:3], *(pytest.param(each, marks=pytest.mark.slow) for each in GAMES[3:])])
def test_asked_together_it_plays_as_asked_one_by_one(name, invalid, mode):
    game, horizon, num_envs = SCENARIOS[name].game(), SCENARIOS[name].horizon, 5
    told = []
    for opponent in (thoughtful, Together(Counted())):
        env = TextVectorEnv(
            game, num_envs, max_steps=horizon, opponents=opponent, invalid_action=invalid, autoreset_mode=mode,
            seat="player_1",
        )  # fmt: skip
        rng = np.random.default_rng(0)
        told.append([repr(env.reset(seed=3))])
        for _ in range(20):
            actions = [game.actions[int(rng.integers(len(game.actions)))] for _ in range(num_envs)]
            step = env.step(actions)
            told[-1].append(repr(step))
            ended = step[2] | step[3]
            if mode is AutoresetMode.DISABLED and ended.any():
                told[-1].append(repr(env.reset(options={"reset_mask": ended})))
    assert told[0] == told[1]


@pytest.mark.parametrize("ask", [str, Together])
@pytest.mark.parametrize(("name", "seat"), [(name, seat) for name in GAMES[:2] + GAMES[3:] for seat in (0, 1)])
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
    env: Any = gym.make_vec(
        "TextTicTacToe-v0", num_envs=64, vectorization_mode="vector_entry_point", opponents=Together(opponent)
    )
    env.reset(seed=0)
    assert opponent.calls == []
    env.step(["?"] * 64)
    assert opponent.calls == [64]
    second: Any = gym.make_vec(
        "TextTicTacToe-v0", num_envs=64, vectorization_mode="vector_entry_point", opponents=Together(opponent),
        seat="player_1",
    )  # fmt: skip
    second.reset(seed=0)
    assert opponent.calls == [64, 64]


@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
def test_nobody_plays_inside_where_there_is_one_player(make):
    for name in ("TextFrozenLake-v0", "TextSnake-v0"):
        make(name).close()
        with pytest.raises(ValueError, match="has one player, and opponents = 'planner' has no seat to fill"):
            make(name, opponents="planner")


def test_a_wrong_number_of_responses_is_refused():
    env = TextGameEnv(SCENARIOS["tic-tac-toe"].game(), opponents=Together(lambda turns: []))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="opponents must give 1 responses to 1 turns, got"):
        env.step("?")
