"""The lean forward pass in parts: LoRA beside weights or added to them, attention in trees, and what is kept in memory.

test_transformers holds whole passes and their gradients to transformers' own.
"""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from agents.models.local.decoding.lean_decoder import LeanDecoder
from agents.models.local.forward import llama_forward, path_attention
from agents.models.local.forward.layers import gated_silu, rms_norm
from agents.models.local.forward.llama_forward import read_weights
from agents.models.local.forward.path_attention import attend, tree_blocks
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.learner.scoring.packing import tree_mask
from agents.msgrpo.learner.scoring.tree_attention import random_trees
from tests.agents.models.local.test_transformers import OLD_NAME, TEXT, make_tokenizer, with_adapters


def lean_logits(model: Any, ids: torch.Tensor, fuse: bool) -> torch.Tensor:
    packing, weights = llama_forward.Packing([len(ids)], ids.device), read_weights(model, fuse=fuse)
    attend = llama_forward.CausalAttention(packing)
    return llama_forward.logits(weights, llama_forward.hidden_states(weights, ids, packing.positions, attend))


@OLD_NAME
@pytest.mark.parametrize(
    ("kind", "names"), [("tied", ("default", "second")), ("qwen2", ("default",)), ("qwen3", ("default",))]
)
def test_factors_beside_the_weights_give_what_the_merged_weights_give(kind, names):
    tokenizer = make_tokenizer()
    model = with_adapters(kind, tokenizer, names=names)
    ids = torch.tensor(tokenizer(TEXT[0])["input_ids"])
    decoder = TransformersModel(model, tokenizer).decoder
    assert isinstance(decoder, LeanDecoder)
    with torch.no_grad():
        wanted = model(input_ids=ids[None]).logits[0]
        torch.testing.assert_close(decoder.start([tuple(ids.tolist())], [0])[1][0], wanted[-1], atol=1e-4, rtol=1e-4)
        with model.disable_adapter():  # noticed although no parameter changed
            plain = model(input_ids=ids[None]).logits[0]
            assert (plain - wanted).abs().max() > 0.1
            got = decoder.start([tuple(ids.tolist())], [0])[1][0]
            torch.testing.assert_close(got, plain[-1], atol=1e-4, rtol=1e-4)
        for fuse in (True, False):
            torch.testing.assert_close(lean_logits(model, ids, fuse), wanted, atol=1e-4, rtol=1e-4)


# ------------------------------------------------------------------ attention in trees


@pytest.mark.parametrize(
    ("length", "scores"), [(1, 1), (64, 2**19), (65, 1), (200, 1), (200, 2**19)]
)  # one block at a time, all at once
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


# ------------------------------------------------------------------ normalisation and activation


@pytest.mark.parametrize(
    ("function", "shape"), [(lambda x, weight: rms_norm(x, weight, 1e-5), (6,)), (gated_silu, (9, 6))]
)
def test_inputs_alone_are_kept_for_the_backward_pass(function, shape):
    inputs = [torch.randn(size, requires_grad=True) for size in ((9, 6), shape)]
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        function(*inputs)
    assert {tensor.data_ptr() for tensor in kept if tensor.dim()} == {x.data_ptr() for x in inputs}
