"""What clipping does to an update of several optimiser steps: the way that the weights go, with and without it.

At the first optimiser step every ratio is 1 and nothing is clipped, so the gradients that the instrument compares know
nothing of clipping. Here a copy of the model is really trained on a batch, by plain gradient steps on all of its rows,
once with the surrogate's clip and once without; the way from the first to the last weights is compared with the exact
gradient. Plain steps, since an adaptive optimiser turns the way for reasons of its own.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from agents.common.intervals import Estimate, mean, over_rows
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit import Batch, Credit
from agents.msgrpo.draws import Drawn
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways
from agents.msgrpo.learner.update import Learner, UpdateStats
from agents.msgrpo.rows import TrainingRow
from agents.msgrpo.surrogates.tokens import PPO
from agents.msgrpo.trajectories import training_rows
from benchmark.credit.exact.gradient import ExactGradient
from benchmark.credit.gradients.scores import ScoreModel

PASSES, SHIFT = 4, 0.1

_NO_CLIP = PPO(clip_low=1.0, clip_high=1e9)
_ANY_LENGTH = 10**9


@dataclass(frozen=True)
class ClippingResult:
    """One method's update of several steps.

    Attributes:
        passes: optimiser steps, each on all rows of a batch.
        shift: how much the first of them changes the log-probability of a response token, the mean of the sizes.
        clipped: the cosine of the way of the weights and the exact gradient, with the clip of 0.2.
        unclipped: without it.
        difference: the first less the second, paired by batch.
        clip_fraction: the share of the tokens, over all passes, whose gradient the clip took away.
    """

    passes: int
    shift: float
    clipped: Estimate
    unclipped: Estimate
    difference: Estimate
    clip_fraction: Estimate


def clipping(
    model: ScoreModel,
    exact: ExactGradient,
    batches: Sequence[Batch],
    credits: Sequence[Credit],
    *,
    passes: int = PASSES,
    shift: float = SHIFT,
) -> ClippingResult:
    """Train on each batch with and without the clip, from the same weights every time.

    Args:
        model: of the policy; its own weights stay as they are.
        exact: the exact gradient of the return.
        batches: as played.
        credits: one method's, of each of them. A batch in which nobody has an advantage is left out.
        passes: optimiser steps, at least 2 for the clip to have a say.
        shift: sets the step size; see :class:`ClippingResult`.

    Raises:
        ValueError: fewer than 2 passes, a model whose gradients are sketched, or no advantage anywhere.
    """
    if passes < 2:
        raise ValueError(f"clipping takes at least 2 optimiser steps to have a say, got {passes}")
    if model.sketched:
        raise ValueError("the way of the weights is measured on small models alone, whose gradients aren't sketched")
    table = []
    for batch, credit in zip(batches, credits, strict=True):
        if not np.any(credit.draw_weight):
            continue
        everyone = Drawn.plain(np.arange(len(batch)))
        rows = training_rows(batch.trajectories, everyone, credit.advantages, _ANY_LENGTH)
        rate = _learning_rate(model, rows, shift)
        found = []
        for surrogate in (PPO(), _NO_CLIP):
            way, stats = _way(model, rows, surrogate, passes, rate)
            length = float(way.norm())
            cosine = float(way @ exact.vector) / (length * max(exact.squared_norm, 1e-300) ** 0.5) if length else 0.0
            found.append((cosine, stats.metrics()["clip_fraction"]))
        (clipped, fraction), (unclipped, _) = found
        table.append([clipped, unclipped, clipped - unclipped, fraction])
    if not table:
        raise ValueError("no batch has an advantage to learn from")
    return ClippingResult(passes, shift, *[over_rows(np.array(table), mean(column)) for column in range(4)])


def _learner(model: ScoreModel, surrogate: PPO, passes: int) -> Learner:
    """A learner of a copy of the model, with plain gradient steps."""
    copy = deepcopy(model.module).eval()
    trained = dict(copy.named_parameters())
    for name, parameter in trained.items():
        parameter.requires_grad_(name in model.parameters)
    config = MSGRPOConfig(
        update_passes=passes, minibatches=1, max_grad_norm=0.0, entropy_coefficient=0.0, old_logprobs="recompute"
    )
    scorer = TokenScorer(copy, temperature=model.temperature, chunk=1024, autocast=None)
    packing = choose_ways(scorer, "tree")
    processes = Processes()
    optimizer = processes.prepare(scorer, torch.optim.SGD([trained[name] for name in model.parameters], lr=1.0))
    return Learner(scorer, optimizer, config, processes, packing=packing, surrogate=surrogate)


def _way(
    model: ScoreModel, rows: Sequence[TrainingRow], surrogate: PPO, passes: int, rate: float
) -> tuple[Tensor, UpdateStats]:
    """(size,) the way from the first weights to the last."""
    learner = _learner(model, surrogate, passes)
    stats = learner.update(rows, np.random.default_rng(0), rate)
    return _weights(learner) - torch.cat([p.detach().flatten().double() for p in model.parameters.values()]), stats


def _weights(learner: Learner) -> Tensor:
    return torch.cat(
        [p.detach().flatten().double() for group in learner.optimizer.param_groups for p in group["params"]]
    )


def _learning_rate(model: ScoreModel, rows: Sequence[TrainingRow], shift: float) -> float:
    """The learning rate with which the first step changes log-probabilities by ``shift`` on average, to first order."""
    learner = _learner(model, _NO_CLIP, 1)
    tokens = [row.tokens for row in rows]
    before = torch.cat(learner.logprobs(tokens))
    start, tried = _weights(learner), 1e-3
    learner.update(rows, np.random.default_rng(0), tried)
    moved = float((_weights(learner) - start).norm())
    if not moved:
        return tried
    # a small step tells the slope; the gradient's own size is unknown before
    smaller = tried * 1e-3 / moved
    learner = _learner(model, _NO_CLIP, 1)
    learner.update(rows, np.random.default_rng(0), smaller)
    changed = float((torch.cat(learner.logprobs(tokens)) - before).abs().mean())
    return smaller * shift / changed if changed else smaller
