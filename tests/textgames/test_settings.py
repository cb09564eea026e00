"""Settings that no game takes are refused by an error that names them, quotes the value, and says what is accepted."""

import inspect
import re
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import textgames
from textgames import SCENARIOS
from textgames.environments.rules import load_game
from textgames.registry import game_of, registered_ids, settings_of
from textgames.settings import MOST, taken_by

NAN = float("nan")
# Upper bounds of whole numbers are tried below, values of a wrong type in test_every_scenario.py.
WRONG: dict[str, list[tuple[dict[str, Any], str]]] = {
    "TextBandit-v0": [
        ({"prior": "gausian"}, "got 'gausian' (did you mean 'gaussian'?)"),
        ({"gap": 1.0}, "gap must be a number above 0 and below 1, got 1.0"),
    ],
    "TextCleanup-v0": [
        ({"map": ("PPPA",)}, "needs a river"),
        ({"dirt_chance": 1.5}, "dirt_chance must be a number from 0 to 1, got 1.5"),
    ],
    "TextConnectFour-v0": [
        ({"rows": 0}, "rows must be a whole number from 1 to 12, got 0"),
        ({"rows": 3, "columns": 3}, "no line of 4 fits on a board of 3 rows and 3 columns"),
    ],
    "TextContextualBandit-v0": [({"noise": -1.0}, "noise must be a number from 0 to 10, got -1.0")],
    "TextFrozenLake-v0": [
        ({"size": 1}, "size must be a whole number from 2 to 100, got 1"),
        ({"frozen_probability": 0}, "frozen_probability must be above 0, got 0"),
        ({"frozen_probability": NAN}, "got nan"),
        ({"success_rate": 1.5}, "success_rate must be a number from 0 to 1, got 1.5"),
        ({"desc": "SFFG"}, "desc must be a sequence of rows"),
        ({"desc": ["SF", "G"]}, "the same length"),
        ({"desc": ["SX", "FG"]}, "['X']"),
        ({"desc": ["FF", "FG"]}, "needs a start tile"),
        ({"coordinates": False, "relative": True}, "needs coordinates=True"),
        ({"coordinates": False, "grid": False}, "the player would see nothing"),
    ],
    "TextGathering-v0": [
        ({"preset": "dual"}, "got 'dual'; did you mean 'duel'"),
        ({"num_players": 3}, "2 starts (P), too few for num_players=3"),
        ({"beam_width": 2}, "beam_width must be odd, with the player's own lane in the middle, got 2"),
        ({"map": ("PX", "PA")}, "got 'X'"),
        ({"map": ("PP",)}, "no apple cell"),
        ({"map": ("PA", "P")}, "rows of one length"),
    ],
    "TextGuessNumber-v0": [({"numbers": 1}, "numbers must be a whole number from 2 to 1000, got 1")],
    "TextLiarsDice-v0": [({"num_sides": 1}, "num_sides must be a whole number from 2 to 10, got 1")],
    "TextMastermind-v0": [
        ({"pegs": 6, "colours": 8}, "pegs=6 and colours=8 give 262144 codes; at most 5000"),
    ],
    "TextMatrixGame-v0": [
        ({"matrix": "prisoner"}, "did you mean 'prisoners-dilemma'"),
        ({"opponent": "grim", "matrix": "shapley"}, "one of tit-for-tat, uniform, hedge, always-rock"),
    ],
    "TextNim-v0": [
        ({"heaps": heaps}, "heaps must be one to eight whole numbers from 1 to 20, got")
        for heaps in ((), (0, 3), (21,), (True,), "34", (1,) * 9)
    ],
    "TextOnlineLearning-v0": [({"pattern": "sinus"}, "got 'sinus' (did you mean 'sine'?)")],
    "TextSlidingPuzzle-v0": [
        ({"min_distance": 9}, "got 9 and 8"),
        ({"max_moves": 7}, "max_moves must be at least max_distance, 8, got 7"),
        ({"step_reward": 0.1}, "step_reward must be a finite number of at most 0"),
    ],
    "TextSnake-v0": [
        ({"num_players": 5, "num_opponents": 5}, "at most 9 snakes"),
        ({"width": 2, "height": 3}, "width=2 and height=3 make 6 cells, but 2 snakes and 5 pieces"),
        ({"coordinates": False, "grid": False}, "coordinates=False and grid=False"),
        ({"grid": False, "axes": True}, "axes=True numbers the rows of the grid, so it needs grid=True"),
    ],
    "TextSokoban-v0": [
        ({"boxes": 3, "size": 7}, "size=7 with boxes=3 has too many positions"),
    ],
    "TextTaxi-v0": [({"rainy_probability": 1.5}, "rainy_probability must be a number from 0 to 1, got 1.5")],
    "TextWerewolf-v0": [({"wolves": 5}, "got wolves=5 and 5 others"), ({"villagers": 11}, "at most 12 play")],
}


