"""The luck in one episode: what chance gave it beyond what its actions were worth.

With a value ``V_h(s)`` for every state and number of rounds left, the expected outcome of an action is
``Q_h(s, a) = E[r + V_{h-1}(s')]``, and the return of an episode splits without remainder into ::

    R = V(s_0) + sum_t A_t + L,    A_t = Q(s_t, a_t) - V(s_t),    L = sum_t [r_t + V(s_{t+1}) - Q(s_t, a_t)].

The draws of ``transition`` know nothing of the player, so every term of ``L`` has mean zero whatever the player does,
for **any** fixed ``V``; with the optimal values no ``A_t`` is above 0, and its size is what the action cost.

The values include the horizon: ``V_0 = 0``. The action that the game executes in place of an unreadable response is
the player's own doing, and so is the format penalty. Only where the environment draws a random one
(``invalid_action="random"``) is that draw a part of luck.
"""

from typing import Any, NamedTuple

from benchmark.runs.replay import Replay
from textgames.tsmg import TSMG, Action, Player
from textgames.yardsticks import HeuristicYardstick, Moments, Yardstick, find_yardstick


class EpisodeLuck(NamedTuple):
    """How an episode's return came about: ``start + skill + luck``."""

    start: float  # V(s_0)
    skill: float  # the sum of A_t, format penalties included
    luck: float  # L
    variance: float  # the sum of the terms' conditional variances, exact


class LuckValues:
    """The fixed values that luck is measured by in one game for one player, and what they expect of actions."""

    def __init__(self, game: TSMG[Any], yardstick: Yardstick) -> None:
        self._game, self._yardstick = game, yardstick
        self.player: Player = game.players[0]
        self.name = f"{yardstick.method}, version {yardstick.version}"
        # what a clairvoyant player is worth is exact too, and as good a fixed function of the state: what chance makes
        # of it has mean zero whoever plays. Else luck is measured by a guess: it is luck as well, but takes less out
        self.exact = yardstick.kind != "reference"

    @classmethod
    def of(cls, game: TSMG[Any]) -> "LuckValues | None":
        """The values of a game; ``None`` where its luck isn't told.

        A game needs one player, ``outcomes`` and a yardstick that is exact or a :class:`HeuristicYardstick`. With
        several players their moves would have to be told from chance, and a search that draws random numbers isn't one
        fixed value.
        """
        if len(game.players) != 1 or not game.has_outcomes:
            return None
        yardstick = find_yardstick(game)
        fixed = yardstick is not None and (yardstick.kind != "reference" or isinstance(yardstick, HeuristicYardstick))
        return cls(game, yardstick) if yardstick is not None and fixed else None

    def value(self, state: Any, steps_left: int | None) -> float:
        """``V_h(s)`` of a state in which the game goes on; 0 where no round is left."""
        return 0.0 if steps_left == 0 else self._yardstick.value(state, steps_left, self.player)

    def expects(self, state: Any, actions: tuple[Action, ...], steps_left: int | None) -> Moments:
        """What is to be expected of one of ``actions``, each as likely as the others.

        With one action, this is ``Q_h(s, a)`` and the variance of luck after it.
        """
        if isinstance(self._yardstick, HeuristicYardstick):
            each = [self._yardstick.moments(state, action, steps_left, self.player) for action in actions]
            mean = sum(one.mean for one in each) / len(each)
            return Moments(mean, sum(one.variance + (one.mean - mean) ** 2 for one in each) / len(each))
        after = None if steps_left is None else steps_left - 1
        return Moments.of(
            [
                (chance / len(actions), rewards[self.player] + (0.0 if over else self.value(next_state, after)))
                for action in actions
                for chance, next_state, rewards, over in self._game.outcomes(state, {self.player: action})
            ]
        )


def episode_luck(replay: Replay, values: LuckValues) -> EpisodeLuck | None:
    """Split an episode's return into its start's value, its actions' worth and luck.

    Args:
        replay: a finished episode of the game that ``values`` are of.

    Returns:
        ``None`` where a random action stood in for a response and the game doesn't list what it was drawn from, or a
        round has too many outcomes to be listed.
    """
    try:
        return _split(replay, values)
    except NotImplementedError:
        return None


def _split(replay: Replay, values: LuckValues) -> EpisodeLuck | None:
    limit, penalty = replay.rules.max_steps, replay.rules.format_penalty
    start = values.value(replay.states[0], limit)
    skill = luck = variance = 0.0
    before = start
    for number, step in enumerate(replay.steps):
        left = None if limit is None else limit - number
        fee = 0.0 if step.valid else penalty
        if not step.action:  # the response ended the episode: what was still to be won is lost, and nothing was drawn
            skill += step.reward - before  # giving up may be paid for
            continue
        substituted = not step.valid and replay.rules.invalid_action == "random"
        if substituted and not step.legal_actions:
            return None
        expected = values.expects(replay.states[number], step.legal_actions if substituted else (step.action,), left)
        next_left = None if left is None else left - 1
        after = 0.0 if step.out else values.value(replay.states[number + 1], next_left)
        skill += expected.mean - before - fee
        luck += step.reward + fee + after - expected.mean
        variance += expected.variance
        before = after
    return EpisodeLuck(start, skill, luck, variance)
