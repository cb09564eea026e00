"""Absolute-advantage-weighted (AAW) draws (arXiv 2508.10839, section 4), with the advantages of any method.

An episode is drawn with probability ``d_i / sum_j d_j``, where the weight ``d_i`` is ``|A_i|`` where all steps of an
episode have one advantage. For methods that tell steps apart it is the mean of ``|A_it|`` over the steps; that is our
reading, as the paper knows only the first kind.
"""

import numpy as np

from agents.msgrpo.credit.batch import Batch, Credit
from agents.msgrpo.draws import Drawn
from agents.msgrpo.draws.sampling import sample_episodes


class AAW:
    """Weighted draws without replacement; the advantages are kept as they are."""

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        return Drawn.plain(sample_episodes(credit.draw_weight, m, rng, "aaw"))


class AAWWithReplacement:
    """Independent weighted draws; the advantages are kept as they are."""

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        return Drawn.plain(sample_episodes(credit.draw_weight, m, rng, "aaw_replacement"))


class UnbiasedAAW:
    """Independent weighted draws whose advantages are multiplied by ``mean_j d_j / d_i``.

    The mean over the draws is then an unbiased estimate of the mean over all N episodes:
    ``E = sum_i d_i / sum_j d_j * (sum_j d_j / N) / d_i * A_i f_i = 1/N sum_i A_i f_i``.
    """

    def draw(self, batch: Batch, credit: Credit, m: int, rng: np.random.Generator) -> Drawn:
        drawn = sample_episodes(credit.draw_weight, m, rng, "unbiased")
        return Drawn(drawn, credit.draw_weight.mean() / credit.draw_weight[drawn])
