"""A learner of a small random model and ragged rows for it, shared by the tests of the update."""

from typing import Any

import numpy as np
import torch

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit import Batch
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways
from agents.msgrpo.learner.update import Learner, make_optimizer, make_reference

V = 23
"""Tokens that the small model knows."""


def ragged_rows(seed: int, episodes: int = 4) -> list[TokenRow]:
    """Episodes of different numbers of steps, steps of different lengths, prompts that repeat."""
    rng = np.random.default_rng(seed)
    start = tuple(rng.integers(0, V, 6).tolist())
    rows = []
    for draw in range(episodes):
        for step in range(int(rng.integers(1, 4))):
            prompt = (*start[: int(rng.integers(3, 7))], *rng.integers(0, V, step).tolist())
            response = tuple(rng.integers(0, V, int(rng.integers(1, 5))).tolist())
            logprobs = tuple(rng.normal(-3, 0.2, len(response)).tolist())
            rows.append(
                TokenRow(prompt, response, None, logprobs, float([1.5, -0.5, 0.7, -1.2][draw]), draw, step, draw)
            )
    return rows


def in_float64(model: Any) -> Any:
    """The model in float64 throughout: Llama's own normalisation layer goes through float32 whatever its input."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child).__name__ == "LlamaRMSNorm":
                norm = torch.nn.RMSNorm(child.weight.shape, eps=child.variance_epsilon)
                norm.weight = child.weight
                setattr(module, name, norm)
    return model.double()


def make_learner(make_llama: Any, config: MSGRPOConfig, *, double: bool = True, seed: int = 0) -> Learner:
    """A learner with the surrogate and normaliser of the config; its reference is the model before a change."""
    model = make_llama(V, seed=seed)
    model = in_float64(model) if double else model
    scorer = TokenScorer(model, temperature=config.temperature, chunk=3, autocast=None)
    packing = choose_ways(scorer, config.packing)
    processes, methods = Processes(), Methods.of(config)
    reference = make_reference(scorer, processes, config, methods.surrogate.needs)
    if reference is not None:  # else the KL term is zero, and so is its gradient
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.1)
    optimizer = processes.prepare(scorer, make_optimizer(model, config))
    return Learner(
        scorer, optimizer, config, processes, packing=packing, reference=reference,
        surrogate=methods.surrogate, normalizer=methods.normalizer,
    )  # fmt: skip


def gradients(
    learner: Learner, rows: list[TokenRow], seed: int = 0, batch: Batch | None = None
) -> tuple[float, dict[str, Any]]:
    """What one step of ``update`` leaves in ``.grad``, and its loss; the weights are put back."""
    before = {name: p.detach().clone() for name, p in learner.scorer.model.named_parameters()}
    stats = learner.update(rows, np.random.default_rng(seed), 1e-3, batch)
    result = {}
    with torch.no_grad():
        for name, parameter in learner.scorer.model.named_parameters():
            assert parameter.grad is not None
            result[name] = parameter.grad.clone()
            parameter.copy_(before[name])
    return stats.losses[0], result
