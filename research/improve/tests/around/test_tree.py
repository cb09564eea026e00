"""Tree search finds what flat search gets wrong, gains with simulations by true rules, and nothing by wrong ones."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import textgames
from agents import SearchPlayer, TurnRequest, action_named, load_agent, request_in
from agents.analysis import random_positions
from agents.baselines.search import register_search_player
from agents.episode import EpisodeTask
from agents.load import check_agent
from research.improve.around.choosing import SearchPolicy
from research.improve.around.reading import FalseWorld, TrueWorld
from research.improve.programs.rules import RulesPlayer
from research.improve.tests.around.conftest import Scripted

RULES = (Path(__file__).parents[2] / "examples" / "frozen_lake_rules.py").read_text()
FORGED = """
_parse = parse
def parse(observation):
    try:
        raise ValueError
    except ValueError as error:
        error.__traceback__.tb_frame.f_back.f_globals["key_of"] = lambda state: {"no": "key"}
    return _parse(observation)
"""
WRONG = RULES.replace('float(place == state["goal"])', "0.0")  # nothing is worth anything


class Trap(textgames.TSMG[str]):
    """A safe move pays at once; after the risky one, one of three moves is good and the others are bad."""

    actions = ("safe", "risky", "a", "b", "c")

    def __init__(self, safe: float, of_three: Sequence[float], players: int) -> None:
        self.players, self._safe, self._of_three = tuple(f"player_{n}" for n in range(players)), safe, of_three

    def initial_state(self, rng):
        return "start"

    def to_move(self, state):
        return (self.players[-1] if state == "deep" else self.players[0],)

    def legal_actions(self, state, player):
        return self.actions[2:] if state == "deep" else self.actions[:2]

    def transition(self, state, joint_action, rng):
        (action,) = joint_action.values()
        if action == "risky":
            return "deep", dict.fromkeys(self.players, 0.0), False
        paid = self._safe if action == "safe" else self._of_three["abc".index(action)]
        return "end", {"player_0": paid, self.players[-1]: paid if len(self.players) == 1 else -paid}, True

    def observe(self, state, player):
        return state

    def instructions(self, player):
        return "Take one: safe, risky, a, b, c."


class Reader(SearchPlayer):
    def values(self, request):
        raise NotImplementedError("nothing but its state is asked for")

    def state(self, request):
        return request.observation


register_search_player(Trap, Reader)


@pytest.mark.parametrize(
    ("game", "best"),
    [  # means 1/3; truly 1 and -1
        (Trap(0.5, (1, 0, 0), 1), "risky"),
        (Trap(50.0, (100, 0, 0), 1), "risky"),
        (Trap(-0.2, (-1, 1, 1), 2), "safe"),
    ],
    ids=["one's own next move", "in larger units", "another's reply"],
)
def test_a_tree_sees_what_flat_search_gets_wrong(game, best):
    requests = [request_in(game, "start", "player_0", 5, seed=(at,)) for at in range(10)]
    random = load_agent("random")
    tree = SearchPolicy(random, proposals=16, rank_by="tree", simulations=400).act(requests)
    flat = SearchPolicy(random, proposals=16, rank_by="rollouts", rollouts=200).act(
        requests
    )  # as many, for two actions
    named = [{action_named(requests[0], turn.response) for turn in turns} for turns in (tree, flat)]
    assert named == [{best}, {"safe", "risky"} - {best}]


def test_the_first_simulation_follows_most_proposals_and_none_outlasts_the_clock():
    agent = Scripted(lambda request: "risky" if len(request.seed) == 1 else "safe")  # one of eight says risky
    game, once = Trap(0.5, (1, 1, 1), 1), SearchPolicy(agent, rank_by="tree", simulations=1)
    turns = once.act([request_in(game, "start", "player_0", 5, seed=(at,)) for at in range(10)])
    assert {turn.response for turn in turns} == {"safe"}
    often = SearchPolicy(agent, rank_by="tree", simulations=200)
    named = [often.act([request_in(game, "start", "player_0", left, seed=(0,))])[0].response for left in (1, 2)]
    assert named == ["safe", "risky"]


POSITIONS = [
    one
    for one in random_positions([EpisodeTask.of("frozen-lake", 10_000 + seed) for seed in range(40)])
    if min(one.values.values()) < max(one.values.values()) and (one.request.steps_left or 0) <= 6
][:24]


def regret(world=None, **options) -> float:
    """The mean loss of a decision, by exact values, where a random player proposes."""
    policy = SearchPolicy(load_agent("random"), world, proposals=16, **({"rank_by": "tree"} | options))
    turns = policy.act([replace(one.request, seed=(at,)) for at, one in enumerate(POSITIONS)])
    played = [one.values[action_named(one.request, turn.response)] for one, turn in zip(POSITIONS, turns, strict=True)]
    return float(np.mean([max(one.values.values()) - value for one, value in zip(POSITIONS, played, strict=True)]))


def test_regret_falls_with_simulations():
    found = [regret(simulations=number) for number in (2, 128, 512)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.1 < 0.2 < found[0]


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path):
    if not isinstance(request.param, str):
        return request.param()
    (file := tmp_path / "rules.py").write_text(request.param)
    return RulesPlayer(str(file))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "gains"),
    [(RULES, True), (WRONG, False), (TrueWorld, True), (FalseWorld, False)],
    ids=["true rules", "wrong rules", "true predictions", "false predictions"],
    indirect=["world"],
)
def test_only_a_true_world_gains(world, gains):
    found, votes = regret(world, simulations=256), regret(rank_by="votes")
    assert (found < 0.3 * votes) if gains else (found > 0.7 * votes)


@pytest.mark.parametrize("world", [RULES + FORGED], indirect=True)
def test_rules_that_forge_the_harness_tell_nothing(world):
    assert isinstance(world.sandbox.call("predict", POSITIONS[0].request.observation).value[0], dict)
    assert regret(world, simulations=4) >= 0.0


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("search(random)", {"simulations": 0}, "simulations is a whole number from 1 to 10,000, got 0"),
        ("webpilot(random)", {"simulations": 0}, "simulations is a whole number from 1 to 10,000, got 0"),
        ("search(random, planner)", {"rank_by": "votes"}, "'votes' asks no second player"),
    ],
)
def test_wrong_options_are_refused(spec, options, message):
    with pytest.raises(ValueError, match=message):
        check_agent(spec, **options)


@pytest.mark.parametrize(
    ("scenario", "message"), [("snake-duel", "can't be played on"), ("snake", "ends in no success")]
)
def test_games_that_cant_be_searched_are_refused(scenario, message):
    world = TrueWorld() if scenario == "snake" else None
    with pytest.raises(ValueError, match=message):
        SearchPolicy(load_agent("random"), world, rank_by="tree").check_game(textgames.known_scenario(scenario).game())


def test_bare_text_is_refused():
    with pytest.raises(ValueError, match="ask it with a TurnRequest"):
        SearchPolicy(load_agent("random"), rank_by="tree", proposals=20).act(
            [TurnRequest("x", legal_actions=("a", "b"))]
        )