@pytest.mark.parametrize("env_id", WRONG)
def test_wrong_settings_are_named(env_id):
    for settings, message in WRONG[env_id]:
        with pytest.raises(ValueError, match=re.escape(message)):
            game_of(env_id, **settings)


def test_games_with_numbers_among_their_settings_are_here():
    unchecked = {"TextKuhnPoker-v0", "TextLeducPoker-v0", "TextTicTacToe-v0", "TextBlackjack-v0", "TextCliffWalking-v0"}
    assert {each.env_id for each in SCENARIOS.values()} - set(WRONG) <= unchecked | {"TextWordGuess-v0"}
    game_of("TextFrozenLake-v0", frozen_probability=np.float16(0.75))  # a short number of numpy's is a number


def taking(model: str, /, *more: str, size: int = 3, slippery: bool = True) -> None: ...


def open_to_all(model: str, size: int = 3, **options: Any) -> None: ...


def test_settings_are_the_parameters_that_have_a_name_after_the_first_arguments():
    assert {name: one.default for name, one in taken_by(taking).named.items()} == {"size": 3, "slippery": True}
    assert list(taken_by(open_to_all, arguments=1).named) == ["size"]
    assert [taken_by(one).others for one in (taking, open_to_all)] == [False, True]


OF_OPENSPIEL = {"hex": "board_size", "goofspiel": "num_cards", "pig": "horizon", "kuhn_poker": "players"}


def whole_settings(id: str) -> list[str]:
    """The settings of a game that are whole numbers, by their annotations and their defaults."""
    found = []
    for name, parameter in inspect.signature(load_game(settings_of(id)["game"])).parameters.items():
        words = set(re.findall(r"\w+", str(parameter.annotation)))
        number = isinstance(parameter.default, int) and not isinstance(parameter.default, bool)
        if number or parameter.annotation is int or (words & {"int"} and "Sequence" not in words):
            found.append(name)
    return found


# before any test registers a game of its own
GAMES = [id for id in registered_ids() if not id.startswith(("OpenSpiel", "Test"))]


@pytest.mark.parametrize("absurd", [10**9, 10**30])
def test_an_absurd_size_is_one_error_in_every_game(absurd):
    """It costs no memory and no minutes; a limit that is never reached takes nothing."""
    tried = {(id, name) for id in GAMES for name in (*whole_settings(id), "num_envs")}
    assert {("TextFrozenLake-v0", "size"), ("TextSnake-v0", "width")} < tried
    assert len(tried) > 60
    settings = [(id, name, {name: absurd}) for id, name in sorted(tried)]
    for game, name in OF_OPENSPIEL.items():
        settings.append(("OpenSpiel-v0", name, {"name": game, "parameters": {name: absurd}}))
    for id, name, given in settings:
        with pytest.raises(ValueError, match=f"{name} must be a whole number from .*got {absurd}"):
            gym.make_vec(id, **{"num_envs": 1, **given}, vectorization_mode="vector_entry_point").reset(seed=0)
    for id in GAMES:
        assert textgames.parallel_env(id, max_steps=absurd).reset(seed=0)


@pytest.mark.parametrize(
    ("id", "name", "most"),
    [("TextFrozenLake-v0", "size", 100), ("TextSnake-v0", "width", 100), ("TextBandit-v0", "rounds", MOST)],
)
def test_the_largest_that_is_accepted_can_be_played(id, name, most):
    env = gym.make(id, **{name: most})
    _, info = env.reset(seed=0)
    env.step(info["legal_actions"][0])
    with pytest.raises(ValueError, match=f"{name} must be a whole number from [12] to {most}, got {most + 1}"):
        gym.make(id, **{name: most + 1})
