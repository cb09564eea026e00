"""FlexAttention on token trees equals attention with a dense mask, output and gradients.

PyTorch refuses a gradient of FlexAttention on a CPU, because its compiled kernels have none there; the plain formula
has. These tests lift the refusal, so what they see is PyTorch's formula, our masks and our blocks, not a GPU's kernel.
"""

import json
from typing import Any

import pytest
import torch

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.errors import ConfigError, UnusableModelError
from agents.msgrpo.learner.prepare import checkpoint_layers, choose_attention
from agents.msgrpo.learner.scoring import tree_attention
from agents.msgrpo.learner.scoring.packing import pack
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways, score_rows
from agents.msgrpo.learner.scoring.tree_attention import BLOCK, TREE_ATTENTION, largest_error, random_trees, tree_blocks
from tests.agents.msgrpo.learner.learners import V, gradients, make_learner, ragged_rows

flex = pytest.importorskip("torch.nn.attention.flex_attention")
CPU = torch.device("cpu")
TOLERANCE = 1e-5  # relative to the largest value, in float32
pytestmark = [
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile:UserWarning"),
    pytest.mark.filterwarnings(
        "ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"
    ),  # PyTorch's own
]


@pytest.fixture
def gradient_on_cpu(monkeypatch):
    monkeypatch.setattr(flex, "_validate_device", lambda *tensors: None)


@pytest.fixture
def works_here(monkeypatch, gradient_on_cpu):
    monkeypatch.setattr(tree_attention, "why_no_tree_attention", lambda *about: "")


