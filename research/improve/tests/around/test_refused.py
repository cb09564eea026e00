"""What a player around others refuses: options that mean nothing, players that wouldn't read it, games that it isn't
for."""

import pytest

import textgames
from agents import TurnRequest, load_agent
from agents.load import check_agent
from research.improve.around.choosing import SearchPolicy
from research.improve.around.reading import FalseWorld, ImaginePolicy, TrueWorld, UCBPlayer, WithPayoffs
from research.improve.around.routing import RouterPolicy

ROUTER, MODEL = "router(random, planner)", "search(hf:no/such-model)"  # refused before anything is loaded
COUNT = "is a whole number from 1 to 10,000, got"
LEAST = "least is a number from 0 to 1, a share of the proposals, got"
OPTIONS = [
    ("with_payoffs(random)", {"payoffs": "none"}, "payoffs is 'none'; accepted are cells"),
    ("with_payoffs(random)", {"payoffs": "a, b: 1, 1 b, b: 4, 4"}, "semicolons between them"),
    ("advised(random, planner)", {"advice": "Listen!"}, r"must have \{advice\} in it"),
    ("modes(random, planner)", {"forced": 1}, "forced is a number from 0 to 1, and less than 1, got 1"),
    (MODEL, {"proposals": 0}, f"proposals {COUNT} 0"),
    (MODEL, {"proposals": 10_001}, f"proposals {COUNT} 10001"),
    (MODEL, {"rank_by": "exat"}, "did you mean 'exact'"),
    ("search(random)", {"simulations": 0}, f"simulations {COUNT} 0"),
    ("search(random, planner)", {"rank_by": "votes"}, "'votes' asks no second player"),
    ("search(random)", {"rank_by": "judge"}, r"'judge' asks a second player: search\(AGENT, JUDGE\)"),
    ("search(random)", {"rank_by": "value"}, "rank_by = 'value' needs what textbench improve value leaves"),
    ("search(random)", {"value": "v"}, "value = 'v' decides nothing if rank_by = 'votes'"),
    (ROUTER, {"route_by": "los"}, "did you mean 'loss'"),
    (ROUTER, {"share": 1.5}, "share is a number from 0 to 1, got 1.5"),
    (ROUTER, {"least": 5}, f"{LEAST} 5"),
    (ROUTER, {"least": float("nan")}, f"{LEAST} nan"),
    (ROUTER, {"least": 0.5, "route_by": "share"}, "least = 0.5 decides nothing if route_by = 'share': leave it out"),
    (ROUTER, {"least": -3, "route_by": "loss"}, "least is a number of at least 0, a loss, got -3"),
    (ROUTER, {"least": float("inf"), "route_by": "loss"}, "least is a number of at least 0, a loss, got inf"),
    (ROUTER, {"route_by": "player"}, "with 2 players: 'player' is the rule of"),
    ("thoughts(random)", {"schedule": "propose agregate"}, r"got 'agregate' \(did you mean 'aggregate'"),
    ("thoughts(random)", {"schedule": "score answer"}, "the first operation has to be propose"),
    ("thoughts(random)", {"schedule": ""}, "schedule = '': the first operation has to be propose"),
    ("thoughts(random)", {"operations": 3}, "operations = 3 without a policy"),
    ("thoughts(random, random)", {"schedule": "propose"}, "with a policy, which chooses operations itself"),
    ("thoughts(random, random)", {"operations": 1}, "operations = 1 leaves the policy no choice"),
]


@pytest.mark.parametrize(("spec", "options", "message"), OPTIONS)
def test_wrong_options_are_refused(spec, options, message):
    with pytest.raises(ValueError, match=message):
        check_agent(spec, **options)


READERS = ["advised(tiny, planner)", "imagine(tiny, planner)", "imagine(random, tiny)", "decomposed(tiny, random)"]
READERS += ["consult(random, planner, tiny)", "router(random, planner, tiny)", "modes(tiny, planner)", "thoughts(tiny)"]


@pytest.mark.parametrize("spec", [*READERS, "search(random, tiny)", "webpilot(tiny)"])
def test_a_player_that_would_not_read_it_is_refused(spec):
    judge = {"rank_by": "judge"} if spec.startswith("search") else {}
    with pytest.raises(ValueError, match=r"reads observations up to .*Grid"):
        load_agent(spec, prompts="brief-coordinates", **judge)


RANDOM = load_agent("random")


@pytest.mark.parametrize(
    ("policy", "scenario", "message"),
    [
        (SearchPolicy(RANDOM, rank_by="exact"), "snake", "has no exact values"),
        (SearchPolicy(RANDOM, rank_by="rollouts"), "snake-duel", "can't be played on"),
        (SearchPolicy(RANDOM, rank_by="tree"), "snake-duel", "can't be played on"),
        (SearchPolicy(RANDOM, rank_by="exact"), "mastermind", "doesn't list its actions"),
        (SearchPolicy(RANDOM, TrueWorld(), rank_by="tree"), "snake", "ends in no success"),
        (SearchPolicy(RANDOM, TrueWorld(), rank_by="tree"), "tic-tac-toe", "has several players"),
        (RouterPolicy(RANDOM, RANDOM, route_by="loss"), "snake", "has no exact values"),
        (WithPayoffs(RANDOM, payoffs="stag, hare: 1, 2"), "prisoners-dilemma", "payoffs has a cell stag, hare, and"),
        (UCBPlayer(), "frozen-lake", "ucb computes confidence bounds, which FrozenLake has none of: play a bandit"),
        (ImaginePolicy(RANDOM, TrueWorld()), "prisoners-dilemma", "whose players answer at the same time"),
        (ImaginePolicy(RANDOM, FalseWorld()), "word-guess", "which doesn't list its actions"),
        (ImaginePolicy(RANDOM, TrueWorld()), "kuhn-poker", "can't tell the whole state from an observation"),
    ],
)
def test_games_that_they_are_not_for_are_refused(policy, scenario, message):
    with pytest.raises(ValueError, match=message):
        policy.check_game(textgames.known_scenario(scenario).game())


def test_bare_text_is_refused_and_no_game_that_can_be_ranked():
    SearchPolicy(RANDOM).check_game(textgames.known_scenario("word-guess").game())
    SearchPolicy(RANDOM, rank_by="rollouts").check_game(textgames.known_scenario("snake").game())
    with pytest.raises(ValueError, match="ask it with a TurnRequest"):
        SearchPolicy(RANDOM, rank_by="tree", proposals=20).act([TurnRequest("x", legal_actions=("a", "b"))])
