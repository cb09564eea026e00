"""A2FM: the reward of modes that weren't needed is less."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, Floats, same
from research.improve.around.modes import MODES


@configured
class A2FM:
    """The game's rewards above 0, times a factor for the modes of :class:`research.improve.around.modes.ModesPolicy`.

    Let p be the share with the group's best return, above 0, among its episodes that chose ``instant`` alone. An
    episode's factor is the mean over its choices of: ::

        1             if the mode is instant, or p < easy
        1 - p^power   else

    which is the adaptive part of its policy optimisation (arXiv 2510.12838): what is solved instantly isn't paid for in
    a dear mode, and if instant answers fail, all modes are paid alike. Our reading: p is measured among what the
    model chose itself, and the group's best return stands for a correct answer.
    """

    easy: float = Field(0.5, ge=0, le=1)
    """The least p at which dear modes are paid less."""
    power: float = Field(2.0, gt=0)
    """The larger, the nearer p has to be to 1 for it."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"
    evaluates: ClassVar[bool] = False

    def pay(self, batch: Batch) -> list[Floats]:
        played, returns = batch.trajectories, batch.returns()
        dear = np.array([share_dear(each.actions) for each in played])
        chose = np.array([any(action in MODES for action in each.actions) for each in played])
        price = np.zeros(len(played))
        for members in batch.groups.values():
            own = returns[members]
            instant = chose[members] & (dear[members] == 0)
            if instant.any() and own.max() > 0:
                p = float(same(own, own.max())[instant].mean())
                price[members] = p**self.power if p >= self.easy else 0.0
        factor = 1 - dear * price
        self.metrics = {"dear_modes": float(dear.mean()), "mode_factor": float(factor.mean())}
        pairs = zip([each.rewards for each in played], factor, strict=True)
        return [np.where(rewards > 0, rewards * f, rewards) for rewards, f in pairs]


def share_dear(actions: tuple[str, ...]) -> float:
    """Return the share of an episode's choices of a mode that aren't instant; 0 without any."""
    chosen = [action != MODES[0] for action in actions if action in MODES]
    return sum(chosen) / max(1, len(chosen))
