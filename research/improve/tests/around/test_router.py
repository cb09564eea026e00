"""``router(A, B)``: a rule that knows gains over a mixture, one that doesn't is a mixture; and both players count."""

from collections.abc import Sequence

import numpy as np
import pytest

import benchmark
from agents import load_agent
from agents.episode import Episode, EpisodeTask
from agents.load import check_agent, options_taken
from agents.loop.rollout import rollout
from agents.turn import Policy, Turn, TurnRequest, Usage
from agents.wrappers import innermost, questions, wrapped_in
from benchmark.cli import main
from benchmark.errors import UsageError
from benchmark.play.claims import names_code
from benchmark.play.cost.prices import is_paid
from research.improve.around.router import RouterPolicy
from research.improve.tests.around.conftest import mean_return_of


def episodes(policy: Policy, count: int = 120) -> list[Episode]:
    return list(rollout(policy, [EpisodeTask.of("frozen-lake", seed) for seed in range(count)]))


def asked(played: Sequence[Episode], name: str) -> float:
    """The share of the decisions that a player answered."""
    answered = [step.turn.served_by == name for episode in played for step in episode.steps]
    return float(np.mean(answered))


def test_the_rule_that_knows_beats_the_mixture_at_its_share():
    random, planner = load_agent("random"), load_agent("planner")
    routed = episodes(RouterPolicy(random, planner, route_by="loss"))
    share = asked(routed, "planner")
    mixed = episodes(RouterPolicy(random, planner, route_by="share", share=share))
    assert mean_return_of(routed) == 1.0  # no move that loses anything is played
    assert 0.3 < share < 0.9
    assert asked(mixed, "planner") == pytest.approx(share, abs=0.1)
    assert mean_return_of(mixed) < 0.9


@pytest.mark.slow
def test_a_player_that_agrees_by_chance_alone_is_no_better_than_a_mixture():
    random, planner = load_agent("random"), load_agent("planner")
    routed = episodes(RouterPolicy(random, planner, proposals=2, least=1.0), 240)
    mixed = episodes(RouterPolicy(random, planner, route_by="share", share=asked(routed, "planner")), 240)
    assert mean_return_of(routed) <= mean_return_of(mixed) + 0.1


class Says:
    """Answers from a list, in order, and remembers how many requests it was asked at once."""

    def __init__(self, name: str, *answers: str) -> None:
        self.name, self.answers, self.batches = name, list(answers), list[int]()

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        self.batches.append(len(requests))
        return [Turn(self.answers.pop(0), usage=Usage(10, 2), seconds=1.0) for _ in requests]


def said(action: str) -> str:
    return f"<action>{action}</action>"


def test_the_second_is_asked_where_the_first_does_not_agree_with_itself():
    first = Says("first", said("left"), said("left"), said("left"), said("right"), "?", "?")
    second = Says("second", said("up"), said("down"))
    router = RouterPolicy(first, second, proposals=2, least=1.0)
    requests = [TurnRequest("where", legal_actions=("left", "right", "up", "down"), seed=(at,)) for at in range(3)]
    turns = router.act(requests)
    assert [turn.response for turn in turns] == [said("left"), said("up"), said("down")]
    assert [turn.served_by for turn in turns] == ["first", "second", "second"]
    assert (first.batches, second.batches) == ([6], [2])  # one batch for each of them
    assert [turn.usage for turn in turns] == [Usage(20, 4), Usage(30, 6), Usage(30, 6)]
    assert [turn.seconds for turn in turns] == [1.0, 2.0, 2.0]


def test_a_third_player_says_who_answers():
    """Either by name; the first where it names neither, as where it answers the game's question."""
    first, second = Says("first", said("left"), said("left")), Says("second", said("up"))
    chooser = Says("chooser", said("second"), said("first"), said("up"))
    request = TurnRequest("where", legal_actions=("left", "up"))
    turns = RouterPolicy(first, second, chooser).act([request] * 3)
    assert [turn.response for turn in turns] == [said("up"), said("left"), said("left")]
    assert [turn.served_by for turn in turns] == ["second", "first", "first"]
    assert (chooser.batches, first.batches, second.batches) == ([3], [2], [1])
    assert {turn.usage for turn in turns} == {Usage(20, 4)}  # the choice counts


