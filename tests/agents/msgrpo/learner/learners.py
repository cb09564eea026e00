"""A learner of a small random model, ragged rows for it, and the surrogates again in plain Python loops.

A formula is ``(rows, data) -> (loss, gradient)``, not divided by any Z. Gradients are by hand where a formula stops
them, and by central differences of the loss where it doesn't. ``data`` holds what a surrogate says of each row.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from agents.msgrpo import MSGRPOConfig, Surrogate, TokenRow, Tokens
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit import Batch
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.loss import loss_of
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways
from agents.msgrpo.learner.update import Learner, make_optimizer, make_reference
from agents.turn import Allowed


class Row(NamedTuple):
    """One response: log-probabilities and advantage of each token."""

    logp: list[float]
    old: list[float]
    ref: list[float]
    advantages: list[float]


def ragged(
    seed: int, rows: int = 7, *, off_policy: float = 0.4, per_token: bool = False, longest: int = 6
) -> list[Row]:
    """Rows of 1 to ``longest`` tokens whose log-ratios have the standard deviation ``off_policy``."""
    rng = random.Random(seed)
    made = []
    for _ in range(rows):
        n = rng.randint(1, longest)
        old = [-rng.random() * 3 for _ in range(n)]
        advantage = rng.gauss(0, 1)
        made.append(
            Row(
                [x + rng.gauss(0, off_policy) for x in old],
                old,
                [x + rng.gauss(0, 0.3) for x in old],
                [rng.gauss(0, 1) if per_token else advantage for _ in range(n)],
            )
        )
    return made


class Result(NamedTuple):
    """The loss, its gradient by the log-probability of each token, and the log's sums."""

    loss: float
    gradient: list[list[float]]
    sums: dict[str, float]


