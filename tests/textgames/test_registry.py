"""Registering a game of one's own, and the scenarios, which are the table of the specification."""

import importlib
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import textgames
import textgames.extras
from tests.textgames.own_game import OwnGame
from textgames import SCENARIOS, SUITES, TRAINING_SEEDS
from textgames.environments.parallel import TextParallelEnv
from textgames.environments.solo import TextGameEnv
from textgames.extras import install_command, missing_packages
from textgames.frozen_lake import FrozenLake
from textgames.ladders import ladder_of
from textgames.registry import shared_game
from textgames.scenarios import ABOUT_SUITES, LITTLE_HEADROOM
from textgames.solving.value_iteration import ValueIteration
from textgames.twins import vocabulary_digest

ROOT = Path(__file__).parents[2]
MODULE = """
import textgames
from tests.textgames.own_game import OwnGame

class Own(OwnGame):
    actions = ("go",)

    def observe(self, state, player):
        return "VERSION 1"

textgames.register("TestOwn-v0", Own, max_steps=5)
"""


def test_a_module_that_is_loaded_again_replaces_its_game(tmp_path, monkeypatch):
    file = tmp_path / "own_game_module.py"
    file.write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("own_game_module")
    before = shared_game("TestOwn-v0", {})
    textgames.register_vocabulary(module.Own, "nim")
    place = textgames.registered_ids().index("TestOwn-v0")
    file.write_text(MODULE.replace("VERSION 1", "VERSION 22").replace("max_steps=5", "max_steps=2"))
    importlib.reload(module)
    env: Any = gym.make("TestOwn-v0")
    assert env.reset()[0] == "VERSION 22"
    assert env.unwrapped.rules.max_steps == 2
    assert vocabulary_digest(module.Own(), 1)  # what was registered for the class goes on with its name
    assert shared_game("TestOwn-v0", {}) is not before
    assert textgames.parallel_env("TestOwn-v0").reset()[0] == {"player_0": "VERSION 22"}
    assert textgames.registered_ids().index("TestOwn-v0") == place
    textgames.register("TestMisspeltClass-v0", "textgames.frozen_lake:FrozenLak")  # it may be corrected
    textgames.register("TestMisspeltClass-v0", "textgames.frozen_lake:FrozenLake", max_steps=5)
    assert isinstance(textgames.game_of("TestMisspeltClass-v0"), FrozenLake)
    for taken, game in (("TestOwn-v0", "textgames.frozen_lake:FrozenLake"), ("TextNim-v0", module.Own)):
        with pytest.raises(ValueError, match=f"'{taken}' is already registered"):
            textgames.register(taken, game)


class Plain(OwnGame):
    actions = ("go",)


class HasMaxCycles(Plain):
    def __init__(self, *, max_cycles: int = 10) -> None:
        self.max_cycles = max_cycles


def test_a_setting_that_environments_have_is_refused():
    with pytest.raises(ValueError, match=r"^HasMaxCycles has a setting 'max_cycles', but that is .*: max_steps, "):
        textgames.register("TestHasMaxCycles-v0", HasMaxCycles)
    with pytest.raises(ValueError, match="that is a setting of its environments; call the game's own otherwise"):
        TextGameEnv(f"{__name__}:HasMaxCycles")


def test_tables_are_looked_for_when_they_are_registered(tmp_path, monkeypatch):
    for register in (textgames.register_vocabulary, textgames.register_ladder):
        with pytest.raises(ValueError, match=r"there is no file 'nofile\.toml'"):
            register(Plain, "nofile.toml")
    assert not textgames.has_twins(Plain())
    assert ladder_of(Plain) is None
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text('scenario = "own"\n[[levels]]\nsettings = {}\nhorizon = 3\n')
    textgames.register_ladder(HasMaxCycles, "own.toml")
    monkeypatch.chdir(tmp_path.parent)
    ladder = ladder_of(HasMaxCycles)
    assert ladder is not None
    assert (ladder.level(1).horizon, ladder.level(1).tolerance) == (3, None)  # nobody has measured it


class Numbered(FrozenLake):
    actions = (0, 1)  # type: ignore[assignment]


class Lost(FrozenLake): ...


def test_what_is_no_game_is_refused_with_what_would_be():
    lake = gym.make("TextFrozenLake-v0")
    how = r"textgames\.game_of\(id\), or take an environment's, env\.unwrapped\.game"
    a_game = "a game is a class of textgames.TSMG, or 'module:Class' of one, got"
    textgames.register_yardstick(Lost, "nope:No")
    for error, message, ask in (
        (ValueError, "an id is a text such as 'MyGame-v0', got None", lambda: textgames.register(None, FrozenLake)),
        (ValueError, "an id is a text .* got 'My game'", lambda: textgames.register("My game", FrozenLake)),
        (ValueError, f"{a_game} <class 'dict'>", lambda: textgames.register("NoGame-v0", dict)),
        (ValueError, f"{a_game} 'FrozenLake'", lambda: textgames.register("NoGame-v0", "FrozenLake")),
        (TypeError, "'module:Class'", lambda: textgames.register_yardstick("TextFrozenLake-v0", "a:b")),
        (TypeError, "'module:name' of one", lambda: textgames.register_yardstick(FrozenLake, "x")),
        (ImportError, "'nope:No', registered for Lost, can't be", lambda: textgames.find_yardstick(Lost())),
        (TypeError, how, lambda: textgames.find_yardstick("TextFrozenLake-v0")),
        (TypeError, how, lambda: textgames.twin_of(lake, 1)),
        (ValueError, "that a player can write, such as 'left', got 0", lambda: Numbered().action_names),
    ):
        with pytest.raises(error, match=message):
            ask()
    assert "NoGame-v0" not in textgames.registered_ids()


