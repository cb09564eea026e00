"""OpenSpiel's games as text games: every id, what is told of chances, and the library's own figures."""

import copy
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
from textgames.conformance import CHECKS, run_check, transcript
from textgames.environments.parallel import TextParallelEnv
from textgames.extras import install_command
from textgames.solving.equilibrium import nash_conv, solve, uniform_policy
from textgames.solving.game_tree import expand

TRANSCRIPTS = Path(__file__).parent / "transcripts" / "open_spiel"
IDS = tuple(id for id in textgames.registered_ids() if id.startswith("OpenSpiel"))


@pytest.mark.slow
def test_registering_and_importing_do_not_need_the_library():
    code = (
        "import sys, textgames; assert 'OpenSpielNim-v0' in textgames.registered_ids(); print('pyspiel' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_missing_library_is_a_sentence(monkeypatch):
    from textgames.open_spiel import library

    monkeypatch.setitem(sys.modules, "pyspiel", None)
    library.load.cache_clear()
    with pytest.raises(ModuleNotFoundError, match=re.escape(install_command("openspiel"))):
        textgames.openspiel("nim")


pyspiel = pytest.importorskip("pyspiel")


ONE_OF_EACH = ("OpenSpielTicTacToe-v0", "OpenSpielPig-v0", "OpenSpielGoofspiel-v0", "OpenSpielCatch-v0")
"""Moves in turn, dice, moves at once, and one player alone: what the adapter treats differently."""
THOROUGH = ("states", "purity", "actions", "outcomes", "reading_back", "rendering", "batches", "rewards")
"""The checks that take most of the time; in a quick run they are made on one game of each kind, in CI on all."""


@pytest.mark.parametrize("id", IDS)
def test_conforms(id):
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
    text = transcript(id, seed=8, **{"max_steps": 6})
    path = TRANSCRIPTS / f"{id}.txt"
    if os.environ.get("TEXTBENCH_UPDATE_TRANSCRIPTS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("id", IDS)
def test_ids_have_rules_of_ours_and_name_their_actions(id):
    game = textgames.game_of(id)
    assert game.reading.rules
    for player in game.players:
        assert game.reading.rules in game.instructions(player)
        assert f"Actions: {', '.join(game.actions)}." in game.instructions(player)


def test_states_are_values():
    game, rng = textgames.openspiel("goofspiel", num_cards=6, players=2), np.random.default_rng(0)
    state = game.initial_state(rng)
    after, *_ = game.transition(state, {"player_0": "bid 3", "player_1": "bid 5"}, rng)
    for each in (pickle.loads(pickle.dumps(after)), copy.deepcopy(after)):
        assert each == after
        assert hash(each) == hash(after)
        assert game.observe(each, "player_0") == game.observe(after, "player_0")
    assert state != after
    other = pickle.loads(pickle.dumps(game))
    assert other.instructions("player_1") == game.instructions("player_1")
    assert other.legal_actions(after, "player_0") == ("bid 1", "bid 2", "bid 4", "bid 5", "bid 6")
    assert state != textgames.openspiel("goofspiel", num_cards=5, players=2).initial_state(np.random.default_rng(0))


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
    alone = gym.make("OpenSpiel-v0", name="catch")
    alone.reset(seed=1)
    assert alone.step("left")[1:3] == (0.0, False)
    assert "Its rules aren't told here" in textgames.openspiel("pentago").instructions("player_0")


@pytest.mark.parametrize(
    "name", ["chess", "breakthrough", "phantom_ttt", "oh_hell", "hearts", "gin_rummy", "backgammon"]
)
def test_games_without_an_id_are_played_to_the_end(name):
    game, rng = textgames.openspiel(name), np.random.default_rng(0)
    state, over, rounds, total = game.initial_state(rng), False, 0, dict.fromkeys(game.players, 0.0)
    while not over and rounds < 400:
        joint = {}
        for player in game.to_move(state):
            action = game.sample_action(state, player, rng)
            assert game.interpret(f"<action>{action}</action>", state, player) == action
            assert game.observe(state, player).isprintable() or "\n" in game.observe(state, player)
            joint[player] = action
        state, rewards, over = game.transition(state, joint, rng)
        total = {player: total[player] + rewards[player] for player in game.players}
        rounds += 1
    assert not over or list(total.values()) == pytest.approx(state.node.returns())


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("kuhn", {}, "OpenSpiel has no game 'kuhn'.*kuhn_poker"),
        ("tic_tac_to", {}, "did you mean 'tic_tac_toe'"),
        ("hex", {"bord_size": 5}, r"has no parameter 'bord_size' \(did you mean 'board_size'\?\); it has board_size"),
        ("hex", {"observation": "histry"}, "did you mean 'history'"),
        ("negotiation", {}, "negotiation draws its chances inside the library"),
        ("mfg_crowd_modelling", {}, "is a mean-field game"),
        ("catch", {"observation": "history"}, "catch has no such text: observation='history'"),
    ],
)
def test_what_cannot_be_played_is_said(name, settings, message):
    with pytest.raises(ValueError, match=message):
        textgames.openspiel(name, **settings)


