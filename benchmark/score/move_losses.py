"""The value lost with each move against the best one, in games whose values are exact, from the replayed states.

In a game of two with opposed interests that take turns and see everything, the yardstick knows the value of every move
against the best replies. The difference to the best move is the loss of its player, so that the value lost per move, a
metric of every episode, tells strong players apart whose games all end in draws.

In these games and in those for one player that have exact values the losses are also split by the kind of decision
(:data:`KINDS`). If something is hidden, values are those of what a player knows of it, by the game's search player.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from agents.baselines.search import find_search_player
from agents.episode import Episode, Step
from agents.turn import TurnRequest
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import MOST_SOLVED
from benchmark.runs.replay import Replay, replay_if_unchanged, requests_of
from benchmark.score.cache import FolderCache, RecordCache
from textgames.scenarios import Scenario
from textgames.yardsticks import Yardstick, find_yardstick

VALUE_LOST = "value lost per move"
"""The name of the metric: the mean over an episode's moves of ``value of the best move - value of the move``."""

LIMIT = 5000
"""The most episodes of one scenario that are played again for it."""

KEPT_POSITIONS = 50_000  # whose values are at hand: openings are alike in many games

MOST_NAMED = 3  # of the best actions at a decision

TIE = 1e-9  # values that differ by no more are equal

ALL, MOVES, MOST = "all", "moves", "most"

KINDS = {
    "first": "first move",
    "last": "last move",
    "only": "one good move",
    "greedy": "greedy errs",
    "unread": "unreadable",
}
"""The kinds of decisions by their keys, with their names. A decision may be of several.

``first`` and ``last``: the player's first and last one in the episode. ``only``: one legal action is better than all
others. ``greedy``: the action that looking one step ahead would choose isn't one of the best. ``unread``: the response
named no legal action, so that the loss is that of what stood in for it, or of forfeiting.
"""

Losses = dict[str, list[float]]
"""``{kind: [value lost, decisions]}`` of one player in one episode.

Kinds are :data:`KINDS`, :data:`ALL`, :data:`MOVES`, without the one that forfeited, and :data:`MOST`, whose value is
that of the costliest decision. ``greedy`` is missing if no player looks one step ahead in the game.
"""


class Decision(NamedTuple):
    """One decision of a player: where, which action was executed (empty for none), and the value that it lost."""

    player: str
    state: Any
    steps_left: int | None
    action: str
    lost: float
    kinds: Mapping[str, bool]
    best: str = ""  # actions of the largest value, at most :data:`MOST_NAMED`: the executed one if it lost nothing


class MoveLosses:
    """Finds the losses in the records of one scenario."""

    def __init__(self, scenario: Scenario, yardstick: Yardstick | None) -> None:
        """Without a ``yardstick`` values are those of the game's search player, by what it reads."""
        self.scenario, self._game = scenario, scenario.game()
        self.players = len(self._game.players)
        self._values = None if yardstick is None else lru_cache(maxsize=KEPT_POSITIONS)(yardstick.values)
        self._search = find_search_player(self._game)
        self._greedy: dict[Any, str] = {}  # by state, rounds left and player: what greedy does there
        self._left = LIMIT

    @classmethod
    def of(cls, scenario: Scenario, *, players: int = 2) -> "MoveLosses | None":
        """Return ``None`` unless the scenario is such a game for so many players (1 or 2) and has exact values.

        It has none, too, if its episodes are longer than :data:`~benchmark.runs.manifest.MOST_SOLVED` rounds.
        """
        game = scenario.game()
        if (
            scenario.horizon > MOST_SOLVED
            or len(game.players) != players
            or (players == 2 and not (game.takes_turns and game.reads_observations))
        ):
            return None
        yardstick = find_yardstick(game)
        if yardstick is not None and yardstick.exact:
            return cls(scenario, yardstick)
        # where something is hidden, the exact values are of what is known of it, and a yardstick sees more
        search = find_search_player(game) if players == 1 else None
        return cls(scenario, None) if search is not None and search.exact else None

    def of_record(self, record: Episode) -> dict[str, Losses] | None:
        """Return the losses of every player, if the game is as it was; ``None`` after :data:`LIMIT` records."""
        if not self._left:
            return None
        self._left -= 1
        found: dict[str, Losses] = {}
        for decision in self.decisions(record):
            own = found.setdefault(decision.player, {kind: [0.0, 0] for kind in (*decision.kinds, MOST)})
            own[MOST] = [max(own[MOST][0], decision.lost), 1]
            for kind, is_one in decision.kinds.items():
                own[kind][0] += decision.lost * is_one
                own[kind][1] += is_one
        return found

    def decisions(self, record: Episode) -> "list[Decision]":
        """Return every decision of a record with its loss; none if the game has changed since the record."""
        played = replay_if_unchanged(record, self.scenario)
        return [] if played is None else self.of_replay(played)

    def of_replay(self, played: Replay) -> "list[Decision]":
        """Return the decision of every step of a replay with its loss."""
        found: list[Decision] = []
        last = {step.player: step for step in played.steps}
        begun: set[str] = set()
        for step, request in requests_of(played):
            greedy = None
            if self._search is not None:
                position = (step.state, request.steps_left, request.player)
                if position not in self._greedy:
                    if len(self._greedy) >= KEPT_POSITIONS:
                        self._greedy.clear()
                    self._greedy[position] = self._search.greedy(request).action
                greedy = self._greedy[position]
            values = self.values(step, request, step.action, greedy)
            best, lost = max(values.values()), value_lost(step, values)
            kinds = {
                ALL: True,
                MOVES: bool(step.action),
                "first": step.player not in begun,
                "last": step is last[step.player],
                "only": len(values) > 1 and sum(value >= best - TIE for value in values.values()) == 1,
                "unread": not step.valid,
            }
            if greedy is not None:
                kinds["greedy"] = values[greedy] < best - TIE
            begun.add(step.player)
            ties = [action for action, one in values.items() if one >= best - TIE]
            good = step.action if lost <= TIE and step.action else " or ".join(ties[:MOST_NAMED])
            found.append(Decision(step.player, step.state, step.steps_left, step.action, lost, kinds, good))
        return found

    def values(self, step: Step, request: TurnRequest, *actions: str | None) -> Mapping[str, float]:
        """Return the values of these actions at a replayed step, and of enough others to tell the best ones."""
        if self._values is not None:
            return self._values(step.state, step.steps_left, step.player)
        assert self._search is not None
        return self._search.values_with(request, {*filter(None, actions)})


def value_lost(step: Step, values: Mapping[str, float]) -> float:
    """Return the value that a step's action lost; if a player forfeits, the pay for a loss replaces the rest."""
    best = max(values.values())
    return best - values[step.action] if step.action else max(0.0, best - step.reward)


def add_metric(record: Episode, kept: RecordCache[dict[str, Losses]]) -> None:
    """Add the value lost per move to the metrics of a record."""
    for player, losses in (kept.of(record) or {}).items():
        lost, moves = losses[MOVES]
        if moves:
            record.metrics[player] = {**record.metrics.get(player, {}), VALUE_LOST: lost / moves}


def folder_losses(told: Mapping[str, MoveLosses], folder: RunFolder) -> dict[str, RecordCache[dict[str, Losses]]]:
    """Return ``{scenario: its losses in the records of a folder}``."""
    cache = FolderCache(folder, "score/move_losses.py")
    return {name: RecordCache(one.of_record, cache.file("losses", one.scenario)) for name, one in told.items()}
