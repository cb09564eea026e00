"""A player that chooses which of two others answers: ``router(CHEAP, STRONG)``."""

import math
from collections import Counter
from collections.abc import Mapping
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
    search_player_of,
)
from research.improve.around.questions import by_player, check_count, check_reads_below, choice, proposals_of
from textgames import TSMG, did_you_mean

RouteBy = Literal["share", "agreement", "loss", "player"]
RULES: tuple[str, ...] = get_args(RouteBy)
_LEAST = {"agreement": 0.75, "loss": 0.0}


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
      Training with ``around`` makes one, on the return less a cost; ``consult`` asks in several rounds.

    The turn says which player answered (``served_by``); results count in how many episodes each did.

    Raises:
        ValueError: an option that is out of range, a rule that goes with another number of players, or a chooser that
            wouldn't read what it is asked.
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
            raise ValueError(f"least = {least!r} decides nothing if route_by = {route_by!r}: leave it out")
        check_count("proposals", proposals)
        if not 0 <= share <= 1:
            raise ValueError(f"share is a number from 0 to 1, got {share!r}")
        if least is not None and not (0 <= least < math.inf and (least <= 1 or route_by != "agreement")):
            accepted = "from 0 to 1, a share of the proposals" if route_by == "agreement" else "of at least 0, a loss"
            raise ValueError(f"least is a number {accepted}, got {least!r}")
        if chooser is not None:
            check_reads_below(chooser)
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
