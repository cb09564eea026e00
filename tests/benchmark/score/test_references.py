"""References and losses of moves are kept in the cache until anything that decides them changes."""

import shutil
from importlib.resources import files
from pathlib import Path

import pytest

import benchmark
from benchmark.runs.plan import find_scenarios
from benchmark.score import move_losses
from benchmark.score.cache import PLAYING, cache_file
from benchmark.score.move_losses import VALUE_LOST
from benchmark.score.results import read_columns
from tests.benchmark.helpers import change_manifest
from textgames.scenarios import Scenario
from textgames.snake import Snake

GAME = """
import coin_rules
from textgames import register
from textgames.frozen_lake import FrozenLake


class Coin(FrozenLake):
    pass


register("Coin-v0", "coin_game:Coin", max_steps=1)
"""


def test_the_game_the_players_and_the_loop_all_count_and_nothing_is_kept_of_a_notebook(workplace, monkeypatch):
    """A module that only the game imports counts, too; nothing tells whether a class without a file has changed."""
    counted = {str(file) for name, pattern in PLAYING for file in Path(str(files(name))).glob(pattern)}
    for part in ("textgames/snake/solver.py", "agents/baselines/search.py", "agents/loop/live.py", "agents/episode.py"):
        assert any(file.endswith(part) for file in counted), part
    monkeypatch.syspath_prepend(str(workplace))
    Path("coin_rules.py").write_text("PAYS = 1\n")
    Path("coin_game.py").write_text(GAME)
    scenario = find_scenarios(["coin_game:Coin-v0"])["coin_game:Coin-v0"]
    before = cache_file("planner", scenario)
    assert before == cache_file("planner", scenario)
    Path("coin_rules.py").write_text("PAYS = 10\n")
    assert cache_file("planner", scenario) != before
    monkeypatch.setattr(
        "textgames.scenarios.Scenario.game", lambda self: type("Typed", (Snake,), {"__module__": "x"})()
    )
    assert cache_file("random", Scenario("coin", "Coin-v0", {}, 1, 0)) is None


def test_settings_and_agents_have_files_of_their_own(workplace):
    scenarios = find_scenarios(["snake", "snake-long", "snake-poison"]).values()
    files = {cache_file(agent, scenario) for scenario in scenarios for agent in ("random", "planner")}
    assert len(files) == 6
    assert None not in files


@pytest.fixture(scope="module")
def played_once(tmp_path_factory):
    place = tmp_path_factory.mktemp("losses")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXTBENCH_CACHE_DIR", str(place / "cache"))
        benchmark.evaluate(
            ["planner", "random"], scenarios=["tic-tac-toe"], episodes=2, out=place / "played", quiet=True
        )
    return place / "played"


@pytest.fixture
def played(workplace, played_once, monkeypatch):
    """A run of which nothing is kept yet."""
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(workplace / "cache"))
    return Path(shutil.copytree(played_once, workplace / "played"))


def lost(folder: Path) -> dict[str, list[float]]:
    cells = read_columns([folder]).cells
    return {agent: list(cell.metrics.get(VALUE_LOST, ())) for (agent, _), cell in cells.items()}


def kept(folder: Path) -> list[Path]:
    return sorted((folder.parent / "cache").glob("losses-*.json"))


@pytest.mark.slow
def test_it_is_worked_out_once_and_kept(played, monkeypatch):
    first = lost(played)
    assert set(first["planner"]) == {0.0} != set(first["random"])
    assert len(kept(played)) == 1
    monkeypatch.setattr(move_losses, "replay_if_unchanged", None)  # nothing is played again
    assert lost(played) == first
    monkeypatch.undo()
    for file in kept(played):
        file.write_text("garbage")
    assert lost(played) == first


def test_nothing_is_kept_of_a_run_that_is_being_played(played):
    first = lost(played)
    change_manifest(played, lambda manifest: manifest["sessions"][-1].update(finished=None))
    shutil.rmtree(played.parent / "cache")
    assert lost(played) == first
    assert kept(played) == []


def test_more_episodes_than_it_is_told_of_are_left_out(played, monkeypatch):
    whole = lost(played)
    shutil.rmtree(played.parent / "cache")
    monkeypatch.setattr(move_losses, "LIMIT", 1)
    known = [value == value for value in lost(played)["random"]]
    assert sum(known) == 1 < len(whole["random"])
    monkeypatch.undo()
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(played.parent / "cache"))
    assert lost(played) == whole  # what was left out is no answer that was kept
