"""Players that choose whom to ask, or what to ask next: ``router``, ``consult`` and ``thoughts``."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from agents import (
    Deciding,
    Policy,
    Question,
    SearchPlayers,
    Turn,
    TurnRequest,
    action_named,
    lists_actions,
    search_player_of,
)
from research.improve.around.questions import (
    Asking,
    Optioned,
    below,
    by_player,
    check_count,
    choice,
    proposals_of,
    said,
)
from textgames import TSMG, did_you_mean

RouteBy = Literal["share", "agreement", "loss", "player"]
RULES: tuple[str, ...] = get_args(RouteBy)
PLACES = ("first", "second")
_LEAST = {"agreement": 0.75, "loss": 0.0}


class RouterPolicy(Optioned):
    """Asks one of two players for each decision, most often since the first is cheaper.

    The rule (``route_by``; ``player`` if there is a ``chooser``, else ``agreement``) is:

    * ``share``: a ``share`` of the decisions, drawn by chance, goes to the second. Any other rule has to beat that
      fixed mixture at an equal share;
    * ``agreement``: the second is asked if fewer than a share ``least`` (0.75) of the first's ``proposals`` name one
      action (FrugalGPT, arXiv 2305.05176; by self-consistency, arXiv 2310.03094);
    * ``loss``: the second is asked if the first's action loses more than ``least`` (0) by the exact values, the best
      that any rule could know;
    * ``player``: the ``chooser`` answers ``first`` or ``second`` before either is asked; if neither, the first is.
      Training with ``around`` makes one, on the return less a cost; ``consult`` asks in several rounds.

    The turn says which player answered (``served_by``); results count in how many episodes each did.

    Raises:
        ValueError: an option that is out of range, a rule that goes with another number of players, or a chooser that
            wouldn't read what it is asked.
    """

    asked = "Who is to answer here, the first player or the second?"
    places = PLACES

    def __init__(
        self,
        first: Policy,
        second: Policy,
        chooser: Policy | None = None,
        *,
        route_by: str | None = None,
        share: float = 0.5,
        proposals: int = 4,
        least: float | None = None,
    ) -> None:
        route_by = route_by or ("agreement" if chooser is None else "player")
        if route_by not in RULES:
            raise ValueError(f"route_by is one of {', '.join(RULES)}, got {route_by!r}{did_you_mean(route_by, RULES)}")
        if (route_by == "player") != (chooser is not None):
            raise ValueError(
                f"route_by = {route_by!r} with {2 if chooser is None else 3} players: 'player' is the rule of "
                "router(FIRST, SECOND, CHOOSER), and its only one"
            )
        if least is not None and route_by in ("share", "player"):
            raise ValueError(f"least = {least!r} decides nothing if route_by = {route_by!r}: leave it out")
        check_count("proposals", proposals)
        if not 0 <= share <= 1:
            raise ValueError(f"share is a number from 0 to 1, got {share!r}")
        if least is not None and not (0 <= least < math.inf and (least <= 1 or route_by != "agreement")):
            accepted = "from 0 to 1, a share of the proposals" if route_by == "agreement" else "of at least 0, a loss"
            raise ValueError(f"least is a number {accepted}, got {least!r}")
        choosers = [] if chooser is None else [chooser]
        super().__init__("router", first, second, *choosers, shows=choosers)
        self.route_by, self.share, self.proposals = route_by, share, proposals if route_by == "agreement" else 1
        self.least = _LEAST.get(route_by, 0.0) if least is None else least
        self._searchers = SearchPlayers()

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        proposals = players == 2 and options["route_by"] in (None, "agreement")
        return (int(options["proposals"]) if proposals else 1, *(1,) * (players - 1))

    @property
    def settings(self) -> dict[str, Any]:
        of_rule = {
            "share": {"share": self.share},
            "agreement": {"proposals": self.proposals, "least": self.least},
            "loss": {"least": self.least},
            "player": {},
        }
        return {"route_by": self.route_by, **of_rule[self.route_by]}

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game that one of the players can't play, or in which the rule isn't known."""
        super().check_game(game)
        if self.route_by == "loss" and not (lists_actions(game) and search_player_of(game).exact):
            raise ValueError(f"{type(game).__name__} has no exact values: route by agreement or by a share")

    def decide(self, request: TurnRequest) -> Deciding:
        if self.route_by == "share":
            to_second = np.random.default_rng([*request.seed, 1]).random() < self.share
            (turn,) = yield [Question(request, int(to_second))]
            return by_player(turn, self.players[int(to_second)])
        if self.route_by == "player":
            # its draws are apart from those of the two
            asked = choice(request, self.asked, names=self.places, seed=(*request.seed, 2))
            (told,) = yield [Question(asked, 2)]
            chosen = int(action_named(asked, told.response) == self.places[1])
            (turn,) = yield [Question(request, chosen)]
            return by_player(turn, self.players[chosen])
        turns = yield [Question(one) for one in proposals_of(request, self.proposals)]
        settled = self._settled(request, turns)
        if settled is not None:
            return by_player(settled, self.players[0])
        (turn,) = yield [Question(request, 1)]
        return by_player(turn, self.players[1])

    def _settled(self, request: TurnRequest, turns: list[Turn]) -> Turn | None:
        """Return the first player's answer, if it is to be played."""
        named = [action_named(request, turn.response) for turn in turns]
        (action, count), *_ = Counter(named).most_common(1)
        if action is None:
            return None
        if self.route_by == "agreement":
            return turns[named.index(action)] if count >= self.least * len(turns) else None
        values = self._searchers.of(request).values(request)
        return turns[0] if max(values.values()) - values[action] <= self.least else None


