"""Repeated matrix games: payoffs against OpenSpiel, opponents and best responses against brute force, regrets."""

import math
from itertools import product

import numpy as np
import pytest

from agents.baselines.games.hedge import MatrixGamePlayer
from agents.baselines.search import YardstickPlayer, find_search_player
from agents.turn import TurnRequest
from textgames import SCENARIOS
from textgames.social.matrix_game import MatrixGame, MatrixState
from textgames.social.matrix_game.game import BestResponseYardstick
from textgames.social.matrix_game.opponents import make_opponent, opponent_names
from textgames.social.matrix_game.payoffs import GAMES
from textgames.yardsticks import find_yardstick

ONE, TWO = "player_0", "player_1"
PD = GAMES["prisoners-dilemma"]


def after(game: MatrixGame, *rounds: str) -> MatrixState:
    """The state after rounds written by the actions' first letters: ``"CD"`` is cooperate against defect."""
    letters = {name[0].upper(): index for index, name in enumerate(game.actions)}
    state = game.initial_state(np.random.default_rng())
    for pair in rounds:
        state, _, _ = game._played(state, letters[pair[0]], letters[pair[1]])
    return state


# ---------------------------------------------------------------- payoffs and rules


@pytest.mark.parametrize(
    ("name", "theirs", "order"),
    [
        ("stag-hunt", "matrix_sh", (0, 1)),
        ("chicken", "matrix_cd", (1, 0)),
        ("battle-of-the-sexes", "matrix_bos", (0, 1)),
        ("rock-paper-scissors", "matrix_rps", (0, 1, 2)),
        ("matching-pennies", "matrix_mp", (0, 1)),
        ("shapley", "matrix_shapleys_game", (0, 1, 2)),
    ],
)
def test_payoffs_are_those_of_openspiel(name, theirs, order):
    pyspiel = pytest.importorskip("pyspiel")
    game, ours = pyspiel.load_matrix_game(theirs), GAMES[name]
    for (a, i), (b, j) in product(enumerate(order), repeat=2):
        assert ours.first[a][b] == game.row_utility(i, j)
        assert ours.second[a][b] == game.col_utility(i, j)


def test_the_dilemma_is_one():
    temptation, reward, punishment, sucker = PD.first[1][0], PD.first[0][0], PD.first[1][1], PD.first[0][1]
    assert (temptation, reward, punishment, sucker) == (5, 3, 1, 0)  # Axelrod's numbers
    assert PD.second == tuple(zip(*PD.first, strict=True))
    assert PD.most_welfare == 6


def test_a_round_pays_both_by_the_table():
    game = MatrixGame(matrix="battle-of-the-sexes", rounds=2)
    rng = np.random.default_rng(0)
    state, paid, over = game.transition(game.initial_state(rng), {ONE: "opera", TWO: "opera"}, rng)
    assert (paid, over) == ({ONE: 3.0, TWO: 2.0}, False)
    state, paid, over = game.transition(state, {ONE: "football", TWO: "opera"}, rng)
    assert (paid, over) == ({ONE: 0.0, TWO: 0.0}, True)
    assert state.history == ((0, 0), (1, 0))
    assert game.transition(state, {ONE: "opera", TWO: "opera"}, rng) == (state, {ONE: 0.0, TWO: 0.0}, True)
    with pytest.raises(ValueError, match="must give player_0 and player_1 one of opera, football"):
        game.transition(state, {ONE: "opera"}, rng)


def test_instructions_give_each_seat_its_own_payoffs():
    game = MatrixGame(matrix="matching-pennies")
    assert "- heads against tails: you get -1, the other gets 1" in game.instructions(ONE)
    assert "- heads against tails: you get 1, the other gets -1" in game.instructions(TWO)
    told = MatrixGame(opponent="grim")
    assert "plays cooperate until you play defect for the first time" in told.instructions(ONE)
    hidden = MatrixGame(opponent="grim", tell_opponent=False).instructions(ONE)
    assert "program." in hidden
    assert "until you play" not in hidden


# ---------------------------------------------------------------- opponents and best responses


def test_opponents_by_hand():
    grim, copy = make_opponent("grim", PD, 10), make_opponent("tit-for-tat", PD, 10)
    forgiven, angry = copy.start, grim.start
    for action in (1, 0):  # defect, then cooperate
        forgiven, angry = copy.remember(forgiven, action), grim.remember(angry, action)
    assert copy.chances(forgiven) == (1, 0)
    assert grim.chances(angry) == (0, 1)
    assert make_opponent("uniform", GAMES["shapley"], 9).chances(None) == pytest.approx((1 / 3,) * 3)
    assert make_opponent("always-defect", PD, 9).chances(None) == (0, 1)
    hedge = make_opponent("hedge", PD, 8)
    memory = hedge.remember(hedge.remember(hedge.start, 0), 1)
    # its defecting would have earned 5 + 1 so far, cooperating 3 + 0; the payoffs range over 5
    odds = math.exp(3 * math.sqrt(8 * math.log(2) / 8) / 5)
    assert hedge.chances(memory) == pytest.approx((1 / (1 + odds), odds / (1 + odds)))


