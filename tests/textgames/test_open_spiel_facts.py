"""What a game of OpenSpiel without rules of ours tells a player, and how many actions are told of very many."""

import re

import numpy as np
import pytest

import textgames
from textgames import conformance
from textgames.open_spiel.library import library, reading_of
from textgames.open_spiel.library_facts import COLOURS, MOST_CHARACTERS, MOST_LISTED, summary


def test_the_conformance_suite_takes_a_setting_called_name():
    conformance.check("OpenSpiel-v0", name="tic_tac_toe")


def test_chess_tells_its_colour_and_what_is_not_told():
    game = textgames.openspiel("chess")
    state = game.initial_state(np.random.default_rng(0))
    (first,) = game.to_move(state)
    told = game.instructions(first)
    assert " w KQkq" in game.observe(state, first), "the library says that white is to move"
    assert f"You are {first}, white, the capital letters on the board, and you move first." in told
    (other,) = set(game.players) - {first}
    assert f"You are {other}, black, the small letters on the board, and {first} moves first." in game.instructions(
        other
    )
    for words in ("for 2 players", "one after the other", "Nothing is left to chance", "Nothing is hidden",
                  "from -1 to 1", "What one player wins others lose", "Its rules aren't told here"):  # fmt: skip
        assert words in told


@pytest.mark.parametrize("name", COLOURS)
def test_the_first_mark_of_the_library_is_that_of_the_player_who_moves(name):
    """Games of our own rules have their seats there; for the others colours are told by the library's own order."""
    assert not reading_of(name, ()).rules
    game = library().load_game(name)
    state = game.new_initial_state()
    if name == "go":
        assert state.action_to_string(0, state.legal_actions()[0]).startswith("B")
    elif name == "breakthrough":
        assert state.action_to_string(0, state.legal_actions()[0])[1] == "7"
        assert state.to_string().splitlines()[1] == "7bbbbbbbb"
    elif name == "shogi":
        assert state.to_string().endswith(" b - 1")
        assert state.current_player() == 0
    elif name in ("twixt", "amazons"):
        assert state.action_to_string(0, state.legal_actions()[0])[0] in "xX"
    elif name == "backgammon":
        rng = np.random.default_rng(0)
        played = textgames.openspiel(name).initial_state(rng).node
        assert f"Turn: {'xo'[played.current_player()]}" in played.to_string()
    elif name in ("checkers", "clobber", "lines_of_action"):
        column, row = state.action_to_string(0, state.legal_actions()[0])[:2]
        line = next(line for line in state.to_string().splitlines() if line.startswith(row))
        assert line[1 + ord(column) - ord("a")] == COLOURS[name][0]
    elif name == "ultimate_tic_tac_toe":
        state.apply_action(state.legal_actions()[0])
        state.apply_action(state.legal_actions()[0])
        assert state.to_string().startswith("x.. ")
    elif name == "xiangqi":
        assert state.action_to_string(0, state.legal_actions()[0])[0].isupper()
    else:  # chess and its kin
        assert state.current_player() == 1
        assert " w " in state.to_string()


def test_battleship_says_its_actions_in_a_few_words_and_reads_any_of_them():
    game = textgames.openspiel("battleship")
    state = game.initial_state(np.random.default_rng(0))
    (player,) = game.to_move(state)
    legal, told = game.legal_actions(state, player), game.action_help(state, player)
    assert len(", ".join(legal)) > 10_000
    assert len(told) < 400
    assert told.startswith(f"{len(legal)} actions are legal: ")
    assert "top-left corner in (0-9, 0-8) (90, such as" in told
    for action in legal:
        assert game.interpret(f"<action>{action}</action>", state, player) == action


def test_few_actions_are_all_listed():
    assert summary(["pass", "bet"]) == "pass, bet"
    names = [f"move {number}" for number in range(MOST_LISTED)]
    assert summary(names) == ", ".join(names)


def test_forms_with_gaps_with_and_without_all_combinations():
    full = [f"{column}{row}" for column in "abcdefghjklmnopqrst" for row in range(1, 20)]
    assert summary([*full, "pass"]) == "362 actions are legal: a-h/j-t1-19 (361, such as a1); pass"
    assert summary([name for name in full if name != "c3"]).endswith("a1, a2, a3 and 357 more of this form")
    many = [f"{word} {number}" for word in "abcdefghijkl" for number in range(20)]
    assert summary([name.replace(" ", "-word ") for name in many]).endswith("; and 80 more, of other forms")


@pytest.mark.parametrize(
    "name", ["battleship", "go", "gin_rummy", "hearts", "bridge", "backgammon", "chess", "quoridor", "amazons", "hex"]
)
def test_no_prompt_of_actions_is_long(name):
    game, rng = textgames.openspiel(name), np.random.default_rng(1)
    state = game.initial_state(rng)
    for _ in range(12):
        for player in game.to_move(state):
            assert len(game.action_help(state, player)) <= MOST_CHARACTERS
        joint = {player: game.sample_action(state, player, rng) for player in game.to_move(state)}
        state, _, over = game.transition(state, joint, rng)
        if over:
            break


def test_parameters_and_pay_are_told():
    told = textgames.openspiel("goofspiel", num_cards=4, players=3).instructions("player_2")
    assert re.search(r"for 3 players", told)
    assert "num_cards = 4" in told
    assert "Players move at the same time." in told
    assert "You are player_2." in told
    alone = textgames.openspiel("morpion_solitaire").instructions("player_0")
    assert "for one player" in alone
    assert "You are player_0" not in alone
