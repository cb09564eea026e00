"""Log-probabilities and entropies of tokens, without ever holding the ``tokens x vocabulary`` matrix.

The logits of ``chunk`` tokens at a time are computed from the last hidden states, reduced to two numbers per token and
dropped; the backward pass computes them again. Memory is ``chunk x vocabulary`` however many tokens there are.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint


def linear_logprobs(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, temperature: float = 1.0, chunk: int = 1024
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of ``targets`` and entropies under ``softmax((hidden @ weight.T + bias) / temperature)``.

    Args:
        hidden: (N, D) last hidden states, any floating type; the products are done in it, the softmax in float32 (or
            float64 where the input is).
        weight: (V, D) the output embedding.
        bias: (V,) or ``None``.
        targets: (N,) token ids.
        temperature: above 0.
        chunk: rows at a time.

    Returns:
        ``logprobs`` (N,) and ``entropies`` (N,), nats, differentiable in hidden, weight and bias.
    """
    result: tuple[Tensor, Tensor] = _LinearLogprobs.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, targets, 1.0 / temperature, chunk
    )
    return result


def head_logprobs(
    hidden: Tensor, head: Callable[[Tensor], Tensor], targets: Tensor, *, temperature: float = 1.0, chunk: int = 1024
) -> tuple[Tensor, Tensor]:
    """The same for any output head ``(n, D) -> (n, V)`` (an adapter on it, capped logits), by checkpointed chunks."""

    def reduce(rows: Tensor, row_targets: Tensor) -> tuple[Tensor, Tensor]:
        return logprobs_from_logits(head(rows), row_targets, temperature=temperature)

    parts = [
        checkpoint(reduce, rows, row_targets, use_reentrant=False)
        for rows, row_targets in zip(torch.split(hidden, chunk), torch.split(targets, chunk), strict=True)
    ]
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def logprobs_from_logits(logits: Tensor, targets: Tensor, *, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """``(..., V)`` logits and ``(...)`` targets to log-probabilities and entropies ``(...)``; the plain way."""
    log_p = torch.log_softmax(_at_least_float32(logits) / temperature, dim=-1)
    logprobs = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return logprobs, -(log_p.exp() * log_p).sum(-1)


def _at_least_float32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _logits(hidden: Tensor, weight: Tensor, bias: Tensor | None, scale: float) -> Tensor:
    """(n, V) scaled logits in at least float32, from (n, D)."""
    logits = _at_least_float32(hidden @ weight.t())
    if bias is not None:
        logits += bias
    return logits.mul_(scale)


class _LinearLogprobs(torch.autograd.Function):
    """With ``z = scale * (h W^T + b)``, ``p = softmax(z)``, ``H = -sum p log p``, the gradients are

    ``d logp_y / dz = onehot(y) - p`` and ``d H / dz = -p (log p + H)``.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, scale: float, chunk: int
    ) -> tuple[Tensor, Tensor]:
        columns = weight.to(hidden.dtype)
        stats = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        log_z = torch.empty(len(hidden), dtype=stats, device=hidden.device)  # log sum exp z
        logprobs, entropies = torch.empty_like(log_z), torch.empty_like(log_z)
        for start in range(0, len(hidden), chunk):
            rows = slice(start, start + chunk)
            z = _logits(hidden[rows], columns, bias, scale)
            log_z[rows] = torch.logsumexp(z, -1)
            logprobs[rows] = z.gather(-1, targets[rows, None]).squeeze(-1) - log_z[rows]
            p = torch.exp(z - log_z[rows, None])
            entropies[rows] = log_z[rows] - p.mul_(z).sum(-1)
        ctx.save_for_backward(hidden, weight, bias, targets, log_z, entropies)
        ctx.scale, ctx.chunk = scale, chunk
        return logprobs, entropies

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_logprobs, grad_entropies = grads
        hidden, weight, bias, targets, log_z, entropies = ctx.saved_tensors
        columns = weight.to(hidden.dtype)
        needs_hidden, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        grad_hidden = torch.empty_like(hidden) if needs_hidden else None
        grad_weight = torch.zeros_like(weight) if needs_weight else None
        grad_bias = torch.zeros_like(bias) if needs_bias else None
        has_entropy = bool(grad_entropies.any())
        for start in range(0, len(hidden), ctx.chunk):
            rows = slice(start, start + ctx.chunk)
            z = _logits(hidden[rows], columns, bias, ctx.scale)
            log_p = z.sub_(log_z[rows, None])
            p = log_p.exp()
            g = grad_logprobs[rows, None]
            if has_entropy:
                # -p (g + gH (log p + H)), built in place: two matrices of chunk x V are alive, no more
                log_p.add_(entropies[rows, None]).mul_(grad_entropies[rows, None]).add_(g)
                dz = p.mul_(log_p).neg_()
            else:
                dz = p.mul_(-g)
            dz.scatter_add_(-1, targets[rows, None], g.to(dz.dtype))
            dz.mul_(ctx.scale)
            if grad_bias is not None:
                grad_bias += dz.sum(0).to(grad_bias.dtype)
            dz = dz.to(hidden.dtype)
            if grad_hidden is not None:
                grad_hidden[rows] = dz @ columns
            if grad_weight is not None and grad_weight.dtype == dz.dtype:
                grad_weight.addmm_(dz.t(), hidden[rows])
            elif grad_weight is not None:
                grad_weight += (dz.t() @ hidden[rows]).to(grad_weight.dtype)
        return grad_hidden, grad_weight, grad_bias, None, None, None
