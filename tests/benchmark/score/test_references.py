"""References and losses of moves are kept in the cache until anything that decides them changes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import benchmark
from benchmark.runs.plan import find_scenarios
from benchmark.score import move_losses
from benchmark.score.cache import cache_file
from benchmark.score.move_losses import VALUE_LOST
from benchmark.score.results import read_columns
from tests.benchmark.helpers import change_manifest

ROOT = Path(__file__).parents[3]

GAME = """
from coin_rules import PAYS
from textgames import TSMG, register


class Coin(TSMG):
    actions = ("heads", "tails")

    def initial_state(self, rng):
        return 0

    def transition(self, state, joint_action, rng):
        return 1, {"player_0": PAYS[joint_action["player_0"]]}, True

    def observe(self, state, player):
        return "Heads or tails?"

    def instructions(self, player):
        return "Name a side."


register("Coin-v0", "coin_game:Coin", max_steps=1)
"""
SEARCH = """
from agents.baselines.search import SearchPlayer, register_search_player


class CoinSearch(SearchPlayer):
    def __init__(self, game):
        self.game = game

    def values(self, request):
        return {"heads": 0.0, "tails": 1.0}


register_search_player("coin_game:Coin", "coin_search:CoinSearch")
"""


@pytest.fixture
def checkout(tmp_path):
    """A copy of the source code beside a user's own game, in which files can be changed."""
    for package in ("textgames", "agents", "benchmark"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("weights", "__pycache__"))
    (tmp_path / "coin_game.py").write_text(GAME)
    (tmp_path / "coin_rules.py").write_text("PAYS = {'heads': 0.0, 'tails': 1.0}\n")
    (tmp_path / "coin_search.py").write_text(SEARCH)
    return tmp_path


@pytest.mark.slow
def test_the_game_the_players_and_the_loop_all_count_and_nothing_is_kept_of_a_notebook(checkout):
    """A module that only the game imports counts, too; nothing tells whether a class without a file has changed."""
    changed = (
        *("textgames/tsmg.py", "textgames/snake/solver.py"),
        *("agents/baselines/search.py", "agents/loop/live.py", "agents/episode.py"),
        *("coin_game.py", "coin_search.py", "coin_rules.py"),
    )
    code = (
        "from benchmark.runs.plan import find_scenarios\n"
        "from benchmark.score.cache import _playing_digest, cache_file\n"
        "from textgames.scenarios import Scenario\n"
        "scenario = find_scenarios(['coin_game:Coin-v0'])['coin_game:Coin-v0']\n"
        "import coin_search\n"
        f"for file in {changed}:\n"
        "    before = cache_file('planner', scenario)\n"
        "    assert before == cache_file('planner', scenario)\n"
        "    with open(file, 'a') as stream:\n"
        "        stream.write('# changed')\n"
        "    _playing_digest.cache_clear()\n"  # as another command would have it
        "    assert before != cache_file('planner', scenario), file\n"
        + GAME.replace("coin_game:Coin", "__main__:Coin").replace("Coin-v0", "Typed-v0")
        + "assert cache_file('random', Scenario('coin', 'Typed-v0', {}, 1, 0)) is None\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(checkout), "TEXTBENCH_CACHE_DIR": str(checkout / "cache")}
    done = subprocess.run([sys.executable, "-c", code], cwd=checkout, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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
