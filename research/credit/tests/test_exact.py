"""Values, advantages and visits of a policy, against plain recursion over everything that may happen."""

from itertools import product

import numpy as np
import pytest

from agents import load_agent
from agents.turn import Turn
from research.credit.instrument.exact.answers import INVALID, ask, behaviour_of, weighed, weight
from research.credit.instrument.exact.solution import expand, solve
from textgames import SCENARIOS
from textgames.registry import game_of
from textgames.tsmg import TSMG

PENALTY = 0.7


class Habit:
    """A policy whose probabilities depend on the text that it reads, on time if it is told to, and sum to 0.9."""

    name = "habit"

    def __init__(self, timely: bool = False) -> None:
        self.timely = timely

    def act(self, requests):
        raise AssertionError("its probabilities are known")

    def action_probabilities(self, request):
        time = request.steps_left if self.timely else 0
        weights = [
            1 + (len(request.observation) * 7 + sum(map(ord, name)) + 3 * time) % 5 for name in request.legal_actions
        ]
        return {name: 0.9 * w / sum(weights) for name, w in zip(request.legal_actions, weights, strict=True)}


def by_recursion(game: TSMG, policy: Habit, state, steps_left: int, penalty: float, invalid_action="default"):
    """``(V of every player, {(player, action): Q})`` from the definitions, one history after the other."""
    players = game.players
    if steps_left == 0:
        return np.zeros(len(players)), {}
    moving = game.to_move(state)
    told = {}
    for player in moving:
        request = type("R", (), {})()
        request.observation, request.legal_actions = game.observe(state, player), game.legal_actions(state, player)
        request.steps_left = steps_left
        told[player] = {**policy.action_probabilities(request), None: 0.1}
    value = np.zeros(len(players))
    parts: dict = {}
    for chosen in product(*[told[player] for player in moving]):
        chance = float(np.prod([told[player][a] for player, a in zip(moving, chosen, strict=True)]))
        joint = {p: game.legal_actions(state, p)[0] if a is None else a for p, a in zip(moving, chosen, strict=True)}
        paid = np.zeros(len(players))
        for probability, after, rewards, over in game.outcomes(state, joint):
            ahead = 0 if over else by_recursion(game, policy, after, steps_left - 1, penalty)[0]
            paid += probability * (np.array([rewards[p] for p in players]) + ahead)
        for player, action in zip(moving, chosen, strict=True):
            paid[players.index(player)] -= penalty * (action is None)
        value += chance * paid
        for player, action in zip(moving, chosen, strict=True):
            own = parts.setdefault((player, action), [0.0, 0.0])
            own[0] += chance * paid[players.index(player)]
            own[1] += chance
    return value, {key: total / chance for key, (total, chance) in parts.items()}


GAMES = [
    ("TextFrozenLake-v0", {"size": 3, "is_slippery": True}, 3),
    ("TextKuhnPoker-v0", {}, 3),
    ("TextMatrixGame-v0", {}, 2),
]


@pytest.mark.parametrize("timely", [False, True])
@pytest.mark.parametrize(("name", "settings", "horizon"), GAMES)
def test_values_are_those_of_the_definitions(name, settings, horizon, timely):
    game, policy = game_of(name, **settings), Habit(timely)
    start = game.initial_state(np.random.default_rng(3))
    graph = expand(game, [start], horizon)
    answers = ask(policy, graph)
    solution = solve(graph, behaviour_of(graph, answers, answers.responses), format_penalty=PENALTY)
    assert answers.source == "known"
    for steps, layer in enumerate(graph.layers):
        for state in layer.tolist():
            value, choices = by_recursion(game, policy, graph.states[state], horizon - steps, PENALTY)
            np.testing.assert_allclose(solution.values[steps, state], value, atol=1e-12)
            for (player, action), expected in choices.items():
                own = game.players.index(player)
                decision = graph.decision_of[state, own]
                place = INVALID if action is None else graph.decisions[decision].actions.index(action)
                advantage = solution.advantage(steps, decision, place)
                assert advantage == pytest.approx(expected - value[own], abs=1e-12)
    np.testing.assert_allclose(solution.returns, solution.values[0, graph.starts[0]])


def test_visits_are_the_chances_of_being_there():
    """Two steps of a fair walk on a dry 3x3 board: from the corner, half of the moves bump into a wall."""
    game = game_of("TextFrozenLake-v0", desc=["SFF", "FFF", "FFG"], is_slippery=False)
    graph = expand(game, [game.initial_state(np.random.default_rng(0))], 3)
    answers = ask(load_agent("random"), graph)
    solution = solve(graph, behaviour_of(graph, answers, answers.responses))
    # the corner: two bumps 4/16, there and back 2/16; each neighbour: bump and go 2/16, go and bump into the edge 1/16;
    # the middle: by two ways 2/16; each cell two ahead: 1/16
    np.testing.assert_allclose(sorted(solution.visits[2][solution.visits[2] > 0]), np.array([1, 1, 2, 3, 3, 6]) / 16)
    assert solution.visits.sum(axis=1) == pytest.approx([1, 1, 1])


def test_several_starts_count_alike():
    game = SCENARIOS["frozen-lake"].game()
    starts = [game.initial_state(np.random.default_rng(seed)) for seed in (1, 2, 1)]
    graph = expand(game, starts, 8)
    answers = ask(load_agent("random"), graph)
    solution = solve(graph, behaviour_of(graph, answers, answers.responses))
    assert graph.starts[0] == graph.starts[2]
    assert solution.returns[0] == pytest.approx(solution.values[0, list(graph.starts), 0].mean())


@pytest.mark.parametrize("invalid_action", ["default", "random", "terminate"])
def test_what_an_invalid_response_is_worth(invalid_action):
    game = SCENARIOS["frozen-lake"].game()
    graph = expand(game, [game.initial_state(np.random.default_rng(5))], 8)
    answers = ask(Habit(), graph)
    solution = solve(
        graph, behaviour_of(graph, answers, answers.responses), format_penalty=1.0, invalid_action=invalid_action
    )
    decision = graph.decision_of[graph.starts[0], 0]
    choices = [solution.advantage(0, decision, place) for place in range(4)]
    expected = {
        "default": choices[0] - 1,
        "random": np.mean(choices) - 1,
        "terminate": -1 - solution.own_values[0, decision],
    }
    assert solution.advantage(0, decision, INVALID) == pytest.approx(expected[invalid_action])


def test_games_that_are_too_large_or_tell_no_chances_are_refused():
    lake = SCENARIOS["frozen-lake-big"].game()
    with pytest.raises(ValueError, match=r"more than 10 states .*--max-states"):
        expand(lake, [lake.initial_state(np.random.default_rng(0))], 20, max_states=10)
    cleanup = game_of("TextCleanup-v0")
    with pytest.raises(ValueError, match="doesn't tell its chances"):
        expand(cleanup, [cleanup.initial_state(np.random.default_rng(0))], 2)


def test_sending_one_of_several_players_away_is_refused():
    game = game_of("TextKuhnPoker-v0")
    graph = expand(game, [game.initial_state(np.random.default_rng(0))], 3)
    answers = ask(load_agent("random"), graph)
    with pytest.raises(ValueError, match="terminate"):
        solve(graph, behaviour_of(graph, answers, answers.responses), invalid_action="terminate")


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
