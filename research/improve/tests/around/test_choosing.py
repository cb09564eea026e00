"""Players that choose among proposals gain by a value or a world that is true, and nothing by one that is useless."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import textgames
from agents import SearchPlayer, SearchPlayers, TurnRequest, action_named, load_agent, request_in, search_player_of
from agents.analysis import random_positions
from agents.baselines.search import register_search_player
from agents.episode import EpisodeTask
from agents.turn import Turn, Usage
from research.improve.around.choosing import PLAN, SearchPolicy, WebPilotPolicy, improved, probability_in
from research.improve.around.reading import FalseWorld, TrueWorld
from research.improve.programs.players import RulesPlayer
from research.improve.tests.around.conftest import Scripted, mean_return

SEARCHERS = SearchPlayers()


def useless(request: TurnRequest, actions: Sequence[str]) -> dict[str, float]:
    """Values that have nothing to do with the game."""
    return dict(zip(actions, np.random.default_rng(request.seed).random(len(actions)), strict=True))


@pytest.mark.slow
def test_true_values_gain_and_useless_ones_do_not():
    random = load_agent("random")
    alone = mean_return(random, 60)
    # the best move is among eight random ones nine times in ten, and a way takes six
    assert mean_return(SearchPolicy(random, rank_by="exact"), 60) >= alone + 0.5
    assert mean_return(SearchPolicy(random, rank_by="rollouts"), 60) >= alone + 0.3
    for rank in (useless, "votes"):
        assert mean_return(SearchPolicy(random, rank_by=rank), 60) <= alone + 0.1


def test_one_proposal_is_what_the_player_inside_answers():
    model, game, rng = load_agent("tiny"), textgames.game_of("TextFrozenLake-v0"), np.random.default_rng(0)
    requests = [request_in(game, game.initial_state(rng), "player_0", 6, seed=(3, at)) for at in range(4)]
    ours, theirs = SearchPolicy(model, proposals=1, rank_by="exact").act(requests), model.act(requests)
    assert [(turn.response, turn.usage) for turn in ours] == [(turn.response, turn.usage) for turn in theirs]
    several = SearchPolicy(model, proposals=3).act(requests)
    assert [turn.usage.prompt_tokens for turn in several] == [3 * turn.usage.prompt_tokens for turn in theirs]


def said(response: str, **fields: Any) -> Turn:
    return Turn(response, usage=Usage(10, 2), **fields)


def chosen(*answers: Turn, actions: tuple[str, ...] = ("left", "right")) -> Turn:
    policy = SearchPolicy(Scripted(answers), proposals=len(answers))
    (turn,) = policy.act([TurnRequest("where", legal_actions=actions, seed=(1,))])
    return turn


def test_votes_count_what_can_be_read():
    left, right = said("<action>left</action>"), said("<action>right</action>")
    assert chosen(left, right, right).response == right.response
    assert chosen(left, right).response == left.response  # of equals the first
    assert chosen(said("?"), said("??"), right).response == right.response
    assert chosen(said("?"), said("??")).response == "?"
    assert chosen(left, right, right).usage == Usage(30, 6)
    free = chosen(said("<action>12</action>"), said("<action>7</action>"), said("<action> 7 </action>"), actions=())
    assert free.response == "<action>7</action>"


def test_what_the_response_cache_knew_is_not_paid_for_again():
    fresh, known = said("<action>left</action>"), Turn("<action>right</action>", usage=Usage(10, 2, cached=True))
    turn = chosen(fresh, known, known)
    assert turn.usage[:2] == (30, 6)
    assert turn.paid == Usage(10, 2)
    assert chosen(known, known).paid[:2] == (0, 0)
    again = said("<action>left</action>", discarded=Usage(7, 1))
    assert chosen(again, known).paid == Usage(17, 3)


def test_a_server_is_asked_for_all_proposals_at_once():
    class Served(Scripted):
        in_flight = most = 0

        async def act_async(self, request: TurnRequest | str) -> Turn:
            self.in_flight += 1
            self.most = max(self.most, self.in_flight)
            await asyncio.sleep(0.01)
            self.in_flight -= 1
            return self.act([request])[0]

    inner = Served(f"<action>{name}</action>" for name in ("left", "right", "right"))
    policy = SearchPolicy(inner, proposals=3)
    assert policy.served
    turn = asyncio.run(policy.act_async(TurnRequest("where", legal_actions=("left", "right"))))
    assert (turn.response, inner.most) == ("<action>right</action>", 3)


def knows(request: TurnRequest) -> str:
    """State the exact probability of success after the action that is asked about, in per cent."""
    board, _, asked = request.observation.partition("\n\n")
    after = TurnRequest(board, legal_actions=request.game.actions, steps_left=request.steps_left, game=request.game)
    named = re.search(r"action is: (\w+)", asked)[1]
    return f"<action>{round(100 * SEARCHERS.of(after).values(after)[named], 2)}</action>"


def guesses(request: TurnRequest) -> str:
    return f"<action>{np.random.default_rng(len(request.observation)).integers(0, 101)}</action>"


def test_a_judge_that_knows_gains_and_one_that_does_not_gains_nothing():
    def success(judge=None) -> float:
        judging = {"rank_by": "judge", "second": Scripted(judge)} if judge else {}
        return mean_return(SearchPolicy(load_agent("random"), **judging), 60, "frozen-lake-level-1")

    votes = success()
    assert success(knows) >= votes + 0.4
    assert success(guesses) <= votes + 0.1


def test_values_are_log_votes_plus_log_odds():
    told = [Turn("<action>75</action>"), Turn("I take it for 20 percent."), Turn("likely")]
    values = improved(["a", "b", "a", "c"], ["a", "b", "c"], told)
    assert values == pytest.approx({"a": log(0.5) + log(3), "b": log(0.25) - log(4), "c": log(0.25)})
    assert [probability_in(Turn(said)) for said in ("100", "0%", "150", "-3", "")] == pytest.approx(
        [0.999, 0.001, 0.5, 0.5, 0.5]
    )


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
    tree = SearchPolicy(random, proposals=16, rank_by="tree", simulations=400)
    flat = SearchPolicy(random, proposals=16, rank_by="rollouts", rollouts=200)  # as many, for two actions
    named = [{action_named(requests[0], turn.response) for turn in one.act(requests)} for one in (tree, flat)]
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
    """Return the mean loss of a decision, by exact values, if a random player proposes."""
    policy = SearchPolicy(load_agent("random"), world, proposals=16, **({"rank_by": "tree"} | options))
    turns = policy.act([replace(one.request, seed=(at,)) for at, one in enumerate(POSITIONS)])
    played = [one.values[action_named(one.request, turn.response)] for one, turn in zip(POSITIONS, turns, strict=True)]
    return float(np.mean([max(one.values.values()) - value for one, value in zip(POSITIONS, played, strict=True)]))


def test_regret_falls_with_simulations():
    found = [regret(simulations=number) for number in (2, 128, 512)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.1 < 0.2 < found[0]


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


class Pilot(Scripted):
    """Plans the way to the goal, counts its steps when it reflects, and plays what plan and count say, else at random.

    A useless one writes a plan and reflections in which there is no way and no number.
    """

    def __init__(self, useful: bool) -> None:
        super().__init__(self._answer)
        self.useful, self._planner, self._random = useful, load_agent("planner"), load_agent("random")

    def _answer(self, request: TurnRequest) -> str:
        if request.observation.endswith(PLAN):
            return " ".join(self._way(request)) if self.useful else "Reach the goal."
        if request.observation.endswith("the next move."):
            before = len(re.findall("<action>", request.observation))
            return f"That went well, {before} more." if self.useful else "That went well."
        plan = re.search(r"Your plan: (.*)", request.observation)
        way = re.findall("left|right|up|down", plan[1]) if plan else []
        done = len(request.history) if "1 more" in request.observation else 0
        named = way[done] if done < len(way) else None
        return f"<action>{named}</action>" if named else self._random.act([request])[0].response

    def _way(self, request: TurnRequest) -> list[str]:
        """Return the moves of the planner; the lake isn't slippery, so they lead to the goal."""
        game, found = request.game, list[str]()
        state = search_player_of(game).state(request)
        while game.is_playing(state, request.player):
            asked = request_in(game, state, request.player, 8 - len(found))
            found.append(re.search(r"<action>(.*)</action>", self._planner.act([asked])[0].response)[1])
            state, *_ = game.transition(state, {request.player: found[-1]}, None)
        return found


