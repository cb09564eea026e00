"""What the moves of a game for two cost: the value lost per move against exact play, from the replayed states.

In a game of two with opposed interests who take turns and see everything, the yardstick of the game knows the value of
every move against the best replies. What a move is worth less than the best one is what its player gave away with it,
whatever the opponent then made of it. So this figure tells strong players apart whose games all end in draws.
"""

from functools import lru_cache

from benchmark.runs.record import Record
from benchmark.runs.replay import ReplayError, replay, shows_what_was_seen
from textgames.scenarios import Scenario
from textgames.tsmg import TSMG
from textgames.yardsticks import Yardstick, find_yardstick

VALUE_LOST = "value lost per move"
"""The name of the metric: the mean over an episode's moves of ``value of the best move - value of the move``."""

LIMIT = 5000
"""The most episodes of one scenario that are played again for it."""

KEPT = 50_000  # positions whose values are kept


class MoveLosses:
    """Adds the metric to the records of one scenario."""

    def __init__(self, scenario: Scenario, yardstick: Yardstick) -> None:
        self._scenario = scenario
        self._values = lru_cache(maxsize=KEPT)(yardstick.values)  # openings are alike in many games
        self._left = LIMIT

    @classmethod
    def of(cls, scenario: Scenario) -> "MoveLosses | None":
        """``None`` where the scenario isn't such a game, or has no exact values."""
        game = scenario.game()
        takes_turns = type(game).to_move is not TSMG.to_move
        shows_all = type(game).read_observation is not TSMG.read_observation
        if len(game.players) != 2 or not takes_turns or not shows_all:
            return None
        yardstick = find_yardstick(game)
        return cls(scenario, yardstick) if yardstick is not None and yardstick.exact else None

    def add_to(self, record: Record) -> None:
        """Put the metric into a record that was scored and still is what the game makes of its responses."""
        if record["error"] is not None or not self._left:
            return
        self._left -= 1
        try:
            played = replay(record, self._scenario, boards=False)
        except ReplayError:
            return
        if not shows_what_was_seen(played, record):
            return
        lost: dict[str, list[float]] = {}
        for step in played.steps:
            if step.action:
                values = self._values(played.states[step.round], step.steps_left, step.player)
                lost.setdefault(step.player, []).append(max(values.values()) - values[step.action])
        metrics = record.setdefault("metrics", {})
        for player, losses in lost.items():
            metrics[player] = {**metrics.get(player, {}), VALUE_LOST: sum(losses) / len(losses)}
