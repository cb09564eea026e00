"""Attention by blocks of a tree against attention with a dense mask: outputs, gradients, and what is computed."""

import pytest
import torch
import torch.nn.functional as F

from agents.models.local.forward import path_attention
from agents.models.local.forward.path_attention import attend, tree_blocks
from agents.msgrpo.learner.scoring.packing import tree_mask
from agents.msgrpo.learner.scoring.tree_attention import random_trees


@pytest.mark.parametrize("length", [1, 5, 64, 65, 200])
@pytest.mark.parametrize("scores", [1, 2**19])  # one block at a time, all at once
def test_outputs_and_gradients_equal_those_of_a_dense_mask(length, scores, monkeypatch):
    monkeypatch.setattr(path_attention, "_SCORES", scores)
    rng = torch.Generator().manual_seed(length)
    end = random_trees(1, length, rng)
    q, k, v = (torch.randn(length, heads, 8, generator=rng).double().requires_grad_() for heads in (6, 2, 2))
    slope = torch.randn(length, 48, generator=rng).double()
    queries, keys, values = (x.transpose(0, 1)[None] for x in (q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1)))
    dense = (
        F.scaled_dot_product_attention(queries, keys, values, attn_mask=tree_mask(end))[0].transpose(0, 1).flatten(1)
    )
    wanted = [dense, *torch.autograd.grad((dense * slope).sum(), (q, k, v))]
    for size in (64, 7):
        out = attend(q, k, v, tree_blocks(end[0].numpy(), size))
        got = [out, *torch.autograd.grad((out * slope).sum(), (q, k, v))]
        for mine, right in zip(got, wanted, strict=True):
            torch.testing.assert_close(mine, right, atol=1e-12, rtol=1e-12)


def test_a_block_gathers_the_keys_of_its_ancestors_alone():
    # instructions of 100 tokens, then 30 branches of 50 that share nothing
    end = torch.tensor([100 + 30 * 50] * 100 + [150 + 50 * branch for branch in range(30) for _ in range(50)])
    blocks = tree_blocks(end.numpy(), 50)
    assert blocks.keys.shape == (32, 150)


def test_half_precision_stays_close_to_single():
    rng = torch.Generator().manual_seed(0)
    blocks = tree_blocks(random_trees(1, 150, rng)[0].numpy())
    inputs = [torch.randn(150, heads, 16, generator=rng) for heads in (4, 2, 2)]
    slope = torch.randn(150, 64, generator=rng)
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        q, k, v = (x.to(dtype).requires_grad_() for x in inputs)
        out = attend(q, k, v, blocks)
        assert out.dtype == dtype
        results.append([out, *torch.autograd.grad((out * slope).sum(), (q, k, v))])
    for single, half in zip(*results, strict=True):
        assert (half.float() - single).abs().max() < 0.03 * single.abs().max()
