"""The players without a language model: legal, truthful, repeatable, and as good as they claim."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import textgames
from agents import EpisodeTask, TurnRequest, load_agent, request_in
from agents.analysis.exploitability import measure
from agents.baselines.games.equilibrium import EquilibriumPlayer
from agents.baselines.random import BlindPlayer, RandomPlayer
from agents.baselines.search import Choice, register_search_player, search_player_of
from agents.loop.rollout import rollout
from tests.agents.baselines.own_game import Hiding, Undealt
from tests.once_a_game import once_a_game
from textgames.solving.blind import blind_play
from textgames.strategy.kuhn_poker import KuhnPoker
from textgames.yardsticks import find_yardstick

ACTIONS = ("left", "down", "right", "up")


def play(spec, scenario, seeds, **settings):
    return list(rollout(load_agent(spec), [EpisodeTask.of(scenario, seed, **settings) for seed in seeds]))


def mean_return(episodes):
    return sum(sum(episode.returns.values()) for episode in episodes) / len(episodes)


FAST = [
    pytest.param(spec, *one.values, marks=one.marks)
    for one in once_a_game(list(textgames.SCENARIOS))
    for spec in ("blind", "greedy")
    if (spec, *one.values) != ("greedy", "liars-dice")  # as in Kuhn and Leduc, but among 24,576 information sets
]
SEARCHED = [("planner", name) for name in ("frozen-lake-slippery", "snake", "snake-poison", "snake-duel")]


@pytest.mark.parametrize(("spec", "scenario"), [*FAST, *SEARCHED])
def test_every_response_is_read(spec, scenario):
    few = {"max_steps": 3} if spec == "planner" else {}
    steps = [step for episode in play(spec, scenario, range(1 if few else 4), **few) for step in episode.steps]
    assert all(step.valid for step in steps)
    assert all(step.turn.response.endswith(f"<action>{step.action}</action>") for step in steps)


def test_blind_plays_what_the_table_says():
    told = blind_play(textgames.SCENARIOS["frozen-lake"])
    episodes = play("blind", "frozen-lake", range(1000, 1600))
    spread = (told.value * (1 - told.value) / len(episodes)) ** 0.5
    assert mean_return(episodes) == pytest.approx(told.value, abs=4 * spread)
    taken = Counter(step.action for episode in episodes for step in episode.steps)
    assert set(taken) == {"down", "right"}
    assert taken["down"] / taken.total() == pytest.approx(0.5, abs=0.04)
    assert episodes[0].steps[0].turn.response.startswith("<think>I don't read: down 0.5, right 0.5.</think>")


@pytest.mark.parametrize("make", [BlindPlayer, RandomPlayer])
def test_draws_depend_on_the_seeds_alone(make):
    def taken(player, seeds):
        episodes = rollout(player, [EpisodeTask.of("frozen-lake", seed) for seed in seeds])
        return {episode.seed: [step.action for step in episode.steps] for episode in episodes}

    first = taken(make(), range(20))
    assert taken(make(), reversed(range(20))) == first
    assert taken(make(seed=1), range(20)) != first


def test_blind_reads_nothing_and_says_what_it_would_do():
    game = textgames.SCENARIOS["frozen-lake-slippery"].game()
    request = TurnRequest("whatever", legal_actions=ACTIONS, game=game, steps_left=15, seed=(1, 2, 3))
    player = load_agent("blind")
    assert player.action_probabilities(request) == {"left": 0.0, "down": 1.0, "right": 0.0, "up": 0.0}
    assert player.choose(request).action == "down"
    # what isn't legal isn't drawn; in a game of several players every legal action is as likely as another
    assert player.choose(replace(request, legal_actions=("left",))).action == "left"
    duel = TurnRequest("", legal_actions=("a", "b"), game=textgames.SCENARIOS["tic-tac-toe"].game(), steps_left=9)
    assert player.action_probabilities(duel) == {"a": 0.5, "b": 0.5}


def test_random_is_uniform_over_the_legal_actions():
    requests = [TurnRequest("o", legal_actions=("a", "b", "c"), seed=(n,)) for n in range(3000)]
    counts = Counter(turn.response for turn in RandomPlayer().act(requests))
    assert len(counts) == 3
    # chi-squared with 2 degrees of freedom: 13.8 is passed by chance once in a thousand seeds, and this one is fixed
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 13.8


def test_the_planners_reason_is_the_exact_probability():
    env = textgames.parallel_env("TextFrozenLake-v0", desc=["SFG"], is_slippery=True, success_rate=0.5, max_steps=2)
    observations, _ = env.reset(seed=0)
    request = TurnRequest(observations["player_0"], legal_actions=ACTIONS, steps_left=2, game=env.game)
    (turn,) = load_agent("planner").act([request])
    assert turn.response.startswith(
        "<think>With right and perfect play after it I reach the goal with probability 0.250."
    )


def test_greedy_by_a_yardstick_looks_at_the_next_reward_alone():
    game = textgames.SCENARIOS["nim"].game()
    request = request_in(game, game.initial_state(np.random.default_rng(0)), "player_0")
    assert "gains +0.00 on average" in load_agent("greedy").act([request])[0].response
    assert "gains +0.00 on average" not in load_agent("planner").act([request])[0].response


def test_greedy_crosses_every_lake_or_says_that_there_is_no_way():
    assert all(episode.successes["player_0"] for episode in play("greedy", "frozen-lake", range(10_000, 10_050)))
    game = textgames.game_of("TextFrozenLake-v0", desc=["SHF", "HHF", "FFG"])
    (turn,) = load_agent("greedy").act([game.observe(game.initial_state(np.random.default_rng(0)), "player_0")])
    assert "no way to the goal" in turn.response
    assert "<action>left</action>" in turn.response  # off the board: stays where it is instead of a hole


@pytest.mark.parametrize("scenario", ["frozen-lake", "snake-poison", "snake-duel"])
@pytest.mark.parametrize("style", [{"coordinates": False, "axes": True}, {"grid": False}])
def test_bare_observations_are_enough(scenario, style):
    env = textgames.SCENARIOS[scenario].parallel_env(**style)
    for seed in range(5):
        observations, _ = env.reset(seed=seed)
        for player, observation in observations.items():
            known = TurnRequest(observation, player=player, game=env.game)
            assert load_agent("greedy").act([observation]) == load_agent("greedy").act([known])


def test_a_bare_observation_of_an_unknown_game():
    for spec in ("random", "greedy"):
        with pytest.raises(ValueError, match="isn't one of Frozen Lake or Snake"):
            load_agent(spec).act(["You see a troll."])


def test_a_users_game_needs_one_line():
    class Own(Undealt):
        """A game that no player knows yet."""

    class OwnSearch:
        def __init__(self, game):
            self.greedy = lambda request: Choice("left", "Left comes first.")
            self.plan = lambda request: Choice("right", "Right is far away.")

    request = TurnRequest("Hide.", legal_actions=Own.actions, game=Own())
    with pytest.raises(ValueError, match=r"can't play Own: .*register_search_player\(Own, YourSearch\)"):
        load_agent("greedy").act([request])
    assert "</action>" in load_agent("random").act([request])[0].response
    register_search_player(Own, OwnSearch)
    assert load_agent("greedy").act([request])[0].response.endswith("<action>left</action>")
    assert load_agent("planner").act([request])[0].response.endswith("<action>right</action>")


FOUND = {name: find_yardstick(scenario.game()) for name, scenario in textgames.SCENARIOS.items()}
EXACT = {name: one for name, one in FOUND.items() if one is not None and one.exact}


@pytest.mark.parametrize("name", [name for name in EXACT if textgames.SCENARIOS[name].game().reads_observations])
def test_the_planner_plays_an_action_of_the_largest_value(name):
    assert len(EXACT) > 10
    for episode in play("planner", name, map(textgames.SCENARIOS[name].seed, range(4))):
        for step in episode.steps:
            values = EXACT[name].values(step.state, step.steps_left, step.player)
            assert values[step.action] == pytest.approx(max(values.values())), step.observation


class Shared(Hiding):
    """The same, in which both players win what one of them wins."""

    def outcomes(self, state, joint_action):
        ((_, after, rewards, over),) = super().outcomes(state, joint_action)
        return [(1.0, after, dict.fromkeys(rewards, rewards["player_1"]), over)]


@pytest.mark.parametrize("game", [Hiding(), Hiding(worth=5.0), textgames.openspiel("kuhn_poker"), KuhnPoker()])
def test_planner_plays_the_equilibrium_of_a_game_of_ones_own(game):
    assert isinstance(search_player_of(game), EquilibriumPlayer)
    planner, greedy = measure(load_agent("planner"), game), measure(load_agent("greedy"), game)
    assert planner.value < 0.01
    assert greedy.value > 10 * planner.value
    if isinstance(game, Hiding):  # the two are not mixed up
        assert planner.returns["player_1"] == pytest.approx(game._worth / (1 + game._worth), abs=0.01)


def test_why_there_is_no_equilibrium_is_told():
    with pytest.raises(ValueError, match=r"greedy and planner can't play Undealt.*has no initial_outcomes"):
        search_player_of(Undealt())
    with pytest.raises(ValueError, match=r"greedy and planner can't play Shared.*zero-sum"):
        search_player_of(Shared())
