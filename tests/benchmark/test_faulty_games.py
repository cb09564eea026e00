"""Games of somebody's own that break their contract while they are played: the game is named, nobody else is blamed."""

import importlib

import gymnasium as gym
import pytest

import benchmark
import textgames
from agents import EpisodeTask, load_agent, rollout

GAMES = "tests.benchmark.faulty_games"


@pytest.fixture(autouse=True)
def _registered():
    """Not when this file is collected: other tests are about every game that is registered then."""
    importlib.import_module(GAMES)


PAYS = "has to pay every player a finite number, player_0 too; its rewards were"


@pytest.mark.parametrize(
    ("game", "fault"),
    [
        ("PaysNobody", f"PaysNobody.transition {PAYS} {{}}"),
        ("PaysText", f"PaysText.transition {PAYS} {{'player_0': '1'}}"),
        ("PaysNaN", f"PaysNaN.transition {PAYS} {{'player_0': nan}}"),
        ("SaysNothing", "SaysNothing.observe has to return a text, and returned None"),
        ("Raises", "KeyError: 'oops'"),
    ],
)
def test_the_loop_names_the_game_and_what_it_did(game, fault):
    with pytest.raises(textgames.GameError) as error:
        list(rollout(load_agent("random"), [EpisodeTask.of(f"Faulty{game}-v0", 1)]))
    told = str(error.value)
    assert told.startswith(f"the game Faulty{game}-v0 failed: {fault}; ")
    assert f"textgames.conformance.check('Faulty{game}-v0')" in told


def test_environments_refuse_what_is_no_reward():
    env, everybody = gym.make("FaultyPaysText-v0"), textgames.parallel_env("FaultyPaysText-v0")
    env.reset(seed=1)
    with pytest.raises(textgames.GameError, match="has to pay every player"):
        env.step("go")
    everybody.reset(seed=1)
    with pytest.raises(textgames.GameError, match="has to pay every player"):
        everybody.step({"player_0": "go"})
    env = gym.make("FaultyPaysNumPy-v0")
    env.reset(seed=1)
    _, reward, *_ = env.step("go")
    assert (type(reward), reward) == (float, 1.0)  # a number of another library is one


def test_a_run_is_stopped_by_the_game_and_no_player_is_blamed(textbench):
    game = f"{GAMES}:FaultyPaysNaN-v0"
    done = textbench("run", "--agent", "random", "--scenario", game, "--episodes", 2, "--out", "out")
    assert done.code == 1
    assert "a player failed" not in done.err
    assert f"textbench: the game {game} failed: PaysNaN.transition has to pay" in done.err


def test_scores_of_other_games_stay_where_one_cant_be_searched(capsys):
    faulty = f"{GAMES}:FaultyListStates-v0"
    results = benchmark.evaluate("random", scenarios=[faulty, "frozen-lake"], episodes=3)
    scores = {row["scenario"]: row for row in results.leaderboard().scores}
    assert scores[faulty]["mean_return"]["value"] == 3.0
    assert scores[faulty]["normalized"] is None
    assert scores["frozen-lake"]["normalized"] is not None
    assert f"{faulty}: no normalised scores, as its game failed: TypeError: unhashable" in capsys.readouterr().err
