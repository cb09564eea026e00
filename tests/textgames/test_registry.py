"""Registering a game of one's own: again, with a setting that is taken, with a table that isn't there."""

import importlib
import re
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import pytest

import textgames
from textgames.environments.solo import TextGameEnv
from textgames.frozen_lake import FrozenLake
from textgames.ladders import ladder_of
from textgames.registry import shared_game
from textgames.twins import vocabulary_digest

MODULE = """
import textgames

class Own(textgames.TSMG[int]):
    actions = ("go",)

    def __init__(self, *, far: int = 3) -> None:
        self.far = far

    def initial_state(self, rng):
        return 0

    def transition(self, state, joint_action, rng):
        return state + 1, {"player_0": 0.0}, state + 1 >= self.far

    def observe(self, state, player):
        return "VERSION 1"

    def instructions(self, player):
        return "Say go."

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
    env = gym.make("TestOwn-v0")
    assert env.reset()[0] == "VERSION 22"
    assert env.unwrapped.rules.max_steps == 2  # type: ignore[attr-defined]
    assert vocabulary_digest(module.Own(), 1)  # what was registered for the class goes on with its name
    assert shared_game("TestOwn-v0", {}) is not before
    assert isinstance(shared_game("TestOwn-v0", {}), module.Own)
    assert textgames.parallel_env("TestOwn-v0").reset()[0] == {"player_0": "VERSION 22"}
    assert textgames.registered_ids().index("TestOwn-v0") == place
    with pytest.raises(ValueError, match="'TestOwn-v0' is already registered"):
        textgames.register("TestOwn-v0", "textgames.frozen_lake:FrozenLake")
    with pytest.raises(ValueError, match="'TextNim-v0' is already registered"):
        textgames.register("TextNim-v0", module.Own)


class Plain(textgames.TSMG[int]):
    actions = ("go",)

    def initial_state(self, rng: Any) -> int:
        return 0

    def transition(self, state: int, joint_action: Mapping[str, str], rng: Any) -> tuple[int, dict[str, float], bool]:
        return state, {"player_0": 0.0}, True

    def observe(self, state: int, player: str) -> str:
        return "Go."

    def instructions(self, player: str) -> str:
        return "Say go."


class HasMaxSteps(Plain):
    def __init__(self, *, max_steps: int = 10) -> None:
        self.max_steps = max_steps


class HasMaxCycles(Plain):
    def __init__(self, *, max_cycles: int = 10) -> None:
        self.max_cycles = max_cycles


class HasTable(Plain):
    pass


@pytest.mark.parametrize("game", [HasMaxSteps, HasMaxCycles])
def test_a_setting_that_environments_have_is_refused(game):
    with pytest.raises(ValueError, match=rf"^{game.__name__} has a setting 'max_\w+', but that is .*: max_steps, "):
        textgames.register(f"Test{game.__name__}-v0", game)
    with pytest.raises(ValueError, match="that is a setting of its environments; call the game's own otherwise"):
        TextGameEnv(f"{__name__}:{game.__name__}")


@pytest.mark.parametrize("register", [textgames.register_vocabulary, textgames.register_ladder])
def test_a_table_must_be_there_when_it_is_registered(register):
    with pytest.raises(ValueError, match=r"there is no file 'nofile\.toml'"):
        register(Plain, "nofile.toml")
    assert not textgames.has_twins(Plain())
    assert ladder_of(Plain) is None


def test_a_table_is_found_from_another_folder_later(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.toml").write_text('scenario = "own"\n[[levels]]\nsettings = {}\nhorizon = 3\n')
    textgames.register_ladder(HasTable, "own.toml")
    monkeypatch.chdir(tmp_path.parent)
    ladder = ladder_of(HasTable)
    assert ladder is not None
    assert ladder.level(1).horizon == 3


@pytest.mark.parametrize(
    "ask", [textgames.find_yardstick, textgames.has_twins, lambda game: textgames.twin_of(game, 1)]
)
@pytest.mark.parametrize("given", ["TextFrozenLake-v0", gym.make("TextFrozenLake-v0")])
def test_who_gives_no_game_is_told_how_to_get_one(ask, given):
    with pytest.raises(TypeError, match=r"textgames\.game_of\(id\), or take an environment's, env\.unwrapped\.game"):
        ask(given)


def test_an_entry_that_cant_be_imported_names_its_game():
    class Lost(FrozenLake): ...

    textgames.register_yardstick(Lost, "nope:No")
    with pytest.raises(ImportError, match="'nope:No', registered for Lost, can't be imported: No module named 'nope'"):
        textgames.find_yardstick(Lost())


@pytest.mark.parametrize(
    ("id", "game", "message"),
    [
        (None, FrozenLake, "an id is a text such as 'MyGame-v0', got None"),
        ("My game v0", FrozenLake, "an id is a text such as 'MyGame-v0', got 'My game v0'"),
        ("NoGame-v0", 5, "a game is a class of textgames.TSMG, or 'module:Class' of one, got 5"),
        ("NoGame-v0", dict, "a game is a class of textgames.TSMG, or 'module:Class' of one, got <class 'dict'>"),
        ("NoGame-v0", "FrozenLake", "a game is a class of textgames.TSMG, or 'module:Class' of one, got 'FrozenLake'"),
    ],
)
def test_what_is_no_game_isnt_registered(id, game, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        textgames.register(id, game)
    assert "NoGame-v0" not in textgames.registered_ids()


def test_a_misspelt_class_can_be_corrected_under_its_id():
    textgames.register("TestMisspeltClass-v0", "textgames.frozen_lake:FrozenLak")
    textgames.register("TestMisspeltClass-v0", "textgames.frozen_lake:FrozenLake", max_steps=5)
    assert isinstance(textgames.game_of("TestMisspeltClass-v0"), FrozenLake)
    with pytest.raises(ValueError, match="already registered"):
        textgames.register("TestMisspeltClass-v0", "textgames.snake:Snake")


def test_a_built_game_is_registered_again_by_the_same_line():
    for _ in range(2):
        textgames.register("TestBuilt-v0", FrozenLake())
    assert isinstance(textgames.game_of("TestBuilt-v0"), FrozenLake)


@pytest.mark.parametrize(
    ("game", "entry"), [("TextFrozenLake-v0", "a:b"), (5, "a:b"), (FrozenLake, 5), (FrozenLake, "x")]
)
def test_what_is_no_yardstick_isnt_registered(game, entry):
    with pytest.raises(TypeError, match=r"'module:Class'|'module:name' of one"):
        textgames.register_yardstick(game, entry)


def test_actions_that_nobody_can_write_are_refused():
    class Numbered(FrozenLake):
        actions = (0, 1)  # type: ignore[assignment]

    with pytest.raises(ValueError, match="action names are texts that a player can write, such as 'left', got 0"):
        _ = Numbered().action_names