@pytest.mark.parametrize(
    ("useful", "options", "gains"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"plan": False}, False),
        (True, {"reflect": False}, False),  # it plays the first move of its plan again and again
    ],
)
def test_a_good_plan_and_good_reflections_gain_everything_and_useless_ones_nothing(useful, options, gains):
    pilot = Pilot(useful)
    found = mean_return(WebPilotPolicy(pilot, proposals=1, **options), 20)
    assert found == 1.0 if gains else found <= 0.2
    assert sum(text.endswith(PLAN) for text in pilot.read) == (20 if options.get("plan", True) else 0)


def test_what_a_pilot_is_asked():
    pilot = Scripted(lambda request: "go up" if request.observation.endswith(PLAN) else "<action>up</action>", "says")
    policy = WebPilotPolicy(pilot, proposals=2)
    policy.act([TurnRequest("first", legal_actions=("up", "down"), seed=(1, 0, 0))])
    history = (("first", "<action>down</action>"),)
    policy.act([TurnRequest("second", legal_actions=("up", "down"), seed=(1, 1, 0), history=history)])
    reflection = (
        "first\n\nYour plan: go up\n\nYou answered: <action>down</action>\nThen you saw:\nsecond\n"
        "Say in a few words how that went and what follows for the next move."
    )
    second = "second\n\nYour plan: go up\n\nYour reflection on the last step: <action>up</action>"
    assert pilot.read == [f"first\n\n{PLAN}", *["first\n\nYour plan: go up"] * 2, reflection, *[second] * 2]
    assert policy.asks(1, {"proposals": 2, "simulations": 64, "depth": 50, "plan": True, "reflect": True}) == (4,)
    assert policy.name == "webpilot(says)"
