"""Games as TRL's environments, played by hand as its tool loop plays them."""

import pytest

from textbench.integrations.trl import game_environment


def test_group_shares_its_start_and_not_its_transitions():
    make = game_environment("frozen-lake-slippery")
    group = [make() for _ in range(6)]
    assert len({environment.reset(layout_seed=5) for environment in group}) == 1
    assert group[0].reset(layout_seed=6) != group[1].reset(layout_seed=5)
    for environment in group:
        environment.reset(layout_seed=5)
    assert len({environment.act("down") for environment in group}) > 1, "all six slipped alike"
    again = set()
    for _ in range(8):
        group[0].reset(layout_seed=5)
        again.add(group[0].act("down"))
    assert len(again) > 1, "it slipped alike in eight episodes"


def test_columns_choose_scenario_and_seat():
    environment = game_environment("tic-tac-toe", opponents="planner")()
    environment.reset(scenario="kuhn-poker", layout_seed=1, seat="player_1", prompt=[])
    session = environment.session
    assert session is not None
    assert (session.task.scenario, session.player) == ("kuhn-poker", "player_1")


def test_episode_is_told_as_answers_of_a_tool():
    environment = game_environment("frozen-lake")()
    first = environment.reset(layout_seed=3)
    assert "You are playing Frozen Lake" in first
    assert first.endswith("Call the tool act with one of these actions: left, down, right, up.")
    answer = environment.act("down")
    assert "You are playing" not in answer
    assert answer.endswith("up.")
    assert "Player: (0, 2)" in answer
    assert environment.session is not None
    while not environment.session.over:
        answer = environment.act("left")
    assert answer == "The game is over."
    with pytest.raises(RuntimeError, match="the game is over"):
        environment.act("left")
    assert environment.get_reward() == environment.session.episode.returns["player_0"]


def test_a_left_episode_costs_the_format_penalty():
    environment = game_environment("frozen-lake", format_penalty=0.5)()
    environment.reset(layout_seed=3)
    assert environment.get_reward() == -0.5
    environment.act("fly")
    assert environment.get_reward() == -1.0  # the invalid action's penalty, and that of leaving


def test_what_cannot_be_played_is_said_at_once():
    with pytest.raises(ValueError, match=r"unknown scenario 'frozen-lak'.*frozen-lake"):
        game_environment("frozen-lak")
    with pytest.raises(ValueError, match=r"unknown mode 'call'.*calls"):
        game_environment(mode="call")
    with pytest.raises(ValueError, match="unknown agent 'plnner'"):
        game_environment("tic-tac-toe", opponents="plnner")
