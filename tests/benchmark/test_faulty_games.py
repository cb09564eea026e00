"""Games of somebody's own that break their contract while they are played: the game is named, nobody else is blamed."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import benchmark
import textgames
from agents import EpisodeTask, load_agent, rollout


class Walk(textgames.TSMG[Any]):
    """Three steps; every other game here is this one with a method changed."""

    actions = ("stay", "go")

    def initial_state(self, rng: np.random.Generator) -> Any:
        return 0

    def transition(self, state: Any, joint_action: Mapping[str, str], rng: np.random.Generator) -> Any:
        return state + 1, {"player_0": 1.0}, state >= 2

    def observe(self, state: Any, player: str) -> Any:
        return f"At {state}."

    def instructions(self, player: str) -> str:
        return "Walk. Actions: stay, go."


class PaysNobody(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {}, state >= 2


class PaysNone(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {"player_0": None}, state >= 2


class PaysText(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {"player_0": "1"}, state >= 2


class PaysNaN(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {"player_0": float("nan")}, state >= 2


class SaysNothing(Walk):
    def observe(self, state: Any, player: str) -> Any:
        return None if state else "At 0."


class Raises(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        raise KeyError("oops")


class ListStates(Walk):
    """Played to its end, but no search can look a state up."""

    def initial_state(self, rng: np.random.Generator) -> Any:
        return [0]

    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return [state[0] + 1], {"player_0": 1.0}, state[0] >= 2


class PaysNumPy(Walk):
    def transition(self, state: Any, joint_action: Any, rng: Any) -> Any:
        return state + 1, {"player_0": np.float32(1)}, state >= 2


GAMES = (PaysNobody, PaysNone, PaysText, PaysNaN, SaysNothing, Raises, ListStates, PaysNumPy)
for _game in GAMES:
    textgames.register(f"Faulty{_game.__name__}-v0", _game, max_steps=6)

PAYS = "has to pay every player a finite number, player_0 too; its rewards were"
FAULTS = [
    (PaysNobody, f"PaysNobody.transition {PAYS} {{}}"),
    (PaysNone, f"PaysNone.transition {PAYS} {{'player_0': None}}"),
    (PaysText, f"PaysText.transition {PAYS} {{'player_0': '1'}}"),
    (PaysNaN, f"PaysNaN.transition {PAYS} {{'player_0': nan}}"),
    (SaysNothing, "SaysNothing.observe has to return a text, and returned None"),
    (Raises, "KeyError: 'oops'"),
]


@pytest.mark.parametrize(("game", "fault"), FAULTS)
def test_the_loop_names_the_game_and_what_it_did(game: type[Walk], fault: str) -> None:
    with pytest.raises(textgames.GameError) as error:
        list(rollout(load_agent("random"), [EpisodeTask.of(f"Faulty{game.__name__}-v0", 1)]))
    told = str(error.value)
    assert told.startswith(f"the game Faulty{game.__name__}-v0 failed: {fault}; ")
    assert f"textgames.conformance.check('Faulty{game.__name__}-v0')" in told


@pytest.mark.parametrize("game", [PaysNobody, PaysNone, PaysText, PaysNaN])
def test_environments_refuse_what_is_no_reward(game: type[Walk]) -> None:
    env = gym.make(f"Faulty{game.__name__}-v0")
    env.reset(seed=1)
    with pytest.raises(textgames.GameError, match="has to pay every player"):
        env.step("go")
    everybody = textgames.parallel_env(f"Faulty{game.__name__}-v0")
    everybody.reset(seed=1)
    with pytest.raises(textgames.GameError, match="has to pay every player"):
        everybody.step({"player_0": "go"})


def test_a_number_of_another_library_is_a_reward() -> None:
    env = gym.make("FaultyPaysNumPy-v0")
    env.reset(seed=1)
    _, reward, *_ = env.step("go")
    assert (type(reward), reward) == (float, 1.0)


def test_a_run_is_stopped_by_the_game_and_no_player_is_blamed(textbench: Any) -> None:
    command = (
        "run",
        "--agent",
        "random",
        "--scenario",
        f"{__name__}:FaultyPaysNaN-v0",
        "--episodes",
        2,
        "--out",
        "out",
    )
    done = textbench(*command)
    assert done.code == 1
    assert "a player failed" not in done.err
    assert f"textbench: the game {__name__}:FaultyPaysNaN-v0 failed: PaysNaN.transition has to pay" in done.err


def test_scores_of_other_games_stay_where_one_cant_be_searched(capsys: pytest.CaptureFixture[str]) -> None:
    faulty = f"{__name__}:FaultyListStates-v0"
    results = benchmark.evaluate("random", scenarios=[faulty, "frozen-lake"], episodes=3)
    scores = {row["scenario"]: row for row in results.leaderboard().scores}
    assert scores[faulty]["mean_return"]["value"] == 3.0
    assert scores[faulty]["normalized"] is None
    assert scores["frozen-lake"]["normalized"] is not None
    assert f"{faulty}: no normalised scores, as its game failed: TypeError: unhashable" in capsys.readouterr().err
