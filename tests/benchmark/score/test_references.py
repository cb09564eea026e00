"""References and losses of moves are kept in the cache until anything that decides them changes."""

from importlib.resources import files
from pathlib import Path

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
    scenarios = find_scenarios(["snake", "snake-long", "snake-poison"]).values()
    assert len({cache_file(agent, one) for one in scenarios for agent in ("random", "planner")} - {None}) == 6
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


def test_losses_are_worked_out_once_and_kept_unless_the_run_is_being_played(workplace, monkeypatch):
    cache, run = workplace / "cache", workplace / "run"
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(cache))
    benchmark.evaluate(["planner", "random"], scenarios="tic-tac-toe", episodes=2, out=run, quiet=True)

    def lost() -> dict[str, list[float]]:
        cells = read_columns([run]).cells
        return {agent: list(cell.metrics.get(VALUE_LOST, ())) for (agent, _), cell in cells.items()}

    def forget() -> None:
        for file in cache.glob("losses-*.json"):
            file.unlink()

    forget()
    with monkeypatch.context() as patch:  # what is beyond a limit is left out, and is no answer that is kept
        patch.setattr(move_losses, "LIMIT", 1)
        assert sum(value == value for value in lost()["random"]) == 1
    first = lost()
    assert set(first["planner"]) == {0.0} != set(first["random"])
    assert len(first["random"]) > 1
    (kept,) = cache.glob("losses-*.json")
    with monkeypatch.context() as patch:
        patch.setattr(move_losses, "replay_if_unchanged", None)  # nothing is played again
        assert lost() == first
    kept.write_text("garbage")
    assert lost() == first
    forget()
    change_manifest(run, lambda manifest: manifest["sessions"][-1].update(finished=None))
    assert lost() == first
    assert not [*cache.glob("losses-*.json")]
