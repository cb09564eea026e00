"""Monte-Carlo tree search, by which ``search(AGENT)`` ranks proposals (``rank_by=tree``), and the worlds it searches.

A simulation walks down the tree by an upper bound of each action's mean return (Kocsis and Szepesvari 2006, UCT), which
at the root is weighted by how many proposals name the action (PUCT, Silver et al. 2017). It adds one node and plays at
random below it. Chance is sampled anew in each simulation. The action with most visits is the best.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from agents import Policy, Question, SearchPlayer, SearchPlayers, TurnRequest
from agents.analysis import asked_after
from research.improve.around.questions import Asking
from research.improve.programs.players import RulesPlayer
from textgames import TSMG


class Came(NamedTuple):
    """The outcome of an action."""

    state: Any  # None if the game is over
    paid: Mapping[str, float]


class World(Protocol):
    """Something to search in; ``start`` is the state of the request."""

    start: Any

    def moves(self, state: Any) -> tuple[str, Sequence[str]]:
        """Return the player to move and its actions; none if nothing is known of what comes."""

    def step(self, state: Any, action: str, rng: np.random.Generator) -> Asking[Came]:
        """Sample what comes of an action."""


class RealRules:
    """The game's own rules. Players that take turns each look for their own return; others at the same time are random.

    It looks at the whole state, so it is for games whose observation tells all of it.
    """

    def __init__(self, request: TurnRequest, game: TSMG[Any], searcher: SearchPlayer) -> None:
        self._game, self._player, self.start = game, request.player, searcher.state(request)

    def moves(self, state: Any) -> tuple[str, Sequence[str]]:
        movers = self._game.to_move(state)
        mover = self._player if self._player in movers else movers[0]
        return mover, self._game.legal_actions(state, mover)

    def step(self, state: Any, action: str, rng: np.random.Generator) -> Asking[Came]:
        yield from ()  # nothing is asked
        mover, _ = self.moves(state)
        others = {other: self._game.sample_action(state, other, rng) for other in self._game.to_move(state)}
        after, paid, over = self._game.transition(state, {**others, mover: action}, rng)
        return Came(None if over else after, paid)


_Outcome = tuple[Annotated[FiniteFloat, Field(ge=0)], str | None, FiniteFloat]
_EXPANDED = TypeAdapter(tuple[str, dict[str, str | Annotated[list[_Outcome], Field(min_length=1)]]])
"""A state and what each action leads to, or why that isn't known. A program may say anything in the harness's place."""


class LearnedRules:
    """Rules that a program has (``rules:FILE``), in its sandbox; if they fail, the game is over and pays nothing."""

    def __init__(self, request: TurnRequest, rules: RulesPlayer) -> None:
        self._sandbox, self._player = rules.sandbox, request.player
        self._known: dict[str, Mapping[str, Any]] = {}
        self.start, self._known[self.start] = self._told("predict", request.observation)

    def _told(self, function: str, argument: Any) -> tuple[str, Mapping[str, Any]]:
        try:
            return _EXPANDED.validate_python(self._sandbox.call(function, argument).value)
        except ValidationError:
            return "", {}

    def moves(self, state: str) -> tuple[str, Sequence[str]]:
        if state not in self._known:
            try:
                self._known[state] = self._told("expand", json.loads(state))[1]
            except (ValueError, RecursionError):
                self._known[state] = {}
        return self._player, list(self._known[state])

    def step(self, state: str, action: str, rng: np.random.Generator) -> Asking[Came]:
        yield from ()  # nothing is asked
        outcomes = self._known[state].get(action)
        if outcomes is None or isinstance(outcomes, str):  # why there are none
            return Came(None, {})
        chances = np.cumsum([chance for chance, *_ in outcomes])
        _, after, reward = outcomes[min(int(np.searchsorted(chances, rng.random(), "right")), len(outcomes) - 1)]
        return Came(after, {self._player: reward})


class Predictions:
    """The next observations that a second player predicts, as for ``imagine``.

    The game only reads them: one in which it reads a success is worth 1, one that it can't read ends the game.
    """

    def __init__(self, request: TurnRequest, game: TSMG[Any], searcher: SearchPlayer) -> None:
        self._request, self._game, self._searcher, self.start = request, game, searcher, request.observation

    def _read(self, text: str) -> Any:
        try:
            return self._searcher.state(replace(self._request, observation=text))
        except ValueError:
            return None

    def moves(self, state: str) -> tuple[str, Sequence[str]]:
        here = self._read(state)
        return self._request.player, () if here is None else self._game.legal_actions(here, self._request.player)

    def step(self, state: str, action: str, rng: np.random.Generator) -> Asking[Came]:
        game, player = self._game, self._request.player
        now = replace(self._request, observation=state, legal_actions=tuple(self.moves(state)[1]))
        asked = replace(asked_after(now, action), seed=(*self._request.seed, int(rng.integers(1 << 31))))
        (told,) = yield [Question(asked, 1, words=True)]
        text = told.response.strip()
        after = self._read(text)
        if after is None:
            return Came(None, {})
        won = game.succeeded(after, player)
        return Came(None if won or not game.is_playing(after, player) else text, {player: float(won)})


def check_searchable(game: TSMG[Any], told_by: Policy | None) -> None:
    """Raise a ValueError for a game that can't be searched in a second player's rules or predictions."""
    name = type(game).__name__
    if told_by is not None and len(game.players) > 1:
        raise ValueError(
            f"{name} has several players, and {told_by.name} tells what comes for one: search in its own rules"
        )
    if told_by is None or isinstance(told_by, RulesPlayer):
        return
    start = game.initial_state(np.random.default_rng(0))
    if not game.success_means or game.succeeded(start, game.players[0]):
        raise ValueError(f"{name} ends in no success, which a prediction could show: search in its own rules")


def world_of(request: TurnRequest, searchers: SearchPlayers, told_by: Policy | None) -> World:
    """Return what is searched in: the rules of the game, those of a program, or another player's predictions."""
    if isinstance(told_by, RulesPlayer):
        return LearnedRules(request, told_by)
    if request.game is None:
        raise ValueError("a tree is searched in a game, or with search(AGENT, rules:FILE): ask it with a TurnRequest")
    return (RealRules if told_by is None else Predictions)(request, request.game, searchers.of(request))