@pytest.mark.parametrize(("batch", "length"), [(1, 24), (3, 300), (1, 1000)])
def test_blocks_are_those_of_the_dense_mask(batch, length):
    end = random_trees(batch, length, torch.Generator().manual_seed(length))
    ours = tree_blocks(end, CPU)
    size = max(2, -(-length // BLOCK)) * BLOCK
    assert ours.shape == (batch, 1, size, size)
    padded = torch.cat([end, torch.arange(length, size).expand(batch, -1) + 1], 1)

    def sees(b: Any, head: Any, query: Any, key: Any) -> Any:
        return (key <= query) & (query < padded[b, key])

    wanted = flex.create_block_mask(sees, batch, None, size, size, device="cpu")
    assert torch.equal(ours.to_dense(), wanted.to_dense())
    for name in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices"):
        assert torch.equal(getattr(ours, name), getattr(wanted, name)), name
    if length == 1000:
        assert ours.sparsity() > 45  # per cent of the matrix that isn't computed: more than above the diagonal alone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("heads", "kv_heads", "dtype"), [(4, 1, torch.float32), (14, 2, torch.float32), (4, 1, torch.bfloat16)]
)
def test_output_and_gradients_equal_those_with_a_dense_mask(gradient_on_cpu, heads, kv_heads, dtype):
    error = largest_error((2, 200), heads, kv_heads, 16, dtype, CPU)
    assert error < (TOLERANCE if dtype == torch.float32 else 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("checkpointed", [False, True])
def test_an_update_by_trees_has_the_same_gradients(make_llama, gradient_on_cpu, monkeypatch, checkpointed):
    rows = ragged_rows(3)
    config = MSGRPOConfig(temperature=1.25, minibatches=1, entropy_coefficient=0.01, tree_tokens=40)
    learner = make_learner(make_llama, config, double=False)
    model = learner.scorer.causal_lm
    if checkpointed:
        checkpoint_layers(model)
        model.train()
    loss, wanted = gradients(learner, rows)
    tree_attention.register()
    model.set_attn_implementation(TREE_ATTENTION)
    calls = []
    monkeypatch.setattr(tree_attention, "tree_attention", counted(tree_attention.tree_attention, calls))
    other, got = gradients(learner, rows)
    assert calls
    assert other == pytest.approx(loss, rel=1e-5)
    for name, gradient in wanted.items():
        assert (got[name] - gradient).abs().max() <= TOLERANCE * gradient.abs().max(), name


def counted(function: Any, calls: list[int]) -> Any:
    def count(*args: Any) -> Any:
        calls.append(1)
        return function(*args)

    return count


def test_rows_and_samples_are_as_without_it(make_llama, tmp_path):
    """The model may be sampled by its own forward, or trained by rows; its saved configuration must load anywhere."""
    model = make_llama(V)
    ids = torch.arange(20)[None]
    mask = (torch.arange(20) < 15)[None].long()
    with torch.no_grad():
        wanted = model(input_ids=ids, attention_mask=mask).logits
        tree_attention.register()
        model.set_attn_implementation(TREE_ATTENTION)
        assert torch.equal(model(input_ids=ids, attention_mask=mask).logits, wanted)
    model.save_pretrained(tmp_path)
    assert TREE_ATTENTION not in json.dumps(json.loads((tmp_path / "config.json").read_text()))


def test_it_is_chosen_where_it_works(make_llama, works_here):
    for settings, wanted in (
        ({"attention": "flex_attention"}, TREE_ATTENTION),
        ({"attention": "auto"}, "sdpa"),  # on a CPU
        ({"attention": "sdpa"}, "sdpa"),
        ({"attention": "auto", "packing": "rows"}, "sdpa"),
    ):
        model = make_llama(V)
        choose_attention(model, MSGRPOConfig(**settings))
        assert model.config._attn_implementation == wanted


def test_what_cannot_be_is_said(make_llama):
    with pytest.raises(UnusableModelError, match="FlexAttention has no gradient on a CPU; accepted: auto"):
        choose_attention(make_llama(V), MSGRPOConfig(attention="flex_attention"))
    with pytest.raises(ConfigError, match="flex_attention' is for packing = 'tree'"):
        MSGRPOConfig(attention="flex_attention", packing="rows")


@pytest.mark.slow
def test_a_kernel_that_computes_something_else_is_given_up(make_llama, monkeypatch):
    model = make_llama(V)
    tree_attention.register()
    model.set_attn_implementation(TREE_ATTENTION)
    scorer = TokenScorer(model, temperature=1.0, chunk=5, autocast=None)
    assert choose_ways(scorer, "tree") == "tree"
    assert model.config._attn_implementation == TREE_ATTENTION
    monkeypatch.setattr(tree_attention, "tree_attention", lambda query, *others: torch.zeros_like(query))
    with pytest.warns(UserWarning, match="FlexAttention changes the model's log-probabilities: using a dense mask"):
        assert choose_ways(scorer, "tree") == "tree"
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.nightly  # compiling takes long; the blocks are PyTorch's own to the bit, as the first test holds
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # what PyTorch's compiler imports
def test_the_compiled_kernel_scores_as_the_dense_mask(make_llama, monkeypatch):
    """The plain formula ignores the blocks; the kernel skips the empty ones. It takes a C++ compiler."""
    model = make_llama(V)
    rng = torch.Generator().manual_seed(0)
    ids = torch.randint(0, V, (60, 40), generator=rng)
    ids[:, :20] = ids[0, :20]
    rows = [TokenRow(tuple(row[: 25 + n % 5].tolist()), tuple(row[25 + n % 5 :].tolist())) for n, row in enumerate(ids)]
    scorer = TokenScorer(model, temperature=1.0, chunk=64, autocast=None)
    batches = pack(rows, packing="tree", micro_batch_tokens=3000, tree_tokens=1000)
    wanted = torch.cat(score_rows(scorer, rows, batches))
    tree_attention.register()
    model.set_attn_implementation(TREE_ATTENTION)
    monkeypatch.setattr(tree_attention, "_kernel", lambda kind: torch.compile(flex.flex_attention))
    torch.testing.assert_close(torch.cat(score_rows(scorer, rows, batches)), wanted, atol=1e-4, rtol=1e-4)
