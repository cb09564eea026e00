"""The planner on games with an exact yardstick: it reads the observations back and plays what they are worth."""

import numpy as np
import pytest

from agents import load_agent
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from tests.textgames.test_nim import mover_wins
from textgames import SCENARIOS
from textgames.yardsticks import find_yardstick


@pytest.mark.parametrize("name", ["cliff-walking", "taxi"])
def test_without_chance_the_planner_gets_the_value_of_every_start(name):
    scenario = SCENARIOS[name]
    game = scenario.game()
    yardstick = find_yardstick(game)
    assert yardstick is not None
    for episode in rollout(load_agent("planner"), (EpisodeTask.of(scenario, scenario.seed(k)) for k in range(12))):
        start = game.read_observation(episode.steps[0].observation, "player_0")
        assert episode.returns["player_0"] == yardstick.value(start, scenario.horizon, "player_0")
        assert all(step.valid for step in episode.steps)


def test_with_chance_the_planner_gets_the_value_on_average():
    scenario, episodes = SCENARIOS["cliff-walking-slippery"], 60
    tasks = (EpisodeTask.of(scenario, scenario.seed(k)) for k in range(episodes))
    returns = [episode.returns["player_0"] for episode in rollout(load_agent("planner"), tasks)]
    assert np.mean(returns) == pytest.approx(-63.01, abs=5 * np.std(returns) / episodes**0.5)


@pytest.mark.parametrize("seat", ["player_0", "player_1"])
def test_the_planner_never_loses_tic_tac_toe(seat):
    scenario, policies = SCENARIOS["tic-tac-toe"], dict.fromkeys(("player_0", "player_1"), load_agent("random"))
    policies[seat] = load_agent("planner")
    tasks = (EpisodeTask.of(scenario, scenario.seed(k)) for k in range(8))
    assert min(episode.returns[seat] for episode in rollout(policies, tasks)) >= 0


def test_the_planner_wins_nim_where_that_is_possible():
    scenario = SCENARIOS["nim"]
    game, policies = scenario.game(), {"player_0": load_agent("planner"), "player_1": load_agent("planner")}
    tasks = (EpisodeTask.of(scenario, scenario.seed(k)) for k in range(15))
    for episode in rollout(policies, tasks):
        start = game.read_observation(episode.steps[0].observation, "player_0")
        assert episode.returns["player_0"] == (1.0 if mover_wins(start.heaps, misere=False) else -1.0)
