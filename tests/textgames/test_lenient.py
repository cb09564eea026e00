"""The lenient reading: which of the names in an answer it takes, in every kind of game."""

import numpy as np
import pytest

from textgames import SCENARIOS
from textgames.texts.lenient import read_leniently

LAKE = {
    "right.": "right",
    "**Right**.": "right",
    "\\boxed{right}": "right",
    "I go <b>right</b>!": "right",
    "<right>": "right",
    "_down_": "down",
    "not right but left": "left",
    "left, not right": "left",
    "go left\nrather than up": "left",
    "not right": None,
    "first right, then down": None,
    "right, right, down": None,
    "Up is a hole. So I go **down**.": "down",
    "**up or down?** Down! ": "down",
    "up, down\nright": "right",
    "upset, right-handed, copyright": None,
    "": None,
    "<think>left or up?</think>So I go **down**.": "down",
    "<think>left or up? right": None,
    "<think>left or up? <action>right": "right",
    "<action>right</action> or <action>left</action>": "left",
    "<ACTION>`right`</ACTION>, as left is a hole": "right",
    "<plan>up</plan><action>move</action>": None,
    "<action>right</action>, not left": "right",
}
OTHERS = (
    ("nim", "I take 1. So: Take 2 from B!", "take 2 from b"),  # the longer of names that overlap
    ("gathering-duel", "step right", "step right"),
    ("mastermind", "My guess: **red, Red, blue**.", "red red blue"),
    ("guess-number", "I guess 50.", "50"),
    ("guess-number", "50 out of 100", None),
    ("guess-number", "1-100", None),
    ("guess-number", "500!", None),
    ("sliding-puzzle", "5? No: <action>1</action>", None),  # a name of the game's that isn't legal there
    ("sliding-puzzle", "5? No: 1", None),
    ("werewolf-5", "I suspect Player_2.", "player_2"),
)


def read(name: str, text: str, seed: int = 0):
    game = SCENARIOS[name].game()
    state = game.initial_state(np.random.default_rng(seed))
    player = game.to_move(state)[0]
    action, strict = read_leniently(game, text, state, player), game.interpret(text, state, player)
    assert strict in (None, action)
    return action


@pytest.mark.parametrize(("name", "text", "action"), [*(("frozen-lake", *one) for one in LAKE.items()), *OTHERS])
def test_the_last_legal_name_counts_in_any_form(name, text, action):
    assert read(name, text) == action


def test_speech_is_taken_from_an_action_tag_alone():
    game = SCENARIOS["werewolf-5"].game()
    state, rng = game.initial_state(np.random.default_rng(0)), np.random.default_rng(1)
    while any(game.legal_actions(state, player) for player in game.to_move(state)):
        state, _, _ = game.transition(
            state, {one: game.sample_action(state, one, rng) for one in game.to_move(state)}, rng
        )
    player = game.to_move(state)[0]
    assert read_leniently(game, "I am the wolf", state, player) is None
    assert read_leniently(game, "<action>a</action><action>I am no wolf", state, player) == "i am no wolf"


@pytest.mark.parametrize("text", ["not right ", "<a", "a-", "up<right ", "take 1 from "])
def test_the_longest_answers_are_read(text):
    for name in ("frozen-lake", "nim", "guess-number"):
        read(name, text * 5_000)
