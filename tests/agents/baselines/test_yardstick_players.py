"""The planner on games with an exact yardstick: it reads the observations back and plays what is best."""

import pytest

from agents import load_agent
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from textgames import SCENARIOS
from textgames.yardsticks import Yardstick, find_yardstick

GAMES = {name: scenario.game() for name, scenario in SCENARIOS.items()}
FOUND = {name: find_yardstick(game) for name, game in GAMES.items() if game.reads_observations}
EXACT = {name: one for name, one in FOUND.items() if one is not None and one.exact}


@pytest.mark.parametrize(("name", "yardstick"), EXACT.items(), ids=EXACT)
def test_the_planner_plays_an_action_of_the_largest_value(name: str, yardstick: Yardstick) -> None:
    assert len(EXACT) > 10
    scenario = SCENARIOS[name]
    for episode in rollout(load_agent("planner"), [EpisodeTask.of(scenario, scenario.seed(k)) for k in range(6)]):
        for step in episode.steps:
            values = yardstick.values(step.state, step.steps_left, step.player)
            assert values[step.action] == pytest.approx(max(values.values())), step.observation