TABLE = {
    # name: id, horizon, first seed, training
    "frozen-lake": ("TextFrozenLake-v0", 8, 10_000, True),
    "frozen-lake-slippery": ("TextFrozenLake-v0", 15, 20_000, False),
    "frozen-lake-big": ("TextFrozenLake-v0", 20, 30_000, False),
    "snake": ("TextSnake-v0", 8, 40_000, True),
    "snake-long": ("TextSnake-v0", 20, 50_000, False),
    "snake-poison": ("TextSnake-v0", 20, 60_000, False),
    "snake-duel": ("TextSnake-v0", 30, 70_000, False),
}


def test_the_papers_table():
    table = {name: (s.env_id, s.horizon, s.first_seed, s.training) for name, s in SCENARIOS.items()}
    assert dict(list(table.items())[: len(TABLE)]) == TABLE
    assert [name for name, (*_, training) in table.items() if training] == ["frozen-lake", "snake"]
    lakes = {"frozen-lake": (4, 0.8, False), "frozen-lake-slippery": (4, 0.9, True), "frozen-lake-big": (8, 0.8, False)}
    for name, settings in lakes.items():
        kwargs = SCENARIOS[name].kwargs
        assert (kwargs["size"], kwargs["frozen_probability"], kwargs["is_slippery"]) == settings
    poison = SCENARIOS["snake-poison"].kwargs
    assert (poison["num_apples"], poison["apple_reward"], poison["num_bananas"]) == (3, -1.0, 3)
    for name in lakes:  # the large lake was slippery once, and perfect play reached its goal in one episode of 2,000
        scenario, solver = SCENARIOS[name], ValueIteration(SCENARIOS[name].game())
        starts = [scenario.game().initial_state(np.random.default_rng(scenario.seed(episode))) for episode in range(50)]
        assert np.mean([solver.value(start, scenario.horizon, "player_0") for start in starts]) > 0.3


def test_no_evaluation_seed_is_a_training_seed():
    seeds = [s.seed(episode) for s in SCENARIOS.values() for episode in range(10_000)]
    assert len(set(seeds)) == len(seeds)
    assert not set(seeds) & set(TRAINING_SEEDS)


def test_suites_name_scenarios_which_are_read_only():
    assert SUITES["paper"] == ("frozen-lake", "frozen-lake-slippery", "snake", "snake-poison")
    assert {"blackjack", "prisoners-dilemma-tft"} == LITTLE_HEADROOM
    assert set(SUITES["all"]) == set(SCENARIOS) - LITTLE_HEADROOM
    assert set(SUITES) == set(ABOUT_SUITES) == {"paper", "planning", "exploration", "strategy", "social", "all"}
    for names in SUITES.values():
        assert len(set(names)) == len(names) >= 4
        assert set(names) <= set(SUITES["all"])
    for mapping in (SCENARIOS, SCENARIOS["snake"].kwargs):
        with pytest.raises(TypeError):
            mapping["num_apples"] = 1  # type: ignore[index]


def test_a_scenarios_environment_goes_by_the_players_of_its_game():
    duel = SCENARIOS["snake"].make(num_players=2, num_opponents=0)
    assert isinstance(duel, TextParallelEnv)
    assert (duel.rules.max_steps, SCENARIOS["snake"].parallel_env().rules.max_steps) == (8, 8)
    assert SCENARIOS["snake"].make(max_episode_steps=3, render_mode="ansi").spec.max_episode_steps == 3


def test_advice_is_the_command_that_the_pages_have(tmp_path, monkeypatch):
    """In a clone that of the README; what brings its own versions is installed without the tested ones."""
    assert install_command("local") == f'pip install -c constraints.txt -e ".[local]" (in {ROOT})'
    pages = "".join((ROOT / "docs" / page).read_text() for page in ("players.md", "recipes.md", "engines.md"))
    for extra in ("litellm", "vllm"):
        assert install_command(extra) == f'pip install -e ".[{extra}]" (in {ROOT})'
        assert f'pip install -e ".[{extra}]"' in pages
        assert f'-c constraints.txt -e ".[{extra}]"' not in pages
    assert missing_packages("numpy", "json", extra="local") is None
    assert missing_packages("numpy", "no_such_package", extra="local") == f"no_such_package: {install_command('local')}"
    monkeypatch.setattr(textgames.extras, "__file__", str(tmp_path / "site-packages" / "agents" / "extras.py"))
    assert install_command("vllm") == 'pip install "textbench[vllm]"'
