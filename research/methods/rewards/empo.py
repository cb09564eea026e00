"""EMPO: the agreement of a group in place of the game's reward."""

from collections import Counter
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.msgrpo import configured
from agents.msgrpo.credit import Batch, Floats


@configured
class EMPO:
    """The share of a group's episodes that gave the same answer to the same prompt, in place of the game's reward.

    A prompt is a state with its rounds left, and answers that name one action are one semantic cluster (arXiv
    2504.05812). ``r_it = |cluster| / |group| / T_i``: an episode is paid the mean over its steps, so that a longer one
    isn't paid more. An invalid answer is paid 0. Agreement on a wrong action is paid as well.
    """

    least_entropy: float = Field(0.0, ge=0, le=1)
    """Answers to a prompt are paid 0 if their entropy is less, as a share of the largest that so many can have."""
    most_entropy: float = Field(1.0, ge=0, le=1)
    """Answers to a prompt are paid 0 if their entropy is more."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"
    evaluates: ClassVar[bool] = False

    def pay(self, batch: Batch) -> list[Floats]:
        played = batch.trajectories
        paid, entropies, several = [np.zeros(len(each)) for each in played], 0.0, 0
        for (group, _), steps in batch.visits(lambda each, t: (each.states[t], each.steps_left[t])).items():
            # an invalid answer is a cluster of its own
            named = [played[i].actions[t] if played[i].valid[t] else (i, t) for i, t in steps]
            counts, all_of = Counter(named), len(batch.groups[group])
            shares = np.array([*counts.values()]) / len(steps)
            entropy = float(-(shares * np.log(shares)).sum())
            entropies, several = entropies + entropy * len(steps), several + len(steps) * (len(steps) > 1)
            if self.least_entropy <= entropy / np.log(max(2, len(steps))) <= self.most_entropy:
                for (i, t), answer in zip(steps, named, strict=True):
                    paid[i][t] = counts[answer] / all_of / len(paid[i]) * played[i].valid[t]
        self.metrics = {"answer_entropy": entropies / max(1, several)}
        return paid
