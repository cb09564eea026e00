"""Players that choose among answers of others: ``search(AGENT)`` and ``router(CHEAP, STRONG)``."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from agents import (
    Around,
    Deciding,
    Policy,
    Question,
    SearchPlayers,
    Turn,
    TurnRequest,
    action_named,
    lists_actions,
    request_in,
    search_player_of,
)
from textgames import TSMG, did_you_mean, rounds_of_play

Rank = Callable[[TurnRequest, Sequence[str]], Mapping[str, float]]
"""``request, the action that each proposal names -> {action: value}``"""

RANKS = ("votes", "rollouts", "exact")
RouteBy = Literal["share", "agreement", "loss", "player"]
RULES: tuple[str, ...] = get_args(RouteBy)
_LEAST = {"agreement": 0.75, "loss": 0.0}

MOST_ASKED = 10_000
"""Questions or episodes for one decision, at most: more is a slip that would take days."""


def check_count(option: str, number: int) -> None:
    """Raise a ValueError for an option that says how often something is done for each decision, out of range."""
    if not 1 <= number <= MOST_ASKED:
        raise ValueError(f"{option} is a whole number from 1 to {MOST_ASKED:,}, got {number!r}")


def check_readable(game: TSMG[Any]) -> None:
    """Raise a ValueError, with the reason, for a game whose state can't be read from what it shows at the start."""
    start = game.initial_state(np.random.default_rng(0))
    search_player_of(game).state(request_in(game, start, game.to_move(start)[0]))


def proposals_of(request: TurnRequest, count: int) -> list[TurnRequest]:
    """Return the request with other seeds; the first is the request itself: one proposal is the player's own answer."""
    return [request, *(replace(request, seed=(*request.seed, at)) for at in range(1, count))]


class SearchPolicy(Around):
    """Plays the best of several proposals, which are sampled from one player.

    They are ranked (``rank_by``, one of :data:`RANKS` or a function; the first of equals is played) by:

    * ``votes``: how many of them name the action (self-consistency, Wang et al. 2022, arXiv 2203.11171);
    * ``rollouts``: the mean return of so many episodes of uniformly random play after it: flat Monte-Carlo search;
    * ``exact``: the true value, the most that any value can give (Zhai et al. 2024, arXiv 2409.09345, learn one).

    Raises:
        ValueError: an option that is out of range.
    """

    def __init__(self, inner: Policy, *, proposals: int = 8, rank_by: str | Rank = "votes", rollouts: int = 32) -> None:
        for option, number in (("proposals", proposals), ("rollouts", rollouts)):
            check_count(option, number)
        if isinstance(rank_by, str) and rank_by not in RANKS:
            raise ValueError(f"rank_by is one of {', '.join(RANKS)}, got {rank_by!r}{did_you_mean(rank_by, RANKS)}")
        super().__init__("search", inner)
        self.proposals, self.rank_by, self.rollouts = proposals, rank_by, rollouts
        self._searchers = SearchPlayers()

    @classmethod
    def asks(cls, players: int, options: Mapping[str, Any]) -> tuple[int, ...]:
        return (int(options["proposals"]),)

    @property
    def settings(self) -> dict[str, Any]:
        rank_by = self.rank_by if isinstance(self.rank_by, str) else getattr(self.rank_by, "__qualname__", "a function")
        return {"proposals": self.proposals, "rank_by": rank_by} | (
            {"rollouts": self.rollouts} if rank_by == "rollouts" else {}
        )

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game whose actions can't be ranked so."""
        super().check_game(game)
        if self.rank_by not in ("exact", "rollouts"):
            return
        name, instead = type(game).__name__, "rank proposals by votes"
        if not lists_actions(game):
            raise ValueError(f"{name} doesn't list its actions, whose values could be compared: {instead}")
        if self.rank_by == "exact" and not search_player_of(game).exact:
            raise ValueError(f"{name} has no exact values: {instead} or by rollouts")
        if self.rank_by == "rollouts":
            try:
                check_readable(game)
            except ValueError as error:
                raise ValueError(f"{name} can't be played on from what it shows ({error}): {instead}") from None

    def decide(self, request: TurnRequest) -> Deciding:
        turns = yield [Question(one) for one in proposals_of(request, self.proposals)]
        read = [(action, turn) for turn in turns if (action := action_named(request, turn.response)) is not None]
        if not read:
            return turns[0]
        values = self._values(request, [action for action, _ in read])
        return max(read, key=lambda one: values[one[0]])[1]

    def _values(self, request: TurnRequest, proposed: Sequence[str]) -> Mapping[str, float]:
        if callable(self.rank_by):
            return self.rank_by(request, proposed)
        if self.rank_by == "votes":
            return {action: proposed.count(action) for action in proposed}
        different = list(dict.fromkeys(proposed))
        if len(different) == 1:
            return {different[0]: 0.0}  # there is nothing to choose
        game = request.game
        if game is None:
            raise ValueError(f"{self.name} ranks by {self.rank_by}, which takes the game: ask it with a TurnRequest")
        searcher = self._searchers.of(request)
        if self.rank_by == "exact":
            return searcher.values(request)
        state = searcher.state(request)

        def random_return(action: str, at: int) -> float:
            """Return what the player gets that takes an action, if all play at random after it."""
            first, rng = [action], np.random.default_rng([*request.seed, at])

            def choose(here: Any, player: str) -> str:
                return first.pop() if first and player == request.player else game.sample_action(here, player, rng)

            played = rounds_of_play(game, state, request.steps_left, rng, choose)
            return sum(one.rewards.get(request.player, 0.0) for one in played)

        # the same draws follow every action, so that these are compared in pairs
        numbers = range(self.rollouts)
        return {action: sum(random_return(action, at) for at in numbers) / self.rollouts for action in different}


