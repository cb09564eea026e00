"""Which token is drawn of next-token logits: temperature, top-p, and sets of allowed tokens.

A token is the inverse of the cumulative distribution at a uniform number, so a row's draw doesn't depend on the others.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.models.base import Decoding
from agents.turn import TokenSet

_BLOCK = 128  # tokens of the vocabulary that are summed up together to find a drawn one


def uniforms(seeds: Sequence[tuple[int, ...]], count: int) -> NDArray[np.float64]:
    """Return ``(rows, count)`` numbers in [0, 1), each row's from its seed alone (PCG64)."""
    return np.stack([np.random.default_rng(seed).random(count) for seed in seeds])


def choose(logits: Tensor, decoding: Decoding, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one token per row of ``logits (N, V)``, at ``uniform (N,)`` in [0, 1), float64; return tokens ``(N,)`` and
    their natural log-probabilities ``(N,)`` under that distribution (at temperature 0: the model's own)."""
    logits = logits.float()
    if decoding.temperature == 0:
        tokens = logits.argmax(-1)
        return tokens, logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
    logprobs = (logits / decoding.temperature).log_softmax(-1)
    if decoding.top_p < 1:
        logprobs = nucleus(logprobs, decoding.top_p)
    tokens = inverse_cumulative(logprobs.exp(), uniform)
    return tokens, logprobs.gather(1, tokens[:, None])[:, 0]


def choose_allowed(
    logits: Tensor, decoding: Decoding, uniform: Tensor, sets: Sequence[TokenSet | None]
) -> tuple[Tensor, Tensor]:
    """Draw as :func:`choose` among the tokens of each row's set, over which log-probabilities are renormalised. Few are
    allowed inside of an action: there the softmax and the draw are over those alone."""
    device = logits.device
    few = [row for row, each in enumerate(sets) if each is not None and not each.others]
    many = [row for row, each in enumerate(sets) if each is None or each.others]
    tokens = torch.empty(len(sets), dtype=torch.long, device=device)
    logprobs = torch.empty(len(sets), device=device)
    if few:
        at = torch.tensor(few, device=device)
        ids = [each.ids for row in few if (each := sets[row])]
        sizes = torch.tensor([len(own) for own in ids], device=device)
        most = int(sizes.max())
        padded = torch.tensor([own + own[:1] * (most - len(own)) for own in ids], device=device)
        unused = torch.arange(most, device=device) >= sizes[:, None]
        columns = logits[at].gather(1, padded).float().masked_fill(unused, float("-inf"))
        places, logprobs[at] = choose(columns, decoding, uniform[at])
        tokens[at] = padded.gather(1, places[:, None])[:, 0]
    if many:
        at = torch.tensor(many, device=device)
        rest = logits[at].float()
        pairs = [(place, token) for place, row in enumerate(many) if (each := sets[row]) for token in each.ids]
        if pairs:
            rows, excluded = torch.tensor(pairs, device=device).unbind(1)
            rest[rows, excluded] = float("-inf")
        tokens[at], logprobs[at] = choose(rest, decoding, uniform[at])
    return tokens, logprobs


def inverse_cumulative(weights: Tensor, uniform: Tensor) -> Tensor:
    """Return ``(N,)`` the place in each row of ``weights (N, V)`` at which their cumulative sum passes the share
    ``uniform``, in double precision, as rounding would lose the rare tokens of a large vocabulary. Only the block that
    the sums of blocks find is summed up place by place: a table of doubles costs as much as the model's products."""
    count, size = weights.shape
    if size % _BLOCK or size < 4 * _BLOCK:
        cumulative = weights.cumsum(-1, dtype=torch.float64)
        return _place(cumulative, uniform * cumulative[:, -1])
    blocks = weights.view(count, -1, _BLOCK)
    sums = blocks.sum(-1, dtype=torch.float64).cumsum(-1)
    target = uniform * sums[:, -1]
    block = _place(sums, target)
    rest = target - sums.gather(1, (block - 1).clamp(min=0)[:, None])[:, 0].where(block > 0, 0.0)
    inside = blocks.gather(1, block[:, None, None].expand(-1, 1, _BLOCK))[:, 0].cumsum(-1, dtype=torch.float64)
    return block * _BLOCK + _place(inside, rest)


def _place(cumulative: Tensor, target: Tensor) -> Tensor:
    """Return the first place of each row above ``target``; the last one that isn't empty if rounding leaves none."""
    place = torch.searchsorted(cumulative, target[:, None], right=True)[:, 0]
    last = torch.searchsorted(cumulative, cumulative[:, -1:].contiguous())[:, 0]
    return torch.minimum(place, last)


def nucleus(logprobs: Tensor, top_p: float) -> Tensor:
    """Keep each row's most probable tokens, as few as reach ``top_p`` together, and renormalise. ``(N, V)``."""
    ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()  # probability of all more probable tokens
    dropped = torch.zeros_like(logprobs, dtype=torch.bool).scatter(1, order, before >= top_p)
    return logprobs.masked_fill(dropped, float("-inf")).log_softmax(-1)
