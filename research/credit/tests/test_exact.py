"""Values, visits and drawn returns against plain recursion over all that may happen, and credit of a known dose."""

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

from agents import load_agent
from agents.episode import EpisodeTask
from agents.msgrpo.credit import METHODS, Batch
from agents.msgrpo.credit.batch import Start
from agents.msgrpo.errors import ConfigError
from agents.turn import Turn
from research.credit.dosed import Dosed
from research.credit.instrument.batches import Setting, play
from research.credit.instrument.exact.answers import INVALID, ask, weighed, weight
from research.credit.instrument.exact.solution import expand
from research.credit.instrument.exact.truth import Chances, DrawnReturns, Truth
from research.credit.tests.helpers import PENALTY, Habit, distribution, solved
from textgames import SCENARIOS
from textgames.registry import game_of

GAMES = [
    ("TextFrozenLake-v0", {"size": 3, "is_slippery": True}, 3, "default"),
    ("TextFrozenLake-v0", {"size": 3, "is_slippery": True}, 2, "terminate"),
    ("TextKuhnPoker-v0", {}, 3, "default"),
    ("TextMatrixGame-v0", {}, 2, "random"),
]


@pytest.mark.parametrize(("name", "settings", "horizon", "invalid_action"), GAMES)
def test_values_are_those_of_the_definitions(name, settings, horizon, invalid_action):
    game, policy = game_of(name, **settings), Habit()
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


def test_estimated_weights_are_unbiased():
    """Over all 3^4 draws of four responses, by hand: the mean weight of a response is its probability."""
    probabilities, drawn = [0.6, 0.3, 0.1], 4
    mean = np.zeros(3)
    for draws in product(range(3), repeat=drawn):
        chance = np.prod([probabilities[each] for each in draws])
        for response in set(draws):
            mean[response] += chance * weight(probabilities[response], draws.count(response), drawn)
    np.testing.assert_allclose(mean, probabilities, atol=1e-12)
    # and without probabilities responses are counted
    turns = [Turn("left"), Turn("left"), Turn("up"), Turn("nonsense")]
    found = weighed(turns, lambda text: {"left": 0, "up": 1}.get(text, INVALID))
    assert [(each.place, each.weight) for each in found] == [(0, 0.5), (1, 0.25), (INVALID, 0.25)]


def test_what_is_no_single_policy_of_a_state_is_refused():
    game = game_of("TextKuhnPoker-v0")
    graph = expand(game, [game.initial_state(np.random.default_rng(0))], 3)
    with pytest.raises(ValueError, match="terminate"):  # sends one of several players away
        solved(load_agent("random"), graph, invalid_action="terminate")
    with pytest.raises(ValueError, match="history"):
        ask(load_agent("tiny", history=2), graph)


EPISODES = 20_000
LAKE = {"desc": ["SFF", "FHG"], "is_slippery": True}


@pytest.mark.parametrize(
    ("name", "settings", "invalid_action"),
    [
        ("TextFrozenLake-v0", LAKE, "default"),
        ("TextFrozenLake-v0", LAKE, "terminate"),
        ("TextBlackjack-v0", {}, "default"),
        ("TextKuhnPoker-v0", {}, "random"),
        ("TextMatrixGame-v0", {}, "default"),
    ],
)
def test_returns_have_the_distribution_of_all_that_may_happen(name, settings, invalid_action):
    game = game_of(name, **settings)
    start = game.initial_state(np.random.default_rng(0))
    truth = Truth.of(Habit(), game, [start], 3, format_penalty=PENALTY, invalid_action=invalid_action)
    state, horizon = truth.graph.states[truth.graph.starts[0]], truth.graph.horizon
    task = EpisodeTask("game", name, 0)
    drawn = DrawnReturns(Habit(), Chances(truth), np.random.default_rng(0))
    for elapsed in range(horizon):
        if truth.graph.starts[0] not in truth.graph.layers[elapsed]:
            continue  # it can't be there then
        told = distribution(truth.graph.game, Habit(), state, horizon - elapsed, invalid_action)
        for number, player in enumerate(truth.graph.players):
            found = np.round(drawn.returns_from([Start(task, state, elapsed, player)], EPISODES)[0], 9)
            expected = Counter()
            for returns, chance in told.items():
                expected[returns[number]] += chance
            assert set(found.tolist()) <= set(expected)
            for value, chance in expected.items():
                error = (chance * (1 - chance) / EPISODES) ** 0.5
                assert abs(np.mean(found == value) - chance) <= 5 * error + 1e-9

    if settings is LAKE and invalid_action == "default":
        far = truth.graph.states[max(truth.graph.layers[2].tolist())]
        with pytest.raises(ValueError, match="can't be reached after 0 steps"):
            drawn.returns_from([Start(task, far, 0, "player_0")], 1)


@pytest.fixture(scope="module")
def played():
    policy, setting = load_agent("tiny", mode="direct", temperature=1.0), Setting(SCENARIOS["frozen-lake"], 2, 64)
    truth = Truth.of(policy, setting.game(), setting.starts(), setting.rounds)
    return play(policy, setting, 0), truth


def credit(batch: Batch, **settings: Any) -> np.ndarray:
    return np.concatenate(Dosed(**settings).assign(batch, np.random.default_rng(5)).advantages)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["step", "episode"])
def test_the_dose_is_the_correlation_with_the_true_advantage_and_the_size_is_that_of_the_truth(played, noise):
    batch, truth = played
    advantages, true = np.concatenate([truth.advantages(each) for each in batch.trajectories]), credit(batch)
    np.testing.assert_allclose(true, advantages / np.sqrt(np.mean(advantages**2)), atol=1e-6)
    for share in (0.0, 0.25, 0.75):
        mixed = credit(batch, share=share, noise=noise)
        assert np.mean(mixed * true) == pytest.approx(share, abs=0.15 if noise == "episode" else 0.08)
        assert np.mean(mixed**2) == pytest.approx(1, abs=0.2)


@pytest.mark.slow
def test_noise_is_shared_by_an_episode_or_by_an_action_in_a_run(played):
    batch, _ = played
    by_episode = Dosed(share=0.0, noise="episode").assign(batch, np.random.default_rng(5)).advantages
    assert all(len(set(each.tolist())) == 1 for each in by_episode)
    actions = [action for each in batch.trajectories for action in each.actions]
    numbers = credit(batch, share=0.0, noise="action", seed=3).tolist()
    assert len(set(zip(actions, numbers, strict=True))) == len(set(actions)) == len(set(numbers)) > 1
    assert credit(batch, share=0.0, noise="action", seed=4).tolist() != numbers
    made: Any = METHODS.make("research.credit.dosed:Dosed", {"noise": "action"}, {"seed": 7})
    assert made.seed == 7
    with pytest.raises(ConfigError, match="model in this process"):
        Dosed().assign(Batch(batch.trajectories), np.random.default_rng(0))