class RouterPolicy(Around):
    """Asks one of two players for each decision, most often since the first is cheaper.

    The rule (``route_by``; ``player`` if there is a ``chooser``, else ``agreement``) is:

    * ``share``: a ``share`` of the decisions, drawn by chance, goes to the second. Any other rule has to beat that
      fixed mixture at an equal share;
    * ``agreement``: the second is asked if fewer than a share ``least`` (0.75) of the first's ``proposals`` name one
      action (FrugalGPT, arXiv 2305.05176; by self-consistency, arXiv 2310.03094);
    * ``loss``: the second is asked if the first's action loses more than ``least`` (0) by the exact values, the best
      that any rule could know;
    * ``player``: the ``chooser`` answers ``first`` or ``second`` before either is asked; if neither, the first is.
      Training with ``around`` makes one, on the return less a cost (Router-R1, arXiv 2506.09033).

    The turn says which player answered (``served_by``); results count in how many episodes each did.

    Raises:
        ValueError: an option that is out of range, or a rule that goes with another number of players.
    """

    asked = "Who is to answer here, the first player or the second?"
    places = ("first", "second")

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
            raise ValueError(f"least = {least!r} decides nothing where route_by = {route_by!r}: leave it out")
        check_count("proposals", proposals)
        if not 0 <= share <= 1:
            raise ValueError(f"share is a number from 0 to 1, got {share!r}")
        if least is not None and not (0 <= least < math.inf and (least <= 1 or route_by != "agreement")):
            accepted = "from 0 to 1, a share of the proposals" if route_by == "agreement" else "of at least 0, a loss"
            raise ValueError(f"least is a number {accepted}, got {least!r}")
        super().__init__("router", first, second, *([] if chooser is None else [chooser]))
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
            return self._by(turn, int(to_second))
        if self.route_by == "player":
            asked = replace(
                request,
                observation=f"{request.observation}\n\n{self.asked}",
                legal_actions=self.places,
                action_help="",
                moves_listed=True,
                seed=(*request.seed, 2),  # its draws are apart from those of the two
            )
            (told,) = yield [Question(asked, 2)]
            chosen = int(action_named(asked, told.response) == self.places[1])
            (turn,) = yield [Question(request, chosen)]
            return self._by(turn, chosen)
        turns = yield [Question(one) for one in proposals_of(request, self.proposals)]
        settled = self._settled(request, turns)
        if settled is not None:
            return self._by(settled, 0)
        (turn,) = yield [Question(request, 1)]
        return self._by(turn, 1)

    def _by(self, turn: Turn, player: int) -> Turn:
        return replace(turn, served_by=turn.served_by or self.players[player].name)

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
