"""A player that first answers the subproblems that another one writes: ``decomposed(SOLVER, WRITER)``."""

from collections.abc import Mapping
from typing import Any

from agents import Around, Deciding, Policy, Question, TurnRequest
from research.improve.around.questions import below, check_count, check_reads_below, said

WRITE = "Don't answer yet. Write the questions that have to be answered first, one a line."
ANSWER = "Answer this question alone: {question}"


class DecomposedPolicy(Around):
    """A solver that reads its own answers to the questions that a writer, mostly a small model, asks it first.

    The writer is asked once a decision, so that ``around = "decomposed(SOLVER, learner)"`` trains it on the solver's
    return (DaSLaM, arXiv 2310.18338). Each line that it writes is a question, of which the first ``subproblems`` count.
    Our reading: they are asked at the same time, and the writer doesn't see an attempt of the solver before them.

    Raises:
        ValueError: less than one subproblem, or a player that wouldn't read what it is asked.
    """

    def __init__(self, solver: Policy, writer: Policy, *, subproblems: int = 3) -> None:
        check_count("subproblems", subproblems)
        for player in (solver, writer):
            check_reads_below(player)
        super().__init__("decomposed", solver, writer)
        self.subproblems = subproblems

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        return 1 + int(options["subproblems"]), 1

    @property
    def settings(self) -> dict[str, Any]:
        return {"subproblems": self.subproblems}

    def decide(self, request: TurnRequest) -> Deciding:
        """Have the questions written, answer each, and answer the request with them; as it is if there are none."""
        (written,) = yield [Question(below(request, WRITE, seed=(*request.seed, 1)), 1, words=True)]
        lines = [line.strip() for line in said(written).splitlines()]
        asked = [line for line in lines if line][: self.subproblems]
        if asked:
            turns = yield [
                Question(below(request, ANSWER.format(question=one), seed=(*request.seed, 2, at)), words=True)
                for at, one in enumerate(asked)
            ]
            answers = [f"{one}\n{said(turn)}" for one, turn in zip(asked, turns, strict=True)]
            request = below(request, *answers)
        (turn,) = yield [Question(request)]
        return turn