def test_parameters_are_a_dictionary():
    with pytest.raises(ValueError, match=r"parameters must be a dictionary such as .*, got 3"):
        textgames.game_of("OpenSpiel-v0", name="hex", parameters=3)


def test_a_deal_with_too_many_starts_is_not_listed():
    with pytest.raises(NotImplementedError, match="chance has more than 20,000 outcomes here in hanabi"):
        textgames.openspiel("hanabi", players=2).initial_outcomes()


# ---------------------------------------------------------------- yardsticks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "information_sets", "value"),
    [("kuhn_poker", 12, 0.9167), ("leduc_poker", 936, 4.747), ("matrix_pd", 2, 3)],
)
def test_our_solver_on_openspiels_games(name, information_sets, value):
    """Its games through our adapter have the figures that its own algorithms give."""
    settings = {} if name == "matrix_pd" else {"observation": "history"}
    tree = expand(textgames.openspiel(name, **settings))
    assert len(tree.information_sets) == information_sets
    assert nash_conv(tree, uniform_policy(tree)) == pytest.approx(value, abs=6e-4)


def test_our_equilibrium_is_one_for_openspiel():
    """The library's own exploitability of the policy that our solver found."""
    game = textgames.openspiel("kuhn_poker")
    solution = solve(expand(game), 1000)
    library = game.library_game
    table = {}
    for (player, observation), policy in solution.policy.items():
        state = observation.split("\n")[0]
        numbers = {"pass": 0, "bet": 1}
        table[state] = [(numbers[action], chance) for action, chance in policy.items()]
        assert player == game.players[len(state[1:]) % 2]
    assert pyspiel.nash_conv(library, table) == pytest.approx(2 * solution.exploitability, abs=1e-9)
    assert pyspiel.nash_conv(library, table) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("tic_tac_toe", 0), ("nim", -1), ("dots_and_boxes", 1)])
def test_minimax_has_the_values_of_openspiels_alpha_beta(name, value):
    from open_spiel.python.algorithms import minimax

    game = textgames.openspiel(name)
    yardstick = textgames.find_yardstick(game)
    assert yardstick is not None
    rng = np.random.default_rng(0)
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


def test_minimax_sees_no_further_than_the_horizon():
    game = textgames.openspiel("nim", pile_sizes="1;2")
    yardstick = textgames.find_yardstick(game)
    assert yardstick is not None
    start = game.initial_state(np.random.default_rng(0))
    assert yardstick.value(start, None, "player_0") == 1.0  # take both of the second pile
    assert yardstick.value(start, 1, "player_0") == 0.0
    assert set(yardstick.values(start, 2, "player_0").values()) == {0.0, 1.0}


def test_large_games_have_no_minimax():
    assert textgames.find_yardstick(textgames.openspiel("connect_four")) is None
    assert textgames.find_yardstick(textgames.openspiel("pig", winscore=50)) is None
    with pytest.raises(NotImplementedError, match="connect_four isn't a small zero-sum game"):
        textgames.openspiel("connect_four").read_observation("anything", "player_0")
    with pytest.raises(ValueError, match="not an observation of nim at which player_1 is to move: 'anything'"):
        textgames.openspiel("nim").read_observation("anything", "player_1")
