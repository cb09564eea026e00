"""``router(CHEAP, STRONG)``: one of two players answers each decision, most often because the first is cheaper.

``router(CHEAP, STRONG, CHOOSER)`` asks a third player which of them it is to be.

What decides (``route_by``):

* ``share``: a share of the decisions, drawn by chance, goes to the second. That is a fixed mixture, which any other
  rule has to beat at an equal share;
* ``agreement``: the first is asked several times, and the second only where fewer than a share ``least`` of those
  proposals name one action (a cascade: FrugalGPT, arXiv 2305.05176; by self-consistency, arXiv 2310.03094);
* ``loss``: the second is asked where the first's action loses more than ``least`` by the exact values, which is the
  best that any rule could know;
* ``player``: the third player says ``first`` or ``second``, as it would name an action, before either is asked. Where
  it says neither, the first answers. :mod:`agents.msgrpo.inside` trains such a player on the return less a cost
  (Router-R1, arXiv 2506.09033).

The turn says who answered (``served_by``); a run's results count in how many episodes each did.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from agents.baselines.search import SearchPlayers, search_player_of
from agents.policy import lists_actions
from agents.turn import Policy, Turn, TurnRequest
from agents.wrappers.around import Around, Deciding, Question, action_named, check_count, proposals_of
from textgames.names import did_you_mean
from textgames.tsmg import TSMG

RouteBy = Literal["share", "agreement", "loss", "player"]
RULES: tuple[str, ...] = get_args(RouteBy)
PLACES = ("first", "second")
ASKED = "Who is to answer here, the first player or the second?"
"""What stands below the observation where a player chooses."""
_LEAST = {"agreement": 0.75, "loss": 0.0}


class RouterPolicy(Around):
    """Asks one of two players, by a rule.

    Args:
        first: the player that is asked unless the rule says otherwise.
        second: the other one.
        chooser: says which of them it is, where the rule is ``player``.
        route_by: the rule, one of :data:`RULES`; ``player`` where there is a chooser, else ``agreement``.
        share: of the decisions that go to the second, where the rule is ``share``.
        proposals: how often the first is asked, where the rule is ``agreement``.
        least: where the rule is ``agreement``, the share of proposals that have to name one action (0.75); where it is
            ``loss``, the loss from which on the second is asked (0: any loss).

    Raises:
        ValueError: an option that is out of range, or a rule that goes with another number of players.
    """

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
        """The first is asked for every proposal where the rule is ``agreement``, and all others once at most."""
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
        """Ask the first, if the rule lets it, and then the second, if the rule says so."""
        if self.route_by == "share":
            to_second = np.random.default_rng([*request.seed, 1]).random() < self.share
            (turn,) = yield [Question(request, int(to_second))]
            return self._by(turn, int(to_second))
        if self.route_by == "player":
            asked = _who(request)
            (told,) = yield [Question(asked, 2)]
            chosen = int(action_named(asked, told.response) == PLACES[1])
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
        """The first player's answer, if it is to be played."""
        named = [action_named(request, turn.response) for turn in turns]
        (action, count), *_ = Counter(named).most_common(1)
        if action is None:
            return None
        if self.route_by == "agreement":
            return turns[named.index(action)] if count >= self.least * len(turns) else None
        values = self._searchers.of(request).values(request)
        return turns[0] if max(values.values()) - values[action] <= self.least else None


def _who(request: TurnRequest) -> TurnRequest:
    """The question which of the two is to answer; its draws are apart from theirs."""
    observation, seed = f"{request.observation}\n\n{ASKED}", (*request.seed, 2)
    return replace(request, observation=observation, legal_actions=PLACES, action_help="", moves_listed=True, seed=seed)
