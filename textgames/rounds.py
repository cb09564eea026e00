"""Playing a game by its rules alone: states and actions, without texts, players or environments."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from textgames.tsmg import TSMG, Action, Player

if TYPE_CHECKING:
    import numpy as np

Choose = Callable[[Any, Player], Action]
"""``state, player -> action``"""


class PlayedRound(NamedTuple):
    """One round that was played."""

    played: int  # rounds before it
    state: Any
    joint_action: dict[Player, Action]  # of all who were to move
    next_state: Any
    rewards: dict[Player, float]
    over: bool


def rounds_of_play(
    game: TSMG[Any], state: Any, limit: int | None, rng: "np.random.Generator", choose: Choose | None = None
) -> Iterator[PlayedRound]:
    """Yield the rounds of one episode from ``state``, at most ``limit`` of them (``None``: no limit).

    ``rng`` is what transitions draw from; so do actions, at random from the legal ones, unless ``choose`` chooses them.
    """
    played, over = 0, False
    while not over and played != limit:
        joint_action = {
            player: game.sample_action(state, player, rng) if choose is None else choose(state, player)
            for player in game.to_move(state)
        }
        after, rewards, over = game.transition(state, joint_action, rng)
        yield PlayedRound(played, state, joint_action, after, rewards, over)
        state, played = after, played + 1


def at_most(rounds: int, steps_left: int | None) -> int:
    """Return so many rounds, or those that are left of the episode if these are fewer; ``None`` for no limit."""
    return rounds if steps_left is None else min(rounds, steps_left)
