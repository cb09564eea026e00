"""Nobody who doesn't read scores above 0: not a mute player, no constant one, and not the best of them."""

import re
import sys
from pathlib import Path

import pytest

import benchmark
from agents import Turn
from textgames.scenarios import SCENARIOS

MOST_CONSTANTS = 6

TUTORIAL = Path(__file__).parents[3] / "docs/tutorials/add-a-game.md"


class Says:
    """Answers the same whatever it is asked."""

    def __init__(self, name: str, response: str) -> None:
        self.name, self.response, self.settings = name, response, {"response": response}

    def act(self, requests):
        return [Turn(response=self.response) for _ in requests]


def players(scenario):
    """Of those who don't read: the mute one, one that talks, constants, and the best one."""
    constants = SCENARIOS[scenario].game().actions[:MOST_CONSTANTS]
    talker = Says("talker", "As a language model, I would rather not say.")
    always = [Says(f"always-{place}", f"<action>{one}</action>") for place, one in enumerate(constants)]
    return [Says("mute", ""), talker, "blind", *always]


def scored(scenario, agents, episodes, **options):
    results = benchmark.evaluate(agents, scenarios=scenario, episodes=episodes, quiet=True, **options)
    return {row["agent"]: row for row in results.leaderboard().scores}


@pytest.mark.slow
def test_a_mute_player_is_last_overall_and_told_so(workplace):
    agents = [Says("mute", ""), "random", "blind", "greedy"]
    results = benchmark.evaluate(agents, scenarios=["frozen-lake", "snake"], episodes=25, quiet=True)
    board = results.leaderboard()
    rows = {row["agent"]: row for row in board.overall}
    assert rows["greedy"]["rank"] == 1
    for name in ("mute", "random", "blind"):
        assert (rows[name]["rank"], rows[name]["tied"], rows[name]["above_blind"]) == (2, True, False)
        assert rows[name]["normalized"]["low"] == 0.0
    told = str(board).rpartition("no better than blind play, within chance: ")[2].partition("\n")[0]
    assert sorted(told.split(", ")) == ["blind", "mute", "random"]


@pytest.mark.slow
def test_in_the_tutorial_a_mute_model_doesnt_rank_first(workplace, monkeypatch):
    """The games of docs/tutorials/add-a-game.md, as written there: mute ranked first."""
    monkeypatch.syspath_prepend(str(workplace))
    cells = re.findall(r"%%writefile (\w+)\.py\n(.*?)```", TUTORIAL.read_text(), flags=re.DOTALL)
    assert [name for name, _ in cells] == ["my_games", "my_solved_games"]
    for name, code in cells:
        Path(f"{name}.py").write_text(code)
    try:
        for scenario in ("my_solved_games:SolvedDice-v0", "my_games:StopTheDice-v0"):
            agents = [Says("mute", ""), "random", "blind"]
            solved = scenario.startswith("my_solved")
            rows = scored(scenario, [*agents, *(["planner"] if solved else [])], 100)
            if solved:
                assert (rows["planner"]["rank"], rows["planner"]["tied"]) == (1, False)
                assert rows["mute"]["rank"] > 1
                assert rows["mute"]["above_blind"] is False
                assert rows["mute"]["normalized"]["value"] < 0.1
            else:  # nobody knows what play is worth, so there is no score that a mute player could have
                assert {row["normalized"] is None for row in rows.values()} == {True}
    finally:
        for name, _ in cells:
            sys.modules.pop(name, None)
