"""Absolute-advantage-weighted (AAW) draws (arXiv 2508.10839, section 4), and what they are compared with.

An episode is drawn with probability ``d_i / sum_j d_j``, where the weight ``d_i`` is ``|A_i|`` where all steps of an
episode have one advantage. For methods that tell steps apart it is the mean of ``|A_it|`` over the steps; that is our
reading, as the paper knows only the first kind.
"""

from typing import Literal

import numpy as np

from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.draws import Drawn
from agents.msgrpo.draws.sampling import sample_episodes
from agents.msgrpo.plugins import configured


@configured
class ByAdvantage:
    """Episodes drawn by the size of their advantages, or evenly.

    In the mode ``unbiased`` advantages are multiplied by ``mean_j d_j / d_i``, and are kept as they are in the others.
    The mean over the draws is then an unbiased estimate of the mean over all N episodes:
    ``E = sum_i d_i / sum_j d_j * (sum_j d_j / N) / d_i * A_i f_i = 1/N sum_i A_i f_i``.
    """

    mode: Literal["aaw", "aaw_replacement", "unbiased", "uniform", "uniform_nonzero", "off"] = "aaw"
    """Weighted without replacement (aaw), weighted with replacement (aaw_replacement and unbiased), evenly without
    replacement among all (uniform) or among those that have an advantage (uniform_nonzero), or all of them (off).
    uniform_nonzero tells apart what aaw gains by leaving out episodes without signal from what its weights gain."""

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        drawn = sample_episodes(credit.draw_weight, m, rng, self.mode)
        if self.mode == "unbiased":
            return Drawn(drawn, credit.draw_weight.mean() / credit.draw_weight[drawn])
        return Drawn.plain(drawn)
