"""Log-probabilities and entropies of tokens, without ever holding the ``tokens x vocabulary`` matrix.

The logits of ``chunk`` tokens at a time are computed from the last hidden states, reduced to two numbers per token and
dropped; the backward pass computes them again. Memory is ``chunk x vocabulary`` however many tokens there are.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from agents.turn import Allowed

_NEVER = -1e30
"""The logit of a token that isn't allowed: its probability is exactly 0, and 0 times its logarithm as well."""


class Masks(NamedTuple):
    """Which tokens might stand at each of n places: ``which`` (n,) is the place's row in the table (S, U).

    ``columns`` (U,) are the tokens of the table in ascending order, if all others are ruled out everywhere; ``None``:
    they are the whole vocabulary.
    """

    which: Tensor
    table: Tensor
    columns: Tensor | None

    @classmethod
    def of(cls, allowed: Allowed, vocabulary: int, device: torch.device, *, whole: bool = False) -> "Masks":
        """Return the masks of sets of tokens; ``whole`` keeps the whole vocabulary in any case."""
        sets = {each: number for number, each in enumerate(dict.fromkeys(allowed))}
        named = [set(each.ids) for each in sets if each is not None and not each.others]
        few = not whole and len(named) == len(sets)
        columns = torch.tensor(sorted(set().union(*named)), device=device) if few else None
        table = torch.zeros(len(sets), vocabulary, dtype=torch.bool)
        for each, number in sets.items():
            if each is None or each.others:
                table[number] = True
            if each is not None:
                table[number, list(each.ids)] = not each.others
        table = table.to(device)
        which = torch.tensor([sets[each] for each in allowed], device=device)
        return cls(which, table if columns is None else table[:, columns], columns)

    def rows(self, rows: slice) -> Tensor:
        """Return (n, U) whether the tokens are ruled out at some of the places."""
        return ~self.table[self.which[rows]]


def linear_logprobs(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    temperature: float = 1.0,
    chunk: int = 1024,
    masks: Masks | None = None,
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities and entropies (N,), nats, under ``softmax((hidden @ weight.T + bias) / temperature)``.

    ``hidden`` (N, D) are last hidden states, in whose type the products are done, the softmax in float32 at least;
    ``weight`` is (V, D), ``bias`` (V,) and ``targets`` (N,). With ``masks`` both are of the distribution over the
    tokens that might stand at each place.
    """
    if masks is not None and (columns := masks.columns) is not None:  # the other tokens' logits are never computed
        weight, bias = weight.index_select(0, columns), None if bias is None else bias.index_select(0, columns)
        targets = torch.searchsorted(columns, targets)
    result: tuple[Tensor, Tensor] = _LinearLogprobs.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, targets, 1.0 / temperature, chunk, masks
    )
    return result


def head_logprobs(
    hidden: Tensor,
    head: Callable[[Tensor], Tensor],
    targets: Tensor,
    *,
    temperature: float = 1.0,
    chunk: int = 1024,
    masks: Masks | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the same for any output head ``(n, D) -> (n, V)`` (an adapter on it, capped logits), by checkpointed
    chunks; ``masks`` are of the whole vocabulary."""

    def reduce(rows: Tensor, row_targets: Tensor, row_masks: Masks | None) -> tuple[Tensor, Tensor]:
        return logprobs_from_logits(head(rows), row_targets, temperature=temperature, masks=row_masks)

    parts = []
    for start in range(0, len(hidden), chunk):
        rows = slice(start, start + chunk)
        mine = None if masks is None else masks._replace(which=masks.which[rows])
        parts.append(checkpoint(reduce, hidden[rows], targets[rows], mine, use_reentrant=False))
    return torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])


def logprobs_from_logits(
    logits: Tensor, targets: Tensor, *, temperature: float = 1.0, masks: Masks | None = None
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities and entropies ``(...)`` of ``(..., V)`` logits and ``(...)`` targets; the plain way."""
    scaled = _at_least_float32(logits) / temperature
    if masks is not None:
        scaled = scaled.masked_fill(masks.rows(slice(None)), _NEVER)
    log_p = torch.log_softmax(scaled, dim=-1)
    logprobs = log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return logprobs, -(log_p.exp() * log_p).sum(-1)


def _at_least_float32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _logits(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, scale: float, masks: Masks | None, rows: slice
) -> Tensor:
    """Return (n, V) scaled logits in at least float32, of some rows of (N, D)."""
    logits = _at_least_float32(hidden[rows] @ weight.t())
    if bias is not None:
        logits += bias
    logits.mul_(scale)
    return logits if masks is None else logits.masked_fill_(masks.rows(rows), _NEVER)


class _LinearLogprobs(torch.autograd.Function):
    """With ``z = scale * (h W^T + b)``, ``p = softmax(z)``, ``H = -sum p log p``, the gradients are

    ``d logp_y / dz = onehot(y) - p`` and ``d H / dz = -p (log p + H)``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        scale: float,
        chunk: int,
        masks: Masks | None,
    ) -> tuple[Tensor, Tensor]:
        columns = weight.to(hidden.dtype)
        stats = torch.float64 if hidden.dtype == torch.float64 else torch.float32
        log_z = torch.empty(len(hidden), dtype=stats, device=hidden.device)  # log sum exp z
        logprobs, entropies = torch.empty_like(log_z), torch.empty_like(log_z)
        for start in range(0, len(hidden), chunk):
            rows = slice(start, start + chunk)
            z = _logits(hidden, columns, bias, scale, masks, rows)
            log_z[rows] = torch.logsumexp(z, -1)
            logprobs[rows] = z.gather(-1, targets[rows, None]).squeeze(-1) - log_z[rows]
            p = torch.exp(z - log_z[rows, None])
            entropies[rows] = log_z[rows] - p.mul_(z).sum(-1)
        ctx.save_for_backward(hidden, weight, bias, targets, log_z, entropies)
        ctx.scale, ctx.chunk, ctx.masks = scale, chunk, masks
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
            z = _logits(hidden, columns, bias, ctx.scale, ctx.masks, rows)
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
        return grad_hidden, grad_weight, grad_bias, None, None, None, None