def through_loss(
    surrogate: Surrogate,
    rows: Sequence[Row],
    *,
    data: Mapping[str, Sequence[float]] | None = None,
    denominator: float = 1.0,
    row_weights: Sequence[float] | None = None,
    share: float = 1.0,
) -> Result:
    """What :func:`loss_of` says with this surrogate."""
    logp = torch.tensor([x for row in rows for x in row.logp], dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([len(row.logp) for row in rows])

    def flat(name: str) -> torch.Tensor:
        return torch.tensor([x for row in rows for x in getattr(row, name)], dtype=torch.float64)

    told = {name: torch.tensor(values, dtype=torch.float64) for name, values in (data or {}).items()}
    tokens = Tokens(logp, flat("old"), flat("advantages"), lengths, flat("ref"), told, share)
    weights = None if row_weights is None else tokens.spread(torch.tensor(row_weights, dtype=torch.float64))
    result = loss_of(tokens, surrogate, denominator, weights=weights)
    result.loss.backward()
    assert logp.grad is not None
    return Result(result.loss.item(), [part.tolist() for part in logp.grad.split(lengths.tolist())], result.sums)


def by_differences(loss: Callable[[Sequence[Row]], float], rows: Sequence[Row], h: float = 1e-6) -> list[list[float]]:
    """The gradient of a plain function of the rows, by central differences."""
    gradient = []
    for i, row in enumerate(rows):
        gradient.append([])
        for k in range(len(row.logp)):
            sides = []
            for shift in (h, -h):
                moved = [*row.logp[:k], row.logp[k] + shift, *row.logp[k + 1 :]]
                sides.append(loss([*rows[:i], row._replace(logp=moved), *rows[i + 1 :]]))
            gradient[-1].append((sides[0] - sides[1]) / (2 * h))
    return gradient


def flat(gradient: Sequence[Sequence[float]]) -> torch.Tensor:
    return torch.tensor([x for row in gradient for x in row], dtype=torch.float64)


Data = Mapping[str, Sequence[float]]
Answer = tuple[float, list[list[float]]]
Formula = Callable[[Sequence[Row], Data], Answer]


def clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


def ppo_token(ratio: float, a: float, low: float, high: float, dual: float = math.inf) -> float:
    objective = min(ratio * a, clip(ratio, 1 - low, 1 + high) * a)
    return -max(objective, dual * a) if a < 0 else -objective


def ppo(low: float = 0.2, high: float = 0.2, dual: float = math.inf) -> Formula:
    def loss(rows: Sequence[Row]) -> float:
        return sum(
            ppo_token(math.exp(logp - old), a, low, high, dual)
            for row in rows
            for logp, old, a in zip(row.logp, row.old, row.advantages, strict=True)
        )

    return lambda rows, data: (loss(rows), by_differences(loss, rows))


def gspo(low: float = 3e-4, high: float = 4e-4) -> Formula:
    """The paper's sequence form, times the length: one ratio, one clip and one advantage for a response.

    The mean over the response's tokens, which its normaliser takes, divides by the length again.
    """

    def loss(rows: Sequence[Row]) -> float:
        total = 0.0
        for row in rows:
            s = math.exp(sum(new - old for new, old in zip(row.logp, row.old, strict=True)) / len(row.logp))
            total += len(row.logp) * ppo_token(s, row.advantages[0], low, high)
        return total

    return lambda rows, data: (loss(rows), by_differences(loss, rows))


def cispo(low: float = 0.8, high: float = 1.2) -> Formula:
    """The gradient of ``-sg(w) A log pi`` is ``-w A``."""

    def answer(rows: Sequence[Row], data: Data) -> Answer:
        total, gradient = 0.0, []
        for row in rows:
            gradient.append([])
            for logp, old, a in zip(row.logp, row.old, row.advantages, strict=True):
                weight = clip(math.exp(logp - old), low, high)
                total += -weight * a * logp
                gradient[-1].append(-weight * a)
        return total, gradient

    return answer


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


def naive(logits: Tensor, targets: Sequence[int], allowed: Allowed) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies, place by place over the allowed logits alone."""
    logprobs, entropies = [], []
    for row, target, each in zip(logits, targets, allowed, strict=True):
        named = range(len(row)) if each is None else each.ids
        ids = [i for i in range(len(row)) if i not in named] if each is not None and each.others else list(named)
        log_p = row[ids].log_softmax(-1)
        logprobs.append(log_p[ids.index(target)])
        entropies.append(-(log_p.exp() * log_p).sum())
    return torch.stack(logprobs), torch.stack(entropies)


def row_weights(rows: Sequence[TokenRow], config: MSGRPOConfig) -> list[float]:
    """What every token of a row is multiplied by, Z included."""
    lengths, n = [len(row.response) for row in rows], len(rows)
    timed = sorted(range(n), key=lambda i: rows[i].step)
    of_eight = [timed[8 * (timed.index(j) // 8) :][:8] for j in range(n)]
    return {
        "token": [1 / sum(lengths)] * n,
        "step": [1 / n] * n,
        "episode": [1 / len({row.draw for row in rows})] * n,
        "response": [1 / (n * length) for length in lengths],
        "micro_batch": [1 / (-(-n // 8) * sum(lengths[i] for i in part)) for part in of_eight],
        "constant": [1 / (n * config.max_response_tokens)] * n,
    }[config.loss_normalizer]


def plain(
    learner: Learner,
    rows: Sequence[TokenRow],
    reference: Any,
    config: MSGRPOConfig,
    formula: Formula,
    batch: Batch | None = None,
    more: Callable[[Sequence[Row]], float] | None = None,
) -> tuple[float, dict[str, Tensor]]:
    """Loss and gradient, one row at a time: the formula's slope at every token, times that of its log-probability.

    ``more`` is a term of all rows that is added.
    """
    model: Any = learner.scorer.model
    model.zero_grad()
    scored, tokens = [], []
    for row in rows:
        assert row.logprobs is not None
        ids, sets = torch.tensor([row.prompt + row.response]), row.allowed or (None,) * len(row.response)
        (logp, entropy), (ref, _) = (
            naive(one(ids).logits[0, len(row.prompt) - 1 : -1] / config.temperature, row.response, sets)
            for one in (model, reference)
        )
        scored.append((logp, entropy, ref.detach()))
        tokens.append(Row(logp.tolist(), list(row.logprobs), ref.tolist(), list(row.token_advantages())))
    moved = [torch.tensor(t.logp, dtype=torch.float64) - torch.tensor(t.old, dtype=torch.float64) for t in tokens]
    told = {} if batch is None else learner.surrogate.row_data(rows, batch, moved)
    data: Mapping[str, Any] = {key: values.tolist() for key, values in told.items()}
    slopes = [[0.0] * len(t.logp) for t in tokens] if more is None else by_differences(more, tokens)
    loss, total = 0.0 if more is None else more(tokens), torch.zeros((), dtype=torch.float64)
    for i, ((logp, entropy, ref), weight) in enumerate(zip(scored, row_weights(rows, config), strict=True)):
        one, (slope,) = formula([tokens[i]], {key: [values[i]] for key, values in data.items()})
        kl = (ref - logp).exp() - 1 - (ref - logp)
        others = (config.kl_coefficient * kl - config.entropy_coefficient * entropy).sum()
        steep = weight * torch.tensor(slope, dtype=torch.float64) + torch.tensor(slopes[i], dtype=torch.float64)
        total = total + (logp * steep).sum() + weight * others
        loss += weight * (one + others.item())
    torch.autograd.backward(total)
    found = {key: each.grad.clone() for key, each in model.named_parameters()}
    model.zero_grad()
    return loss, found


def error(got: Mapping[str, Tensor], want: Mapping[str, Tensor]) -> float:
    """Relative, of the whole gradient."""
    difference = sum(float((got[name] - want[name]).square().sum()) for name in want)
    return float((difference / sum(float(each.square().sum()) for each in want.values())) ** 0.5)
