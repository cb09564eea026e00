"""OpenSpiel's games as text games: every id, what is told of them, and the library's own figures."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import textgames
from textgames.conformance import CHECKS, check, run_check, transcript
from textgames.environments.parallel import TextParallelEnv
from textgames.extras import install_command
from textgames.open_spiel.library import MOST_CHARACTERS, MOST_LISTED, summary

TRANSCRIPTS = Path(__file__).parent / "transcripts" / "open_spiel"
IDS = tuple(id for id in textgames.registered_ids() if id.startswith("OpenSpiel"))


def test_a_missing_library_is_a_sentence_and_registering_does_not_need_it(monkeypatch):
    from textgames.open_spiel import library

    monkeypatch.setitem(sys.modules, "pyspiel", None)
    library.load.cache_clear()
    with pytest.raises(ModuleNotFoundError, match=re.escape(install_command("openspiel"))):
        textgames.openspiel("nim")
    code = "import sys, textgames; print('OpenSpielNim-v0' in textgames.registered_ids(), 'pyspiel' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


pyspiel = pytest.importorskip("pyspiel")


ONE_OF_EACH = ("OpenSpielTicTacToe-v0", "OpenSpielPig-v0", "OpenSpielGoofspiel-v0", "OpenSpielCatch-v0")
"""Moves in turn, dice, moves at once, and one player alone: what the adapter treats differently."""
THOROUGH = ("states", "purity", "actions", "outcomes", "reading_back", "rendering", "batches", "rewards")
"""The checks that take most of the time; in a quick run they are made on one game of each kind, in CI on all."""


@pytest.mark.parametrize("id", IDS)
def test_conforms(id):
    game = textgames.game_of(id)
    assert game.reading.rules, "an id has rules of ours"
    assert game.reading.rules in game.instructions(game.players[-1])
    for name in CHECKS:
        if id in ONE_OF_EACH or name not in THOROUGH:
            run_check(name, id)


@pytest.mark.slow
@pytest.mark.parametrize("id", [id for id in IDS if id not in ONE_OF_EACH])
def test_conforms_thoroughly(id):
    for name in THOROUGH:
        run_check(name, id)


@pytest.mark.parametrize("id", IDS)
def test_transcript(id):
    """As in test_conformance.py; of the first rounds, since some games are long."""
    text, path = transcript(id, seed=8, **{"max_steps": 6}), TRANSCRIPTS / f"{id}.txt"
    if os.environ.get("TEXTBENCH_UPDATE_TRANSCRIPTS"):
        path.write_text(text)
    assert text == path.read_text()


def test_names_that_differ_by_case_alone_stay_as_they_are():
    game, rng = textgames.openspiel("chess"), np.random.default_rng(3)
    state = game.initial_state(rng)
    for _ in range(44):  # to the first position of this seed in which a bishop and a pawn can take on one square
        (player,) = game.to_move(state)
        state, *_ = game.transition(state, {player: game.sample_action(state, player, rng)}, rng)
    (player,) = game.to_move(state)
    legal = game.legal_actions(state, player)
    assert {"Bxc6", "bxc6"} <= set(legal)
    for written in ("Bxc6", "bxc6"):
        assert game.interpret(f"<action> {written} </action>", state, player) == written
    assert game.interpret("BXC6", state, player) is None
    alone = next(name for name in legal if name.casefold() != "bxc6")
    assert game.interpret(alone.upper(), state, player) == alone


def test_any_game_makes_environments():
    env = TextParallelEnv(textgames.openspiel("kuhn_poker", players=3))
    observations, _ = env.reset(seed=0)
    assert env.agents == ["player_0", "player_1", "player_2"]
    assert observations["player_1"].endswith("It is the turn of player_0.")
    again = textgames.parallel_env("OpenSpiel-v0", name="kuhn_poker", parameters={"players": 3})
    assert again.reset(seed=0)[0] == observations
    copied = pickle.loads(pickle.dumps(env.game))
    assert copied.observe(env.state(), "player_1") == observations["player_1"]
    alone = gym.make("OpenSpiel-v0", name="catch")
    alone.reset(seed=1)
    assert alone.step("left")[1:3] == (0.0, False)
    check("OpenSpiel-v0", name="tic_tac_toe")


@pytest.mark.parametrize("name", ["breakthrough", "phantom_ttt", "hearts", "backgammon"])
def test_games_without_an_id_are_played_to_the_end(name):
    game, rng = textgames.openspiel(name), np.random.default_rng(0)
    state, over, rounds, total = game.initial_state(rng), False, 0, dict.fromkeys(game.players, 0.0)
    while not over and rounds < 400:
        joint = {}
        for player in game.to_move(state):
            action = game.sample_action(state, player, rng)
            assert game.interpret(f"<action>{action}</action>", state, player) == action
            assert len(game.action_help(state, player)) <= MOST_CHARACTERS
            joint[player] = action
        state, rewards, over = game.transition(state, joint, rng)
        total = {player: total[player] + rewards[player] for player in game.players}
        rounds += 1
    assert not over or list(total.values()) == pytest.approx(state.node.returns())


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("kuhn", {}, "OpenSpiel has no game 'kuhn'.*kuhn_poker"),
        ("hex", {"bord_size": 5}, r"has no parameter 'bord_size' \(did you mean 'board_size'\?\); it has board_size"),
        ("negotiation", {}, "negotiation draws its chances inside the library"),
        ("mfg_crowd_modelling", {}, "is a mean-field game"),
        ("catch", {"observation": "history"}, "catch has no such text: observation='history'"),
    ],
)
def test_what_cannot_be_played_is_said(name, settings, message):
    with pytest.raises(ValueError, match=message):
        textgames.openspiel(name, **settings)


def test_parameters_are_a_dictionary_and_too_many_starts_are_not_listed():
    with pytest.raises(ValueError, match=r"parameters must be a dictionary such as .*, got 3"):
        textgames.game_of("OpenSpiel-v0", name="hex", parameters=3)
    with pytest.raises(NotImplementedError, match="chance has more than 20,000 outcomes here in hanabi"):
        textgames.openspiel("hanabi", players=2).initial_outcomes()


def test_a_game_without_rules_of_ours_tells_its_facts():
    game = textgames.openspiel("chess")
    state = game.initial_state(np.random.default_rng(0))
    (first,) = game.to_move(state)
    (other,) = set(game.players) - {first}
    told = game.instructions(first)
    assert " w KQkq" in game.observe(state, first), "the library says that white is to move"
    assert f"You are {first}, white, the capital letters on the board, and you move first." in told
    assert f"You are {other}, black, the small letters on the board, and {first} moves " in game.instructions(other)
    for words in ("for 2 players", "one after the other", "Nothing is left to chance", "Nothing is hidden",
                  "from -1 to 1", "What one player wins others lose", "Its rules aren't told here"):  # fmt: skip
        assert words in told
    told = textgames.openspiel("goofspiel", num_cards=4, players=3).instructions("player_2")
    for words in ("for 3 players", "num_cards = 4", "Players move at the same time.", "You are player_2."):
        assert words in told


def test_many_actions_are_told_in_a_few_words_and_any_of_them_is_read():
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
    names = [f"move {number}" for number in range(MOST_LISTED)]
    assert summary(names) == ", ".join(names)
    full = [f"{column}{row}" for column in "abcdefghjklmnopqrst" for row in range(1, 20)]
    assert summary([*full, "pass"]) == "362 actions are legal: a-h/j-t1-19 (361, such as a1); pass"
    assert summary([name for name in full if name != "c3"]).endswith("a1, a2, a3 and 357 more of this form")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("tic_tac_toe", 0), ("nim", -1), ("dots_and_boxes", 1)])
def test_minimax_has_the_values_of_openspiels_alpha_beta(name, value):
    from open_spiel.python.algorithms import minimax

    game, rng = textgames.openspiel(name), np.random.default_rng(0)
    yardstick = textgames.find_yardstick(game)
    assert yardstick is not None
    state, over = game.initial_state(rng), False
    assert yardstick.value(state, None, "player_0") == value
    while not over:
        (player,) = game.to_move(state)
        if len(state.moves) >= 3:  # their search has no memory, so the first positions take it long
            expected, _ = minimax.alpha_beta_search(game.library_game, state=state.node, maximizing_player_id=0)
            assert yardstick.value(state, None, "player_0") == expected
            sign = 1 if player == "player_0" else -1
            assert max(yardstick.values(state, None, player).values()) == sign * expected
        read = game.read_observation(game.observe(state, player), player)
        assert (game.describe(read), game.to_move(read)) == (game.describe(state), (player,))
        state, _, over = game.transition(state, {player: game.sample_action(state, player, rng)}, rng)


def test_minimax_sees_no_further_than_the_horizon_and_large_games_have_none():
    game = textgames.openspiel("nim", pile_sizes="1;2")
    yardstick = textgames.find_yardstick(game)
    assert yardstick is not None
    start = game.initial_state(np.random.default_rng(0))
    assert yardstick.value(start, None, "player_0") == 1.0  # take both of the second pile
    assert yardstick.value(start, 1, "player_0") == 0.0
    assert set(yardstick.values(start, 2, "player_0").values()) == {0.0, 1.0}
    with pytest.raises(ValueError, match="not an observation of nim at which player_1 is to move: 'anything'"):
        game.read_observation("anything", "player_1")
    assert textgames.find_yardstick(textgames.openspiel("pig", winscore=50)) is None
    large = textgames.openspiel("connect_four")
    assert textgames.find_yardstick(large) is None
    with pytest.raises(NotImplementedError, match="connect_four isn't a small zero-sum game"):
        large.read_observation("anything", "player_0")