def test_the_form_of_a_spec(capsys):
    assert wrapped_in("router(search(tiny), router(planner, random))") == (
        "router",
        ("search(tiny)", "router(planner, random)"),
    )
    assert innermost("router(search(tiny), router(planner, random))") == ("tiny", "planner", "random")
    for wrong in ("router(tiny)", "router(tiny,)", "router(a, b, c, d)", "search(a, b, c)"):
        with pytest.raises(
            ValueError, match=r"is not of the form (router\(AGENT, AGENT\[, AGENT\]\)|search\(AGENT\[, AGENT\]\))"
        ):
            check_agent(wrong)
        assert main(["run", "--agent", wrong, "--scenario", "frozen-lake"]) == 2
        assert "is not of the form" in capsys.readouterr().err
    with pytest.raises(ValueError, match="did you mean 'planner'"):
        check_agent("router(tiny, plannr)")


def test_everybody_inside_counts():
    """For code that a folder names, for money, for tokens and for options."""
    assert names_code("router(planner, evil.py:Agent)")
    assert names_code("router(hf:, evil.py:Agent)")
    assert not names_code("router(planner, random)")
    assert is_paid("router(tiny, openai:gpt-4o-mini)")
    assert not is_paid("router(tiny, planner)")
    assert questions("search(search(tiny))", {"proposals": 3}) == {"tiny": 9}
    assert questions("search(tiny)", {}) == {"tiny": 8}
    assert questions("imagine(openai:a, openai:b)", {"revisions": 5}) == {"openai:a": 6, "openai:b": 5}
    assert questions("advised(imagine(a, b), b)", {}) == {"a": 2, "b": 2}
    assert questions("router(a, b)", {"route_by": "share"}) == {"a": 1, "b": 1}
    assert questions("router(tiny, planner)", {"proposals": 3}) == {"tiny": 3, "planner": 1}
    assert questions("router(tiny, tiny)", {}) == {"tiny": 5}
    assert questions("router(tiny, planner, random)", {}) == {"tiny": 1, "planner": 1, "random": 1}
    options, others = options_taken("router(random, openai:x)")
    assert {"seed", "temperature", "share", "route_by"} <= set(options)
    assert not others


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"route_by": "los"}, "did you mean 'loss'"),
        ({"share": 1.5}, "share is a number from 0 to 1, got 1.5"),
        ({"proposals": 0}, "proposals is a whole number from 1 to 10,000, got 0"),
        ({"least": 5}, "least is a number from 0 to 1, a share of the proposals, got 5"),
        ({"least": float("nan")}, "least is a number from 0 to 1, a share of the proposals, got nan"),
        ({"least": 0.5, "route_by": "share"}, "least = 0.5 decides nothing if route_by = 'share': leave it out"),
        ({"least": -3, "route_by": "loss"}, "least is a number of at least 0, a loss, got -3"),
        ({"least": float("inf"), "route_by": "loss"}, "least is a number of at least 0, a loss, got inf"),
        ({"route_by": "player"}, "with 2 players: 'player' is the rule of"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        check_agent("router(random, planner)", **options)


def test_a_game_without_exact_values_is_not_routed_by_loss():
    with pytest.raises(UsageError, match="has no exact values"):
        benchmark.evaluate(
            agents={"r": "router(random, planner)"},
            scenarios=["snake"],
            episodes=1,
            quiet=True,
            agent_options={"r": {"route_by": "loss"}},
        )


@pytest.mark.slow
def test_a_run_tells_who_answered(tmp_path):
    run = {"agents": {"mix": "router(random, search(tiny))"}, "scenarios": ["frozen-lake"], "episodes": 4}
    result = benchmark.evaluate(**run, out=tmp_path / "run", quiet=True, agent_options={"mix": {"proposals": 2}})
    card = result.columns.agents["mix"]
    assert card["spec"] == "router(random, search(tiny))"
    own = card["settings"]["router"]
    assert (own["route_by"], own["proposals"], own["others"][0]["search"]["proposals"]) == ("agreement", 2, 2)
    assert set(result.leaderboard().scores[0]["served_by"]) <= {"random", "search(tiny)"}