@pytest.mark.parametrize("game", GAMES)
def test_best_responses_against_brute_force(game):
    """Over all policies that may depend on everything seen so far, by expectimax on ``outcomes``."""
    for name in opponent_names(GAMES[game]):
        played = MatrixGame(matrix=game, rounds=3, opponent=name)
        yardstick = find_yardstick(played)
        assert isinstance(yardstick, BestResponseYardstick)

        def expectimax(state: MatrixState, of: object, played: MatrixGame = played) -> float:
            values = []
            for action in played.actions:
                listed = played.outcomes(state, {ONE: action})
                assert sum(p for p, *_ in listed) == pytest.approx(1)
                values.append(sum(p * (r[ONE] + (0 if over else expectimax(s, of))) for p, s, r, over in listed))
            return max(values) if of is max else sum(values) / len(values)

        start = played.initial_state(np.random.default_rng())
        assert yardstick.value(start, None, ONE) == pytest.approx(expectimax(start, max))
        assert yardstick.blind_value(start, None, ONE, {}) == pytest.approx(expectimax(start, "mean"))


def test_a_game_of_two_has_no_best_response():
    with pytest.raises(ValueError, match="no best response in a game of two"):
        BestResponseYardstick(MatrixGame())
    assert find_yardstick(MatrixGame()) is None


# ---------------------------------------------------------------- metrics


def test_metrics_of_two_by_hand():
    game = MatrixGame(rounds=10)
    state = after(game, "CC", "CC", "CD", "DC")
    # always defecting would have got 5 + 5 + 1 + 5 against what the other did, and 11 were paid
    assert game.metrics(state, ONE) == {
        "external_regret": 5.0,
        "average_regret": 1.25,
        "swap_regret": 5.0,
        "welfare": 22.0,
        "welfare_share": 22 / 24,
        "cce_distance": 1.25,
    }
    assert game.metrics(state, TWO)["external_regret"] == 5.0
    assert game.metrics(after(game, "DD", "DD"), ONE)["cce_distance"] == 0.0  # the equilibrium


def test_metrics_where_there_is_no_welfare_to_share():
    game = MatrixGame(matrix="rock-paper-scissors", rounds=9)
    told = game.metrics(after(game, "RP", "RP", "SR"), ONE)
    assert "welfare_share" not in told
    assert told["welfare"] == 0
    # against paper, paper, rock: always scissors gets 1, always paper 1, and -3 was paid
    assert told["external_regret"] == 4
    # scissors instead of rock gains 4, paper instead of scissors 2
    assert told["swap_regret"] == 6


def test_policy_regret_sees_what_external_regret_cannot():
    """Against tit-for-tat, defecting throughout has no external regret, and loses 18 of the 32 that there are."""
    game = MatrixGame(rounds=10, opponent="tit-for-tat")
    told = game.metrics(after(game, "DC", *["DD"] * 9), ONE)
    assert told["external_regret"] == 0
    assert told["policy_regret"] == 32 - (5 + 9)
    assert "cce_distance" not in told
    best = game.metrics(after(game, *["CC"] * 9, "DC"), ONE)
    assert best["policy_regret"] == 0
    assert best["external_regret"] == 9 * 2


# ---------------------------------------------------------------- players and environments


def test_the_planner_is_the_best_response_or_hedge():
    program = SCENARIOS["prisoners-dilemma-tft"].game()
    planner = find_search_player(program)
    assert isinstance(planner, YardstickPlayer)
    assert (planner.exact, planner.method) == (True, "best response")
    state, total, rng = program.initial_state(np.random.default_rng()), 0.0, np.random.default_rng(0)
    for left in range(10, 0, -1):
        asked = TurnRequest(program.observe(state, ONE), steps_left=left, legal_actions=program.actions, game=program)
        state, paid, over = program.transition(state, {ONE: planner.plan(asked).action}, rng)
        total += paid[ONE]
    assert over
    assert total == 32

    two = MatrixGame(matrix="matching-pennies")
    learner = find_search_player(two)
    assert isinstance(learner, MatrixGamePlayer)
    assert (learner.exact, learner.method) == (False, "Hedge")
    text = two.observe(after(two, "HH", "TH", "TH"), ONE)
    asked = TurnRequest(text, legal_actions=two.actions, player=ONE, game=two)
    assert learner.values(asked) == {"heads": 3.0, "tails": -3.0}
    assert learner.greedy(asked).action == "heads"
    # the second player wins where the sides differ, and the first has played tails twice of three times
    asked = TurnRequest(two.observe(after(two, "HH", "TH", "TH"), TWO), legal_actions=two.actions, player=TWO)
    assert learner.values(asked) == {"heads": 1.0, "tails": -1.0}
