"""The yardstick of a twin: that of the game itself, with the twin's names of actions."""

from collections.abc import Mapping
from typing import Any

from textgames.tsmg import Action, Player
from textgames.twins.twin import Twin
from textgames.yardsticks import FixedPolicy, HeuristicYardstick, Moments, Yardstick, find_yardstick


def twin_yardstick(game: Twin) -> Yardstick:
    """Return the yardstick of a twin, or raise ValueError if the game itself has none."""
    own = find_yardstick(game.original)
    if own is None:
        raise ValueError(f"{type(game.original).__name__} has no yardstick")
    return _TwinHeuristic(game, own) if isinstance(own, HeuristicYardstick) else _TwinYardstick(game, own)


class _TwinYardstick(Yardstick):
    def __init__(self, game: Twin, own: Yardstick) -> None:
        self._twin, self._own = game, own
        self.kind, self.method, self.version = own.kind, own.method, own.version

    def values(self, state: Any, steps_left: int | None, player: Player) -> Mapping[Action, float]:
        values = self._own.values(state, steps_left, player)
        return {self._twin.twin_action(action): value for action, value in values.items()}

    def value(self, state: Any, steps_left: int | None, player: Player) -> float:
        return self._own.value(state, steps_left, player)

    def blind_value(self, state: Any, steps_left: int | None, player: Player, policy: FixedPolicy) -> float | None:
        own = {self._twin.own_action(action): chance for action, chance in policy.items()}
        return self._own.blind_value(state, steps_left, player, own)


class _TwinHeuristic(HeuristicYardstick):
    def __init__(self, game: Twin, own: HeuristicYardstick) -> None:
        super().__init__(game)
        self._twin, self._own = game, own
        self.method, self.version = own.method, own.version

    def value(self, state: Any, steps_left: int | None, player: Player) -> float:
        return self._own.value(state, steps_left, player)

    def moments(self, state: Any, action: Action, steps_left: int | None, player: Player) -> Moments:
        return self._own.moments(state, self._twin.own_action(action), steps_left, player)
