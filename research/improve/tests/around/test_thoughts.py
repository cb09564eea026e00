"""``thoughts(AGENT, POLICY)``: a policy that knows gains over one answer at equal calls, a useless one doesn't."""

from dataclasses import replace

import numpy as np
import pytest

from agents import SearchPlayers, TurnRequest, load_agent, questions
from agents.load import check_agent
from research.improve.around.thoughts import OPERATIONS, ThoughtsPolicy
from research.improve.tests.around.conftest import DEEPER, WORDS, Scripted, late, light, mean_return

SEARCHERS = SearchPlayers()


def noisy() -> Scripted:
    """Plays the best move with a chance of a half, else any."""
    best, any_move = load_agent("planner"), load_agent("random")

    def answer(request: TurnRequest) -> str:
        right = np.random.default_rng([*request.seed, 3]).random() < 0.5
        (turn,) = (best if right else any_move).act(
            [replace(request, observation=request.observation.split("\n\n")[0])]
        )
        return turn.response

    return Scripted(answer)


def knows(request: TurnRequest) -> str:
    """Answers when the latest thought loses nothing by the true values, and else proposes another."""
    shown, graph, _ = request.observation.rsplit("\n\n", 2)
    latest = graph.splitlines()[-1].split(". ")[1].split(" (")[0]
    values = SEARCHERS.of(request).values(replace(request, observation=shown))
    return f"<action>{'answer' if values[latest] == max(values.values()) else 'propose'}</action>"


def test_a_policy_that_knows_gains_over_one_answer_at_equal_calls_and_a_random_one_does_not():
    alone = mean_return(noisy(), 60)
    agent = noisy()
    chosen = mean_return(ThoughtsPolicy(agent, Scripted(knows)), 60)
    fixed_agent = noisy()
    fixed = mean_return(ThoughtsPolicy(fixed_agent, schedule="propose propose answer"), 60)
    assert agent.asked < fixed_agent.asked
    assert chosen > 0.9 > alone + 0.2
    assert fixed == pytest.approx(alone, abs=0.15)
    assert mean_return(ThoughtsPolicy(noisy(), load_agent("random")), 60) == pytest.approx(alone, abs=0.15)


def test_each_operation_reads_what_it_works_on():
    says = {
        "agent": iter(["up", "left", "<think>10</think>8 of 10", "it is 3.5", "hm", "down"]),
        "policy": iter(["propose", "score", "score", "refine", "aggregate", "?"]),
    }
    read: dict[str, list[str]] = {"agent": [], "policy": []}

    def player(name: str) -> Scripted:
        return Scripted(lambda request: read[name].append(request.observation) or next(says[name]))

    thoughts = ThoughtsPolicy(player("agent"), player("policy"), operations=8)
    (turn,) = thoughts.act([TurnRequest("where", legal_actions=("up", "left", "down"))])
    assert turn.response == "left"  # the answer of the highest score
    asked = "where\n\nHow good an answer is this, from 0 to 10? Write the number alone: "
    assert read["agent"][:4] == ["where", "where", f"{asked}left", f"{asked}up"]
    assert "\n\nYour answer so far: left\n" in read["agent"][4]
    assert "\n\nYour answers so far: up, left, hm\n" in read["agent"][5]
    lines = "1. up (propose, score 3.5)\n2. left (propose, score 8)\n3. hm (refine)\n4. down (aggregate)"
    assert read["policy"][-1] == f"where\n\nAnswers so far:\n{lines}\n\nWhich operation is next?"


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("thoughts(random)", {"schedule": "propose agregate"}, r"got 'agregate' \(did you mean 'aggregate'"),
        ("thoughts(random)", {"schedule": "score answer"}, "the first operation has to be propose"),
        ("thoughts(random)", {"schedule": ""}, "schedule = '': the first operation has to be propose"),
        ("thoughts(random)", {"operations": 3}, "operations = 3 without a policy"),
        ("thoughts(random, random)", {"schedule": "propose"}, "with a policy, which chooses operations itself"),
        ("thoughts(random, random)", {"operations": 1}, "operations = 1 leaves the policy no choice"),
    ],
)
def test_what_cannot_be_followed_is_refused(spec, options, message):
    with pytest.raises(ValueError, match=message):
        check_agent(spec, **options)


class Often(Scripted):
    """Says the light with a chance of a half, else nothing that can be read."""

    def __init__(self) -> None:
        super().__init__(lambda one: light(one) if np.random.default_rng([*one.seed, 4]).random() < 0.5 else "none")


@pytest.mark.slow
def test_a_model_learns_which_operation_is_next(make):
    """One answer is right in a half of the cases, and one of six nearly always; what can't be read plays red."""
    words = (*WORDS, *OPERATIONS, "Answers so far:", "Which operation is next?")
    trainer = make(f"thoughts({__name__}:Often, learner)", DEEPER, "TestDim-v0", words, iterations=25)
    assert late(trainer) > 0.85
    assert trainer.history[0]["return"] < 0.5


def test_its_questions_are_counted():
    assert questions("thoughts(a)", {"schedule": "propose score"}) == {"a": 2}
    assert questions("thoughts(a, b)", {"operations": 4}) == {"a": 4, "b": 3}
