"""``decomposed(SOLVER, WRITER)``: subproblems that matter help the solver, others don't, and a model learns which."""

import numpy as np
import pytest

from agents import EpisodeTask, TurnRequest, rollout
from research.improve.around.decomposed import DecomposedPolicy
from research.improve.tests.around.conftest import Scripted, Unlit, late, light
from tests.agents.msgrpo.test_trainer import BANDIT

GOOD, USELESS = "Which light is on?", "Which day is it?"
WORDS = ("The light is ", "\n", GOOD, USELESS, "Who knows?")


class Solver(Unlit):
    """Knows the light if it is asked for it, presses what it has read there, and else any button."""

    def __init__(self) -> None:
        super().__init__()
        guess, self.answer = self.answer, lambda request: self.solve(request) or guess(request)

    def solve(self, request: TurnRequest) -> str:
        if f"alone: {GOOD}" in request.observation:
            return light(request)
        return request.observation.partition(f"{GOOD}\n")[2].partition("\n")[0]


def right(written: str) -> float:
    player = DecomposedPolicy(Solver(), Scripted(lambda request: written))
    played = rollout(player, [EpisodeTask.of("TestDim-v0", seed) for seed in range(90)])
    return float(np.mean([episode.returns["player_0"] for episode in played]))


@pytest.mark.parametrize(
    ("written", "least", "most"),
    [
        (f"\n{USELESS}\n\n {GOOD}", 1.0, 1.0),
        (USELESS, 0.2, 0.47),
        ("", 0.2, 0.47),
        (f"{USELESS}\n" * 3 + GOOD, 0.2, 0.47),
    ],
)
def test_the_questions_decide(written, least, most):
    assert least <= right(written) <= most


def test_what_is_asked_and_read():
    read, seeds = list[str](), list[tuple[int, ...]]()

    def solver(request: TurnRequest) -> str:
        read.append(request.observation)
        seeds.append(request.seed)
        return f"<action>answer {len(read)}</action>"

    player = DecomposedPolicy(
        Scripted(solver), Scripted(lambda request: "<think>\nHm?\n</think>\na?\nb?\nc?"), subproblems=2
    )
    (turn,) = player.act([TurnRequest("where")])
    asked = [f"where\n\nAnswer this question alone: {one}?" for one in "ab"]
    assert read == [*asked, "where\n\na?\n<action>answer 1</action>\n\nb?\n<action>answer 2</action>"]
    assert (turn.usage[:2], len({*seeds})) == ((40, 4), 3)


@pytest.mark.slow
def test_a_model_learns_to_write_the_question_that_matters(make):
    trainer = make(f"decomposed({__name__}:Solver, learner)", BANDIT, "TestDim-v0", WORDS)
    assert late(trainer) > 0.9
    assert trainer.history[0]["return"] < 0.6
