"""Repeated matrix games and regret: payoffs of OpenSpiel, best responses by brute force, and hand-worked numbers."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from agents.baselines.games.learning import MatrixGamePlayer
from agents.baselines.search import YardstickPlayer, find_search_player
from agents.turn import TurnRequest
from textgames import SCENARIOS
from textgames.social.matrix_game import MatrixGame, MatrixState
from textgames.social.matrix_game.game import BestResponseYardstick
from textgames.social.matrix_game.opponents import GAMES, make_opponent, opponent_names
from textgames.solving.regret import external_regret, hedge, hedge_rate, regrets_of_counts, swap_regret
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


def test_a_round_pays_both_by_the_table_and_each_seat_reads_its_own():
    assert PD.first == ((3, 0), (5, 1))  # Axelrod's numbers
    assert PD.second == tuple(zip(*PD.first, strict=True))
    assert PD.most_welfare == 6
    game = MatrixGame(matrix="battle-of-the-sexes", rounds=2)
    rng = np.random.default_rng(0)
    state, paid, over = game.transition(game.initial_state(rng), {ONE: "opera", TWO: "opera"}, rng)
    assert (paid, over) == ({ONE: 3.0, TWO: 2.0}, False)
    state, paid, over = game.transition(state, {ONE: "football", TWO: "opera"}, rng)
    assert (paid, over) == ({ONE: 0.0, TWO: 0.0}, True)
    assert state.history == ((0, 0), (1, 0))
    assert game.transition(state, {ONE: "opera", TWO: "opera"}, rng) == (state, {ONE: 0.0, TWO: 0.0}, True)
    pennies = MatrixGame(matrix="matching-pennies")
    assert "- heads against tails: you get -1, the other gets 1" in pennies.instructions(ONE)
    assert "- heads against tails: you get 1, the other gets -1" in pennies.instructions(TWO)
    told = MatrixGame(opponent="grim").instructions(ONE)
    assert "plays cooperate until you play defect for the first time" in told
    assert "until you play" not in MatrixGame(opponent="grim", tell_opponent=False).instructions(ONE)


def test_opponents_by_hand():
    grim, copy = make_opponent("grim", PD, 10), make_opponent("tit-for-tat", PD, 10)
    forgiven, angry = copy.start, grim.start
    for action in (1, 0):  # defect, then cooperate
        forgiven, angry = copy.remember(forgiven, action), grim.remember(angry, action)
    assert copy.chances(forgiven) == (1, 0)
    assert grim.chances(angry) == (0, 1)
    assert make_opponent("uniform", GAMES["shapley"], 9).chances(None) == pytest.approx((1 / 3,) * 3)
    assert make_opponent("always-defect", PD, 9).chances(None) == (0, 1)
    learner = make_opponent("hedge", PD, 8)
    memory = learner.remember(learner.remember(learner.start, 0), 1)
    # its defecting would have earned 5 + 1 so far, cooperating 3 + 0; the payoffs range over 5
    odds = math.exp(3 * math.sqrt(8 * math.log(2) / 8) / 5)
    assert learner.chances(memory) == pytest.approx((1 / (1 + odds), odds / (1 + odds)))


@pytest.mark.parametrize("game", ["prisoners-dilemma", "shapley"])
def test_best_responses_against_brute_force(game):
    """Over all policies that may depend on everything seen so far, by expectimax on ``outcomes``."""
    for name in opponent_names(GAMES[game]):
        played = MatrixGame(matrix=game, rounds=3, opponent=name)
        yardstick = find_yardstick(played)
        assert isinstance(yardstick, BestResponseYardstick)

        def expectimax(state: MatrixState, of, played: MatrixGame = played) -> float:
            values = []
            for action in played.actions:
                listed = played.outcomes(state, {ONE: action})
                values.append(sum(p * (r[ONE] + (0 if over else expectimax(s, of))) for p, s, r, over in listed))
            return of(values)

        start = played.initial_state(np.random.default_rng())
        assert yardstick.value(start, None, ONE) == pytest.approx(expectimax(start, max))
        assert yardstick.blind_value(start, None, ONE, {}) == pytest.approx(expectimax(start, np.mean))
    with pytest.raises(ValueError, match="no best response in a game of two"):
        BestResponseYardstick(MatrixGame())
    assert find_yardstick(MatrixGame()) is None


def test_the_planner_is_the_best_response_or_hedge():
    program = SCENARIOS["prisoners-dilemma-tft"].game()
    planner = find_search_player(program)
    assert isinstance(planner, YardstickPlayer)
    assert (planner.exact, planner.method) == (True, "best response")
    two = MatrixGame(matrix="matching-pennies")
    learner = find_search_player(two)
    assert isinstance(learner, MatrixGamePlayer)
    assert (learner.exact, learner.method) == (False, "Hedge")
    state = after(two, "HH", "TH", "TH")
    asked = TurnRequest(two.observe(state, ONE), legal_actions=two.actions, player=ONE, game=two)
    assert learner.values(asked) == {"heads": 3.0, "tails": -3.0}
    assert learner.greedy(asked).action == "heads"
    # the second player wins where the sides differ, and the first has played tails twice of three times
    asked = TurnRequest(two.observe(state, TWO), legal_actions=two.actions, player=TWO)
    assert learner.values(asked) == {"heads": 1.0, "tails": -1.0}


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
    told = MatrixGame(matrix="rock-paper-scissors", rounds=9).metrics(MatrixState(((0, 1), (0, 1), (2, 0))), ONE)
    assert "welfare_share" not in told  # there is none to share
    # against paper, paper, rock: always scissors gets 1, always paper 1, and -3 was paid;
    # scissors instead of rock gains 4, paper instead of scissors 2
    assert (told["welfare"], told["external_regret"], told["swap_regret"]) == (0, 4, 6)


def test_policy_regret_sees_what_external_regret_cannot():
    """Against tit-for-tat, defecting throughout has no external regret, and loses 18 of the 32 that there are."""
    game = MatrixGame(rounds=10, opponent="tit-for-tat")
    told = game.metrics(after(game, "DC", *["DD"] * 9), ONE)
    assert (told["external_regret"], told["policy_regret"]) == (0, 32 - (5 + 9))
    assert "cce_distance" not in told
    best = game.metrics(after(game, *["CC"] * 9, "DC"), ONE)
    assert (best["external_regret"], best["policy_regret"]) == (9 * 2, 0)


@pytest.mark.parametrize("seed", range(3))
def test_regrets_against_all_functions_and_of_counts(seed):
    rng = np.random.default_rng(seed)
    payoffs = rng.integers(-5, 6, (3, 3)).astype(float).tolist()
    own, other = rng.integers(3, size=12).tolist(), rng.integers(3, size=12).tolist()
    losses = [[-payoffs[action][theirs] for action in range(3)] for theirs in other]
    swapped = [sum(losses[t][f[a]] for t, a in enumerate(own)) for f in product(range(3), repeat=3)]
    regret = sum(losses[t][a] for t, a in enumerate(own)) - min(swapped)
    assert swap_regret(losses, own) == pytest.approx(regret)
    assert external_regret([(3, 1), (0, 10), (5, 4)], [1, 0, 1]) == 5 - 8  # better than always the first, by hand
    found = regrets_of_counts(payoffs, Counter(zip(own, other, strict=True)))
    assert found == (external_regret(losses, own), swap_regret(losses, own))


def test_hedge_by_hand():
    assert hedge((0.0, 0.0, 0.0), 3.0) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert hedge((1.0, 2.0), math.log(3)) == pytest.approx((0.75, 0.25))
    assert hedge((1e5, 1e5 + 1), math.log(3)) == pytest.approx((0.75, 0.25))  # no overflow, no 0/0
    assert hedge_rate(2, 25, 10.0) == pytest.approx(math.sqrt(8 * math.log(2) / 25) / 10)
