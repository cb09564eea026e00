"""Values, advantages and visits of a policy, against plain recursion over everything that may happen."""

from itertools import product

import numpy as np
import pytest

from agents import load_agent
from agents.turn import Turn
from research.credit.instrument.exact.answers import INVALID, ask, weighed, weight
from research.credit.instrument.exact.solution import expand
from research.credit.tests.helpers import PENALTY, Habit, distribution, solved
from textgames import SCENARIOS
from textgames.registry import game_of

GAMES = [
    ("TextFrozenLake-v0", {"size": 3, "is_slippery": True}, 3, "default"),
    ("TextFrozenLake-v0", {"size": 3, "is_slippery": True}, 2, "terminate"),
    ("TextKuhnPoker-v0", {}, 3, "default"),
    ("TextMatrixGame-v0", {}, 2, "random"),
]


@pytest.mark.parametrize("timely", [False, True])
@pytest.mark.parametrize(("name", "settings", "horizon", "invalid_action"), GAMES)
def test_values_are_those_of_the_definitions(name, settings, horizon, invalid_action, timely):
    game, policy = game_of(name, **settings), Habit(timely)
    graph = expand(game, [game.initial_state(np.random.default_rng(3))], horizon)
    answers, solution = solved(policy, graph, PENALTY, invalid_action)
    assert answers.source == "known"

    def mean(state, steps, fixed=None):
        told = distribution(game, policy, graph.states[state], horizon - steps, invalid_action, fixed)
        return sum(chance * np.array(returns) for returns, chance in told.items())

    for steps, layer in enumerate(graph.layers):
        for state in layer.tolist():
            value = mean(state, steps)
            np.testing.assert_allclose(solution.values[steps, state], value, atol=1e-8)
            for own, player in enumerate(game.players):
                if (decision := graph.decision_of.get((state, own))) is None:
                    continue
                for place, action in enumerate((*graph.decisions[decision].actions, None)):
                    expected = mean(state, steps, (player, action))[own] - value[own]
                    place = INVALID if action is None else place
                    assert solution.advantage(steps, decision, place) == pytest.approx(expected, abs=1e-8)
    np.testing.assert_allclose(solution.returns, solution.values[0, graph.starts[0]])


def test_visits_are_the_chances_of_being_there():
    """Two steps of a fair walk on a dry 3x3 board: from the corner, half of the moves bump into a wall."""
    game = game_of("TextFrozenLake-v0", desc=["SFF", "FFF", "FFG"], is_slippery=False)
    graph = expand(game, [game.initial_state(np.random.default_rng(0))], 3)
    _, solution = solved(load_agent("random"), graph)
    # the corner: two bumps 4/16, there and back 2/16; each neighbour: bump and go 2/16, go and bump into the edge 1/16;
    # the middle: by two ways 2/16; each cell two ahead: 1/16
    np.testing.assert_allclose(sorted(solution.visits[2][solution.visits[2] > 0]), np.array([1, 1, 2, 3, 3, 6]) / 16)
    assert solution.visits.sum(axis=1) == pytest.approx([1, 1, 1])


def test_several_starts_count_alike():
    game = SCENARIOS["frozen-lake"].game()
    starts = [game.initial_state(np.random.default_rng(seed)) for seed in (1, 2, 1)]
    graph = expand(game, starts, 8)
    _, solution = solved(load_agent("random"), graph)
    assert graph.starts[0] == graph.starts[2]
    assert solution.returns[0] == pytest.approx(solution.values[0, list(graph.starts), 0].mean())


def test_sending_one_of_several_players_away_is_refused():
    game = game_of("TextKuhnPoker-v0")
    graph = expand(game, [game.initial_state(np.random.default_rng(0))], 3)
    with pytest.raises(ValueError, match="terminate"):
        solved(load_agent("random"), graph, invalid_action="terminate")


def test_policies_that_read_history_are_refused():
    game = SCENARIOS["frozen-lake"].game()
    graph = expand(game, [game.initial_state(np.random.default_rng(0))], 2)
    with pytest.raises(ValueError, match="history"):
        ask(load_agent("tiny", history=2), graph)


def test_estimated_weights_are_unbiased():
    """Over all 3^4 draws of four responses, by hand: the mean weight of a response is its probability."""
    probabilities, drawn = [0.6, 0.3, 0.1], 4
    mean = np.zeros(3)
    for draws in product(range(3), repeat=drawn):
        chance = np.prod([probabilities[each] for each in draws])
        for response in set(draws):
            mean[response] += chance * weight(probabilities[response], draws.count(response), drawn)
    np.testing.assert_allclose(mean, probabilities, atol=1e-12)


def test_responses_without_probabilities_are_counted():
    turns = [Turn("left"), Turn("left"), Turn("up"), Turn("nonsense")]
    found = weighed(turns, lambda text: {"left": 0, "up": 1}.get(text, INVALID))
    assert [(each.place, each.weight) for each in found] == [(0, 0.5), (1, 0.25), (INVALID, 0.25)]
