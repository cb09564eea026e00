"""What play is worth, state by state: the exact or searched values that players are measured against.

A yardstick sees the whole state, as a referee does. Players see text; those that search have
:meth:`textgames.tsmg.TSMG.read_observation`. A game gets its yardstick with one line::

    register_yardstick(MyGame, MyYardstick)

Both may also be given as ``"module:Class"``, so that nothing is imported before it is used.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from textgames.by_game import ByGame
from textgames.tsmg import TSMG, Action, Player

NO_VARIANCE = 1e-24
"""What rounding may leave of a variance of zero, by which nothing should be divided."""


FixedPolicy = Mapping[Action, float]
"""A distribution over the names of actions; ``{}`` is the uniform one."""

Kind = Literal["optimal", "clairvoyant", "reference"]
"""What is known of the best play of a game, by three names.

* ``"optimal"``: exact values of the best player among those who know what a model is told. In a game that hides
  something they are expectations over it.
* ``"clairvoyant"``: exact values of a player who also knows what is hidden: a bound and never the 1 of a score.
* ``"reference"``: what a good player gets, or an estimate of it.
"""


class Moments(NamedTuple):
    """Mean and variance of what an action comes to: its reward and the value of the state after it."""

    mean: float
    variance: float

    @classmethod
    def of(cls, worths: Sequence[tuple[float, float]]) -> "Moments":
        """Return the moments of a distribution that is given as ``[(probability, worth), ...]``."""
        mean = sum(chance * worth for chance, worth in worths)
        variance = sum(chance * (worth - mean) ** 2 for chance, worth in worths)
        return cls(mean, variance if variance > NO_VARIANCE else 0.0)


class Yardstick(ABC):
    """The values of one game with its settings.

    A value is the expected return, undiscounted, that a player collects in the rounds that are left. In a game for one
    player it is that of optimal play; in a zero-sum game of two who take turns, that of optimal play by both.

    Attributes:
        kind: what the values are; see :data:`Kind`.
        method: how they are computed, in a few words, for tables of results: ``"value iteration"``.
        version: to be raised whenever any value changes, since luck-free scores are made with these values.
    """

    kind: Kind = "optimal"
    method: str = "exact"
    version: str = "1"

    def __init__(self, game: Any) -> None:
        self._game = game

    @property
    def exact(self) -> bool:
        """Whether the values are the most that a player can get who knows what a model is told."""
        return self.kind == "optimal"

    @abstractmethod
    def values(self, state: Any, steps_left: int | None, player: Player) -> Mapping[Action, float]:
        """Return ``{action: value}`` of every legal action of ``player``, who is to move, in their order.

        ``steps_left`` are the rounds until the episode is truncated, this one included; ``None`` for no limit.
        """

    def value(self, state: Any, steps_left: int | None, player: Player) -> float:
        """Return the value of the state itself for ``player``: that of its best action. 0 if no round is left."""
        return max(self.values(state, steps_left, player).values()) if steps_left != 0 else 0.0

    def best_actions(
        self, state: Any, steps_left: int | None, player: Player, tie: float = 1e-12
    ) -> tuple[Action, ...]:
        """Return the actions of largest value within ``tie``; if exact, those that stay so with fewer rounds left."""
        best = _largest(self.values(state, steps_left, player), tie)
        for fewer in range((steps_left or 1) - 1, 0, -1):
            if len(best) == 1 or not self.exact:
                break
            values = self.values(state, fewer, player)
            best = _largest({action: values[action] for action in best}, tie)
        return best

    def blind_value(self, state: Any, steps_left: int | None, player: Player, policy: FixedPolicy) -> float | None:
        """Return the exact expected return of a player that doesn't read: see :mod:`textgames.solving.blind`.

        ``{}`` is uniform play. ``None`` if the only way to it is to visit all that may happen.
        """
        return None


def _largest(values: Mapping[Action, float], tie: float) -> tuple[Action, ...]:
    most = max(values.values())
    return tuple([action for action, value in values.items() if value >= most - tie])


class HeuristicYardstick(Yardstick):
    """A fixed function of the state that guesses what it is worth, if that isn't known.

    No score is measured against it. But what chance makes of it is known exactly and it is the same for all players, so
    luck can be told by it (``benchmark.score.luck``). A bad guess costs precision and nothing else.
    """

    kind = "reference"
    method = "heuristic"

    def __init__(self, game: TSMG[Any]) -> None:
        self.game = game

    @abstractmethod
    def value(self, state: Any, steps_left: int | None, player: Player) -> float:
        """Return the guess for a state in which the game isn't over; 0 if no round is left."""

    def values(self, state: Any, steps_left: int | None, player: Player) -> Mapping[Action, float]:
        """Return what each action is worth: the expected sum of its reward and the guess after it."""
        legal = self.game.legal_actions(state, player)
        return {action: self.moments(state, action, steps_left, player).mean for action in legal}

    def moments(self, state: Any, action: Action, steps_left: int | None, player: Player) -> Moments:
        """Return mean and variance, exact, of an action's reward and the guess after it, in a game for one player."""
        after = None if steps_left is None else steps_left - 1
        return Moments.of(
            [
                (chance, rewards[player] + (0.0 if over else self.value(next_state, after, player)))
                for chance, next_state, rewards, over in self.game.outcomes(state, {player: action})
            ]
        )


Factory = Callable[[Any], Yardstick]
"""``game -> its yardstick``; a ValueError if the game's settings are beyond it."""

_FACTORIES: ByGame[Factory] = ByGame()


def register_yardstick(game: type[TSMG[Any]] | str, factory: Factory | str) -> None:
    """Give a game its yardstick; the game is given by its class or as ``"module:Class"``."""
    _FACTORIES.register(game, factory)


def find_yardstick(game: TSMG[Any]) -> Yardstick | None:
    """Return a game's yardstick, registered for its class or a base class; ``None`` if none takes its settings."""
    factory = _FACTORIES.of(game)
    try:
        return factory(game) if factory is not None else None
    except ValueError:
        return None
