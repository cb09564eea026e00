"""At which decisions a player loses value: told apart for players whose faults are known."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import benchmark
from agents.baselines.scripted_player import Choice, ScriptedPlayer
from agents.baselines.search import PlannerPlayer, search_player_of
from agents.turn import TurnRequest
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import replay, requests_of
from benchmark.score import move_losses
from tests.benchmark.stubborn_players import Mute
from textgames import SCENARIOS
from textgames.yardsticks import find_yardstick

GAMES = ("taxi", "frozen-lake-slippery", "tic-tac-toe", "snake")
EPISODES = 6


class BadStart(ScriptedPlayer):
    """Plays perfectly after a first move that is the worst there is."""

    name = "bad-start"

    def __init__(self) -> None:
        self._planner = PlannerPlayer()

    def choose(self, request: TurnRequest) -> Choice:
        if request.steps_left != SCENARIOS["taxi"].horizon:
            return self._planner.choose(request)
        values = search_player_of(request.game).values(request)
        return Choice(min(values, key=values.__getitem__), "Somebody has to.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("skill")
        patch.setenv("TEXTBENCH_CACHE_DIR", str(place / "cache"))
        agents = {name: name for name in ("random", "greedy", "planner")}
        benchmark.evaluate(agents, scenarios=GAMES, episodes=EPISODES, out=place / "run", quiet=True)
        yield place / "run"


def profile(*folders: Path) -> dict[tuple[str, str], Any]:
    rows = benchmark.read_results(*folders, quiet=True).leaderboard().document["skill"]
    return {(row["agent"], row["scenario"]): row for row in rows}


@pytest.mark.slow
def test_who_loses_nothing_has_no_row_and_greedy_loses_where_it_errs(folder: Path) -> None:
    rows = profile(folder)
    assert {agent for agent, _ in rows} == {"random", "greedy"}
    assert {scenario for _, scenario in rows} == set(GAMES) - {"snake"}  # whose values nobody knows
    for game in ("taxi", "frozen-lake-slippery", "tic-tac-toe"):
        assert rows["greedy", game]["kinds"]["greedy"]["lost"]["value"] == pytest.approx(1.0)
        assert rows["greedy", game]["kinds"]["greedy"]["decisions"] < 0.8
        assert 0 < rows["random", game]["kinds"]["greedy"]["lost"]["value"] < 1
    # one seed has as many games as there are other agents and seats
    assert rows["random", "tic-tac-toe"]["episodes"] == 2 * 2 * EPISODES
    assert rows["random", "taxi"]["episodes"] == EPISODES


@pytest.mark.slow
def test_every_share_is_that_of_a_count_by_hand(folder: Path) -> None:
    scenario = SCENARIOS["frozen-lake-slippery"]._replace(protocol="random")
    yardstick = find_yardstick(scenario.game())
    assert yardstick is not None
    lost = dict.fromkeys(("all", "first", "last", "only"), 0.0)
    counted = dict.fromkeys(lost, 0)
    for record in RunFolder.open(folder).records():
        if record.scenario != scenario.name or record.agents["player_0"] != "random":
            continue
        played = replay(record, scenario)
        for number, step in enumerate(played.steps):
            values = yardstick.values(played.states[number], step.steps_left, "player_0")
            ordered = sorted(values.values())
            is_one = {
                "all": True,
                "first": number == 0,
                "last": number == len(played.steps) - 1,
                "only": ordered[-1] - ordered[-2] > 1e-9,
            }
            for kind, is_it in is_one.items():
                lost[kind] += is_it * (ordered[-1] - values[step.action])
                counted[kind] += is_it
    row = profile(folder)["random", scenario.name]
    assert row["lost"]["value"] == pytest.approx(lost["all"] / EPISODES)
    for kind in ("first", "last", "only"):
        shares = row["kinds"][kind]
        assert shares["lost"]["value"] == pytest.approx(lost[kind] / lost["all"])
        assert shares["lost"]["low"] <= shares["lost"]["value"] <= shares["lost"]["high"]
        assert shares["decisions"] == pytest.approx(counted[kind] / counted["all"])


@pytest.mark.parametrize(
    "hidden", [("bandit", "guess-number"), pytest.param(("mastermind", "word-guess"), marks=pytest.mark.slow)]
)
def test_where_something_is_hidden_values_are_of_what_is_known(workplace: Path, hidden: tuple[str, ...]) -> None:
    """The planner plays these games as well as anybody can who doesn't know the secret, and so loses nothing."""
    results = benchmark.evaluate({"random": "random", "planner": "planner"}, scenarios=hidden, episodes=4, quiet=True)
    rows = {(row["agent"], row["scenario"]): row for row in results.leaderboard().document["skill"]}
    assert set(rows) == {("random", name) for name in hidden}
    for name in hidden:
        scenario = SCENARIOS[name]._replace(protocol="random")
        game = scenario.game()
        lost = 0.0
        for record in RunFolder.open(results.folders[0]).records():
            if record.scenario == name and record.agents["player_0"] == "random":
                for step, request in requests_of(replay(record, scenario)):
                    values = search_player_of(game).values(request)
                    lost += max(values.values()) - values[step.action]
        assert rows["random", name]["lost"]["value"] == pytest.approx(lost / 4)
        assert lost > 1


def test_a_player_that_only_begins_badly_is_told_so(workplace: Path) -> None:
    results = benchmark.evaluate(BadStart(), scenarios="taxi", episodes=EPISODES, quiet=True)
    (row,) = results.leaderboard().document["skill"]
    assert row["kinds"]["first"]["lost"]["value"] == pytest.approx(1.0)
    assert row["kinds"]["last"]["lost"]["value"] == pytest.approx(0.0)
    assert row["kinds"]["first"]["decisions"] < 0.2


@pytest.mark.parametrize("protocol", ["forfeit", "random"])
def test_what_cannot_be_read_loses_all_that_a_mute_player_loses(workplace: Path, protocol: str) -> None:
    results = benchmark.evaluate({"mute": Mute()}, scenarios="taxi", episodes=4, protocol=protocol, quiet=True)
    (row,) = results.leaderboard().document["skill"]
    assert row["lost"]["value"] > 1
    assert row["kinds"]["unread"]["lost"]["value"] == pytest.approx(1.0)
    assert row["kinds"]["unread"]["decisions"] == 1.0


@pytest.mark.slow
def test_it_is_worked_out_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = profile(folder)
    monkeypatch.setattr(move_losses, "replay", None)  # nothing is played again
    assert profile(folder) == first
    monkeypatch.undo()
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(folder.parent / "another"))
    shutil.copytree(folder, folder.parent / "copy")
    assert profile(folder.parent / "copy") == first