CONSULTED = "Answer, or say which player is to be asked, the first or the second."
LAST = "Answer."


class ConsultPolicy(Optioned):
    """Lets a chooser ask one of two players, read the answer, ask again, up to ``rounds`` times, and answer itself.

    It names ``first``, ``second`` or an action, below what it has read so far; after the last round an action alone.
    The latest answer that it has read is played if it names nothing; the first player's if it has read none. Training
    with ``around = "consult(FIRST, SECOND, learner)"`` makes a chooser, on the return less a ``cost`` for each answer
    of the second (Router-R1, arXiv 2506.09033). Our reading: a player that is asked again draws another answer, and the
    model's tokens between two questions take the place of the paper's "think" actions.

    Raises:
        ValueError: less than one round, or a chooser that wouldn't read the answers.
    """

    def __init__(self, first: Policy, second: Policy, chooser: Policy, *, rounds: int = 3) -> None:
        check_count("rounds", rounds)
        super().__init__("consult", first, second, chooser, shows=[chooser], rounds=rounds)
        self.rounds = rounds

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        rounds = int(options["rounds"])
        return rounds, rounds, rounds + 1

    def decide(self, request: TurnRequest) -> Deciding:
        """Ask the chooser, then the player that it names, and so on; the turn says which of the three answered."""
        read, latest = list[str](), None
        for number in range(self.rounds):
            names = (*PLACES, *request.legal_actions) if request.legal_actions else ()  # else any text is an action
            # its draws are apart from those of the two
            asked = below(request, *read, CONSULTED, legal_actions=names, seed=(*request.seed, 2, number))
            (told,) = yield [Question(asked, 2)]
            named = action_named(asked, told.response)
            if named not in PLACES:
                break
            place = PLACES.index(named)
            fresh = replace(request, seed=(*request.seed, number)) if number else request
            (turn,) = yield [Question(fresh, place)]
            answer = action_named(request, turn.response) or turn.response.strip()
            read.append(f"The {named} player answers: {answer}")
            latest = by_player(turn, self.players[place])
        else:
            (told,) = yield [Question(below(request, *read, LAST, seed=(*request.seed, 2, self.rounds)), 2)]
            named = action_named(request, told.response)
        if named is not None:
            return by_player(told, self.players[2])
        if latest is None:
            (turn,) = yield [Question(request)]
            latest = by_player(turn, self.players[0])
        return latest


OPERATIONS = ("propose", "refine", "aggregate", "score", "answer")
SCHEDULE = "propose propose propose aggregate answer"
MOST_OPERATIONS = 6
OPERATION_ASKED = "Which operation is next?"
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


class ThoughtsPolicy(Optioned):
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
        if policy is not None and schedule is not None:
            raise ValueError(f"schedule = {schedule!r} with a policy, which chooses operations itself: leave one out")
        if policy is None and operations is not None:
            raise ValueError(
                f"operations = {operations} without a policy, which would choose them: set schedule instead"
            )
        players = [agent] if policy is None else [agent, policy]
        super().__init__("thoughts", *players, shows=players)
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
        asked = choice(request, graph_shown, OPERATION_ASKED, names=OPERATIONS, seed=(*request.seed, number, 1))
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