EXPLORATION = 1.25
"""The weight of the bound in units of the spread of the returns that were seen."""


class Node:
    """One state with so many steps left: for each action its prior, its visits and the sum of the returns after it."""

    def __init__(self, mover: str, priors: Mapping[str, float]) -> None:
        self.mover, self.actions, self.priors = mover, list(priors), list(priors.values())
        self.visits, self.totals = [0] * len(priors), [0.0] * len(priors)

    def choose(self, low: float, high: float, rng: np.random.Generator) -> int:
        """Return the place of the action with the highest bound, at random among equals.

        Means are scaled by the lowest and the highest return seen; an action never tried counts as the node's own mean.
        """
        every, spread = sum(self.visits), (high - low) or 1.0
        own = sum(self.totals) / every if every else low
        wide = EXPLORATION * math.sqrt(every + 1)
        bounds = [
            ((total / tried if tried else own) - low) / spread + wide * prior / (1 + tried) if every else prior
            for prior, tried, total in zip(self.priors, self.visits, self.totals, strict=True)
        ]
        highest = max(bounds)
        equal = [place for place, bound in enumerate(bounds) if bound == highest]
        return equal[0] if len(equal) == 1 else equal[int(rng.integers(len(equal)))]


def searched(
    world: World, request: TurnRequest, proposed: Mapping[str, int], simulations: int, depth: int
) -> Asking[dict[str, tuple[int, float]]]:
    """Return ``{action: (visits, mean return)}`` of the proposed actions, each with the number of its proposals."""
    limit = depth if request.steps_left is None else min(depth, request.steps_left)
    named = sum(proposed.values())
    root = Node(request.player, {action: count / named for action, count in proposed.items()})
    nodes, low, high = {(world.start, limit): root}, math.inf, -math.inf
    for number in range(simulations):
        rng = np.random.default_rng([*request.seed, number])
        walked: list[tuple[Node | None, int, Mapping[str, float]]] = []
        state, left, grown = world.start, limit, False
        while state is not None and left:
            node = nodes.get((state, left))
            if node is None:
                mover, actions = world.moves(state)
                if not actions:
                    break
                if not grown:
                    node = nodes[state, left] = Node(mover, dict.fromkeys(actions, 1 / len(actions)))
                    grown = True
            place = int(rng.integers(len(actions))) if node is None else node.choose(low, high, rng)
            action = actions[place] if node is None else node.actions[place]
            came = yield from world.step(state, action, rng)
            walked.append((node, place, came.paid))
            state, left = came.state, left - 1
        returns: defaultdict[str, float] = defaultdict(float)
        for node, place, paid in reversed(walked):
            for player, reward in paid.items():
                returns[player] += reward
            if node is not None:
                own = returns[node.mover]
                node.visits[place] += 1
                node.totals[place] += own
                low, high = min(low, own), max(high, own)
    tried = zip(root.actions, root.visits, root.totals, strict=True)
    return {action: (visits, total / max(visits, 1)) for action, visits, total in tried}
