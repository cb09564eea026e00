"""A player on a graph of thoughts, whose operations another one chooses: ``thoughts(AGENT[, POLICY])``."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agents import Around, Deciding, Policy, Question, Turn, TurnRequest, action_named
from research.improve.around.questions import Asking, below, check_count, check_reads_below, choice, said
from textgames import did_you_mean

OPERATIONS = ("propose", "refine", "aggregate", "score", "answer")
SCHEDULE = "propose propose propose aggregate answer"
MOST_OPERATIONS = 6
ASKED = "Which operation is next?"
SCORE = "How good an answer is this, from 0 to 10? Write the number alone: {answer}"
REFINE = "Your answer so far: {answer}\nLook for a mistake in it, and answer again."
AGGREGATE = "Your answers so far: {answers}\nCompare them, and answer."


class Thought(NamedTuple):
    """A node of the graph: an answer of the agent, how it was made, and its score if it was asked for."""

    turn: Turn
    answer: str
    made: str
    readable: bool
    score: float | None = None


class ThoughtsPolicy(Around):
    """Answers by operations on a graph of thoughts, each a question to the agent (ARIES, arXiv 2502.21208).

    A thought is an answer. ``propose`` draws one, ``refine`` revises the best so far, ``aggregate`` answers in view of
    all, ``score`` asks for the worth of the latest without one, and ``answer`` plays the best: the highest score, and
    of equals the latest. After the first proposal POLICY reads the graph and names the next operation, until it names
    ``answer`` or none, and ``operations`` times at most; ``around = "thoughts(AGENT, learner)"`` trains it. Without one
    a fixed ``schedule`` is followed, what graphs of thoughts had before. Our reading: positions of a game take the
    place of decomposable problems, so that there is no operation that splits one.

    Raises:
        ValueError: options that don't go together or are out of range, or a player that wouldn't read the graph.
    """

    def __init__(
        self, agent: Policy, policy: Policy | None = None, *, operations: int | None = None, schedule: str | None = None
    ) -> None:
        players = [agent] if policy is None else [agent, policy]
        for player in players:
            check_reads_below(player)
        if policy is not None and schedule is not None:
            raise ValueError(f"schedule = {schedule!r} with a policy, which chooses operations itself: leave one out")
        if policy is None and operations is not None:
            raise ValueError(
                f"operations = {operations} without a policy, which would choose them: set schedule instead"
            )
        super().__init__("thoughts", *players)
        self.schedule = read_schedule(SCHEDULE if schedule is None else schedule)
        self.operations = len(self.schedule)
        if policy is not None:
            self.operations = MOST_OPERATIONS if operations is None else operations
            check_count("operations", self.operations)
            if self.operations < 2:
                raise ValueError(f"operations = {operations} leaves the policy no choice: accepted are 2 or more")

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        if players == 1:
            return (len(read_schedule(SCHEDULE if options["schedule"] is None else options["schedule"])),)
        operations = MOST_OPERATIONS if options["operations"] is None else int(options["operations"])
        return operations, operations - 1

    @property
    def settings(self) -> dict[str, Any]:
        fixed = len(self.players) == 1
        return {"schedule": " ".join(self.schedule)} if fixed else {"operations": self.operations}

    def decide(self, request: TurnRequest) -> Deciding:
        """Follow the operations from the first proposal on, and play the best thought."""
        graph = list[Thought]()
        for number in range(self.operations):
            operation = yield from self._next(request, graph, number)
            if operation == "answer":
                break
            at = next((at for at in reversed(range(len(graph))) if graph[at].score is None), -1)
            again = below(
                request, *told(operation, graph, at), seed=(*request.seed, number) if number else request.seed
            )
            (turn,) = yield [Question(again, words=operation == "score")]
            if operation == "score":
                found = re.search(r"\d+(?:\.\d+)?", said(turn))
                graph[at] = graph[at]._replace(score=None if found is None else min(10.0, float(found[0])))
            else:
                named = action_named(request, turn.response)
                graph.append(Thought(turn, named or turn.response.strip(), operation, named is not None))
        return best_of(graph).turn

    def _next(self, request: TurnRequest, graph: Sequence[Thought], number: int) -> Asking[str]:
        """Return the operation that the schedule has, or the one that the policy names in view of the graph."""
        if len(self.players) == 1:
            return self.schedule[number]
        if not graph:
            return OPERATIONS[0]
        lines = [f"{at}. {one.answer} ({one.made}{scored(one)})" for at, one in enumerate(graph, 1)]
        graph_shown = "Answers so far:\n" + "\n".join(lines)
        asked = choice(request, graph_shown, ASKED, names=OPERATIONS, seed=(*request.seed, number, 1))
        (named,) = yield [Question(asked, 1)]
        return action_named(asked, named.response) or "answer"


def told(operation: str, graph: Sequence[Thought], at: int) -> list[str]:
    """Return the words that an operation puts below the observation; ``at`` is the thought to be scored."""
    if operation == "refine":
        return [REFINE.format(answer=best_of(graph).answer)]
    if operation == "aggregate":
        return [AGGREGATE.format(answers=", ".join(one.answer for one in graph))]
    return [SCORE.format(answer=graph[at].answer)] if operation == "score" else []


def scored(thought: Thought) -> str:
    """Return a thought's score as the policy reads it."""
    return "" if thought.score is None else f", score {thought.score:g}"


def best_of(graph: Sequence[Thought]) -> Thought:
    """Return the thought of the highest score that names an action, the latest of equals; no score is below any."""
    return max(reversed(graph), key=lambda one: (one.readable, -1.0 if one.score is None else one.score))


def read_schedule(schedule: str) -> tuple[str, ...]:
    """Return the operations of a schedule in words; a ValueError for one that can't be followed."""
    named = tuple(schedule.split())
    for one in named:
        if one not in OPERATIONS:
            raise ValueError(
                f"operations of a schedule are {', '.join(OPERATIONS)}, got {one!r}{did_you_mean(one, OPERATIONS)}: "
                "write it as 'propose propose aggregate answer'"
            )
    if named[:1] != OPERATIONS[:1]:
        raise ValueError(f"schedule = {schedule!r}: the first operation has to be propose")
    return named
