"""Settings that no game takes are refused by an error that names them, quotes the value, and says what is accepted."""

import re
from typing import Any

import pytest

from textgames import SCENARIOS
from textgames.registry import game_of

NAN, INF = float("nan"), float("inf")
WRONG: dict[str, list[tuple[dict[str, Any], str]]] = {
    "TextBandit-v0": [
        ({"num_arms": 21}, "num_arms must be a whole number from 2 to 20, got 21"),
        ({"num_arms": True}, "got True"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to 10000, got 0"),
        ({"prior": "gausian"}, "got 'gausian' (did you mean 'gaussian'?)"),
        ({"gap": 1.0}, "gap must be a number above 0 and below 1, got 1.0"),
        ({"gap": "wide"}, "got 'wide'"),
        ({"scale": 0}, "scale must be a finite number above 0, got 0"),
        ({"story": "cars"}, "story must be one of buttons, ads, videos, clothes, got 'cars'"),
        ({"observation": None}, "observation must be one of summary, raw, got None"),
    ],
    "TextCleanup-v0": [
        ({"map": ("PPPA",)}, "needs a river"),
        ({"dirt_chance": 1.5}, "dirt_chance must be a number from 0 to 1, got 1.5"),
        ({"hit_reward": NAN}, "hit_reward must be a finite number"),
        ({"num_players": True}, "num_players must be a whole number from 2 to 10"),
    ],
    "TextConnectFour-v0": [
        ({"rows": 0}, "rows must be a whole number from 1 to 12, got 0"),
        ({"columns": 13}, "columns must be a whole number from 1 to 12, got 13"),
        ({"rows": 4.0}, "rows must be a whole number"),
        ({"connect": 1}, "connect must be a whole number from 2 to 12, got 1"),
        ({"rows": 3, "columns": 3}, "no line of 4 fits on a board of 3 rows and 3 columns"),
    ],
    "TextContextualBandit-v0": [
        ({"noise": -1.0}, "noise must be a number from 0 to 10, got -1.0"),
        ({"story": "buttons"}, "story must be one of videos, ads, clothes, got 'buttons'"),
        ({"num_arms": 1}, "num_arms must be a whole number from 2 to 20, got 1"),
    ],
    "TextFrozenLake-v0": [
        ({"size": 1}, "size must be a whole number from 2 to 100, got 1"),
        ({"size": 4.0}, "size must be a whole number"),
        ({"size": True}, "size must be"),
        ({"frozen_probability": 0.0}, "frozen_probability must be above 0, got 0.0"),
        ({"frozen_probability": NAN}, "got nan"),
        ({"success_rate": 1.5}, "success_rate must be a number from 0 to 1, got 1.5"),
        ({"desc": []}, "desc must be a sequence of rows"),
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
        ({"refill_rounds": 0}, "refill_rounds must be a whole number from 1 to 10000, got 0"),
        ({"map": ("PX", "PA")}, "got 'X'"),
        ({"map": ("PP",)}, "no apple cell"),
        ({"map": ("PA", "P")}, "rows of one length"),
    ],
    "TextGuessNumber-v0": [
        ({"numbers": wrong}, f"numbers must be a whole number from 2 to 1000, got {wrong}")
        for wrong in (1, 1001, 10.0, True)
    ],
    "TextLiarsDice-v0": [
        ({"num_dice": 0}, "num_dice must be a whole number from 1 to 5, got 0"),
        ({"num_dice": 6}, "got 6"),
        ({"num_sides": 1}, "num_sides must be a whole number from 2 to 10, got 1"),
        ({"num_sides": "6"}, "got '6'"),
    ],
    "TextMastermind-v0": [
        ({"pegs": 0}, "pegs must be a whole number from 1 to 6, got 0"),
        ({"colours": 9}, "colours must be a whole number from 2 to 8, got 9"),
        ({"pegs": 6, "colours": 8}, "pegs=6 and colours=8 give 262144 codes; at most 5000"),
        ({"max_guesses": 0}, "max_guesses must be a whole number from 1 to 10000, got 0"),
    ],
    "TextMatrixGame-v0": [
        ({"matrix": "prisoner"}, "did you mean 'prisoners-dilemma'"),
        ({"rounds": 0}, "rounds must be a whole number from 1 to 1000, got 0"),
        ({"opponent": "tit-for-tad"}, "got 'tit-for-tad' (did you mean 'tit-for-tat'?)"),
        ({"opponent": "grim", "matrix": "shapley"}, "one of tit-for-tat, uniform, hedge, always-rock"),
    ],
    "TextNim-v0": [
        ({"heaps": heaps}, "heaps must be one to eight whole numbers from 1 to 20, got")
        for heaps in ((), (0, 3), (21,), (1.5,), (True,), "34", (1,) * 9)
    ],
    "TextOnlineLearning-v0": [
        ({"pattern": "sinus"}, "got 'sinus' (did you mean 'sine'?)"),
        ({"num_actions": 9}, "num_actions must be a whole number from 2 to 8, got 9"),
    ],
    "TextSlidingPuzzle-v0": [
        ({"min_distance": 0}, "min_distance must be a whole number from 1 to 31, got 0"),
        ({"min_distance": 9}, "got 9 and 8"),
        ({"max_distance": 32, "max_moves": 40}, "max_distance must be a whole number from 1 to 31, got 32"),
        ({"max_moves": 7}, "max_moves must be at least max_distance, 8, got 7"),
        ({"max_moves": 8.5}, "max_moves must be a whole number from 1 to 10000, got 8.5"),
        ({"step_reward": 0.1}, "step_reward must be a finite number of at most 0"),
        ({"goal_reward": NAN}, "goal_reward must be a finite number of at least 0, got nan"),
    ],
    "TextSnake-v0": [
        *(({name: value}, f"{name} must be a {kind}, got {value!r}") for kind, name, value in (
            ("whole number from 1 to 100", "width", 0), ("whole number from 1 to 100", "width", 2.5),
            ("whole number from 1 to 100", "width", "10"), ("whole number from 1 to 100", "height", True),
            ("whole number from 1 to 10000", "num_players", 0), ("whole number from 0 to 10000", "num_opponents", -1),
            ("whole number from 0 to 10000", "num_apples", -1), ("whole number from 0 to 10000", "num_bananas", 1.5),
            ("whole number from 0 to 10000", "num_fires", None), ("finite number", "apple_reward", NAN),
            ("finite number", "banana_reward", INF), ("finite number", "fire_reward", "1"),
            ("finite number", "death_reward", None), ("finite number", "step_reward", True),
        )),
        ({"coordinates": False, "grid": False}, "coordinates=False and grid=False"),
        ({"grid": False, "axes": True}, "axes=True numbers the rows of the grid, so it needs grid=True"),
    ],
    "TextSokoban-v0": [
        ({"size": 4}, "size must be a whole number from 5 to 8, got 4"),
        ({"boxes": 0}, "boxes must be a whole number from 1 to 3, got 0"),
        ({"boxes": 3, "size": 7}, "size=7 with boxes=3 has too many positions"),
        ({"longest": 3}, "longest must be a whole number from 4 to 200, got 3"),
        ({"max_moves": 9}, "max_moves must be a whole number from 10 to 1000, got 9"),
        ({"most_walls": True}, "most_walls must be a whole number from 0 to 6, got True"),
    ],
    "TextTaxi-v0": [
        ({name: 1.5}, f"{name} must be a number from 0 to 1, got 1.5")
        for name in ("rainy_probability", "fickle_probability")
    ],
    "TextWerewolf-v0": [
        ({"wolves": 0}, "wolves must be a whole number from 1 to 12, got 0"),
        ({"wolves": 5}, "got wolves=5 and 5 others"),
        ({"villagers": 11}, "at most 12 play"),
        ({"seers": 2}, "seers must be a whole number from 0 to 1, got 2"),
        ({"days_in_full": 0}, "days_in_full must be a whole number from 1 to 10000, got 0"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("env_id", WRONG)
def test_wrong_settings_are_named(env_id):
    for settings, message in WRONG[env_id]:
        with pytest.raises(ValueError, match=re.escape(message)):
            game_of(env_id, **settings)


def test_games_with_numbers_among_their_settings_are_here():
    unchecked = {"TextKuhnPoker-v0", "TextLeducPoker-v0", "TextTicTacToe-v0", "TextBlackjack-v0", "TextCliffWalking-v0"}
    assert {each.env_id for each in SCENARIOS.values()} - set(WRONG) <= unchecked | {"TextWordGuess-v0"}
