"""``advised(A, B)``: the planner's advice makes a player that follows it perfect, random advice doesn't help it."""

import re
from collections.abc import Sequence

import pytest

from agents import load_agent
from agents.load import check_agent
from agents.turn import Turn, TurnRequest, Usage
from research.improve.around.reading import AdvisedPolicy
from research.improve.tests.around.conftest import Scripted, mean_return


def follow(request: TurnRequest) -> str:
    """Do what the advice says, and else the first legal action."""
    told = re.search(r"Advice: (.+)", request.observation)
    return f"<action>{told[1] if told else request.legal_actions[0]}</action>"


def test_true_advice_is_worth_everything_and_random_advice_nothing():
    random = load_agent("random")
    assert mean_return(AdvisedPolicy(Scripted(follow), load_agent("planner")), 60) == 1.0
    assert mean_return(AdvisedPolicy(Scripted(follow), random), 60) <= mean_return(random, 60) + 0.15


class Says:
    """One answer to everything; keeps what it read."""

    def __init__(self, answer: str, error: str | None = None) -> None:
        self.name, self.answer, self.error, self.read = "says", answer, error, list[str]()

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        self.read += [each if isinstance(each, str) else each.observation for each in requests]
        return [Turn(self.answer, usage=Usage(10, 2), error=self.error) for _ in requests]


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        ("<think>the hole is right</think><action>down</action>", "where\n\nTold: down"),
        (" There is a hole on your right. ", "where\n\nTold: There is a hole on your right."),
        ("", "where"),
    ],
)
def test_what_the_player_reads(answer, read):
    player = Says("<action>down</action>")
    policy = AdvisedPolicy(player, Says(answer), advice="Told: {advice}")
    (turn,) = policy.act([TurnRequest("where", legal_actions=("down", "up"))])
    assert player.read == [read]
    assert (turn.response, turn.usage) == ("<action>down</action>", Usage(20, 4))


def test_an_error_of_the_advisor_is_the_decisions():
    player = Says("<action>down</action>")
    (turn,) = AdvisedPolicy(player, Says("", error="no connection")).act(["where"])
    assert (turn.error, player.read) == ("no connection", [])


def test_words_without_a_place_are_refused():
    with pytest.raises(ValueError, match=r"must have \{advice\} in it"):
        check_agent("advised(random, planner)", advice="Listen!")


READERS = ["advised(tiny, planner)", "imagine(tiny, planner)", "consult(random, planner, tiny)"]
READERS += ["router(random, planner, tiny)", "imagine(random, tiny)"]


@pytest.mark.parametrize("spec", [*READERS, "decomposed(tiny, random)", "modes(tiny, planner)", "thoughts(tiny)"])
def test_a_player_that_would_not_read_it_is_refused(spec):
    with pytest.raises(ValueError, match=r"reads observations up to .*Grid"):
        load_agent(spec, prompts="brief-coordinates")
