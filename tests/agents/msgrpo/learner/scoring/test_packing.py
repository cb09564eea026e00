"""Token trees and padded rows give every row the scores it has alone; FlexAttention on trees equals a dense mask.

PyTorch refuses a gradient of FlexAttention on a CPU, because its compiled kernels have none there; the plain formula
has. Some tests lift the refusal, so what they see is PyTorch's formula, our masks and our blocks, not a GPU's kernel.
"""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.msgrpo import ConfigError, MSGRPOConfig, TokenRow, UnusableModelError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.prepare import choose_attention
from agents.msgrpo.learner.scoring import scorer as scorer_module
from agents.msgrpo.learner.scoring import tree_attention
from agents.msgrpo.learner.scoring.packing import SharedWork, pack
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways, score_rows
from agents.msgrpo.learner.scoring.tree_attention import BLOCK, TREE_ATTENTION, largest_error, random_trees, tree_blocks
from tests.agents.msgrpo.learner.learners import V

tokens = st.lists(st.integers(1, 3), min_size=1, max_size=6).map(tuple)
some_rows = st.lists(
    st.builds(lambda prompt, response: TokenRow(prompt, response), tokens, tokens), min_size=1, max_size=12
)


def alone(model: Any, row: TokenRow, temperature: float) -> torch.Tensor:
    """The row's score by the model's own forward, no batch, no padding."""
    ids = torch.tensor([row.prompt + row.response])
    log_p = torch.log_softmax(model(ids).logits[0].double() / temperature, -1)
    first = len(row.prompt) - 1
    return torch.stack([log_p[first + t, token] for t, token in enumerate(row.response)])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(some_rows, st.sampled_from(["tree", "rows"]), st.integers(1, 40), st.integers(1, 30))
def test_every_row_is_packed_once_with_its_own_ancestors(rows, packing, budget, tree_tokens):
    """Read every row back from the packed form: the ancestors of a scored place are exactly the tokens before it."""
    batches = pack(rows, packing=packing, micro_batch_tokens=budget, tree_tokens=tree_tokens)
    assert sorted(number for batch in batches for number in batch.rows.tolist()) == list(range(len(rows)))
    for batch in batches:
        mask = batch.attention_mask()
        places = iter(batch.places.tolist())
        width = batch.input_ids.shape[1]
        for number in batch.rows.tolist():
            row = rows[number]
            for t, target in enumerate(row.response):
                place = next(places)
                assert batch.targets[place] == target
                b, node = divmod(int(batch.index[place]), width)
                sees = mask[b, 0, node] if packing == "tree" else (torch.arange(width) <= node) & mask[b].bool()
                before = row.prompt + row.response[:t]
                assert tuple(batch.input_ids[b][sees].tolist()) == before
                assert batch.position_ids[b][sees].tolist() == list(range(len(before)))


def test_trees_compute_equal_prefixes_once():
    prompt = tuple(range(1, 51))
    rows = [TokenRow(prompt, (60 + i, 2, 3)) for i in range(10)] * 4
    (tree,) = pack(rows, packing="tree", micro_batch_tokens=1000, tree_tokens=1000)
    assert tree.input_ids.shape == (1, 50 + 10 * 2)  # the last token of a row predicts nothing
    assert len(tree.index) == 30
    assert len(tree.places) == 40 * 3


def other_models() -> dict[str, Any]:
    import transformers as t

    small: dict[str, Any] = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    mlp: dict[str, Any] = small | {"intermediate_size": 32, "num_key_value_heads": 1, "max_position_embeddings": 64}
    special = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    return {
        "gpt2": (t.GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, **special), "tree", "linear"),
        "gemma2": (t.Gemma2Config(**mlp, head_dim=8, final_logit_softcapping=1.0, **special), "tree", "module"),
        "bloom": (t.BloomConfig(vocab_size=40, hidden_size=16, n_layer=2, n_head=2, **special), "rows", "linear"),
        "mamba": (t.MambaConfig(vocab_size=40, hidden_size=16, state_size=4, num_hidden_layers=2), "rows", None),
    }


@pytest.mark.parametrize("name", ["gpt2", "gemma2", "bloom", "mamba"])
@pytest.mark.filterwarnings("ignore")
def test_other_architectures_get_the_ways_that_fit_them(name):
    """Absolute positions, capped and scaled logits, no positions at all, no attention at all."""
    from transformers import AutoModelForCausalLM

    config, packing, head = other_models()[name]
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    scorer = TokenScorer(model, temperature=1.5, chunk=3, autocast=None)
    assert choose_ways(scorer, "tree") == packing
    assert head is None or scorer.head == head
    rows = [TokenRow((1, 2, 3), (4, 5)), TokenRow((1, 2, 3), (4, 6, 7)), TokenRow((1, 9), (4,))]
    batches = pack(rows, packing=packing, micro_batch_tokens=100, tree_tokens=100)
    for got, row in zip(score_rows(scorer, rows, batches), rows, strict=True):
        torch.testing.assert_close(got.double(), alone(model, row, 1.5), atol=1e-5, rtol=1e-4)


def test_a_sliding_window_that_is_too_short_for_the_rows_falls_back_to_rows():
    """A 4-dimensional mask replaces the window, so a tree would let tokens see further than the model does."""
    from transformers import MistralConfig, MistralForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = MistralConfig(vocab_size=40, num_hidden_layers=1, sliding_window=20, **sizes)
    scorer = TokenScorer(MistralForCausalLM(config).eval(), temperature=1.0, chunk=5, autocast=None)
    assert choose_ways(scorer, "tree", longest=20) == "tree"
    with pytest.warns(UserWarning, match="slides over 20 tokens and rows may have 21"):
        assert choose_ways(scorer, "tree", longest=21) == "rows"


def test_a_model_that_ignores_the_mask_falls_back_to_rows(make_llama):
    model = make_llama(40)
    forward = model.model.forward

    def without_mask(input_ids: Any, attention_mask: Any = None, **kwargs: Any) -> Any:
        return forward(input_ids=input_ids, attention_mask=None, **kwargs)

    model.model.forward = without_mask
    scorer = TokenScorer(model, temperature=1.0, chunk=5, autocast=None)
    with pytest.warns(UserWarning, match="doesn't take token trees: it ignores"):
        assert choose_ways(scorer, "tree") == "rows"


@pytest.mark.parametrize("packing", ["tree", "rows"])
@pytest.mark.parametrize("lean", [False, True])
def test_scores_equal_the_model_s_own_and_a_large_model_on_a_cpu_runs_the_lean_forward(
    make_llama, packing, lean, monkeypatch
):
    """Then nothing of the model's own forward runs, and what it needed padding for is computed without."""

    def scorer_of(model: Any) -> TokenScorer:
        scorer = TokenScorer(model, temperature=1.25, chunk=5, autocast=None)
        assert choose_ways(scorer, packing) == packing
        return scorer

    monkeypatch.setattr(scorer_module, "LEAN_FROM", 0 if lean else 10**9)
    assert not scorer_of(make_llama(40).train()).lean  # as for gradient checkpointing, which is the model's own
    model = make_llama(40)
    scorer = scorer_of(model)
    assert scorer.lean == lean
    rows = [TokenRow((*range(3, 3 + length), length % 2), (1, 2, length)) for length in (4, 9, 9, 10, 20)]
    wanted = [alone(model, row, 1.25) for row in rows]
    model.model.forward = None if lean else model.model.forward
    for budget in (1, 60, 10_000):
        batches = pack(rows, packing=packing, micro_batch_tokens=budget, tree_tokens=25)
        for got, right in zip(score_rows(scorer, rows, batches), wanted, strict=True):
            torch.testing.assert_close(got.double(), right, atol=2e-6, rtol=1e-5)


def test_a_lean_micro_batch_is_small(make_llama):
    work = [SharedWork(MSGRPOConfig(), Processes(), "tree", 16, lean=lean) for lean in (False, True)]
    rows = [TokenRow((number, *range(200)), (1, 2)) for number in range(60)]
    assert [max(batch.input_ids.numel() for batch in each.pack(rows)) for each in work] == [202 * 40, 202 * 5]


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
@pytest.mark.parametrize(("heads", "kv_heads", "dtype"), [(14, 2, torch.float32), (4, 1, torch.bfloat16)])
def test_output_and_gradients_equal_those_with_a_dense_mask(gradient_on_cpu, heads, kv_heads, dtype):
    error = largest_error((2, 200), heads, kv_heads, 16, dtype, CPU)
    assert error < (TOLERANCE if dtype == torch.float32 else 0.03)


def test_what_has_no_trees_is_as_without_flex_attention_and_saved_without_it(make_llama, tmp_path):
    model, ids, mask = make_llama(V), torch.arange(20)[None], (torch.arange(20) < 15)[None].long()
    with torch.no_grad():
        wanted = model(input_ids=ids, attention_mask=mask).logits
        tree_attention.register()
        model.set_attn_implementation(TREE_ATTENTION)
        assert torch.equal(model(input_ids=ids, attention_mask=mask).logits, wanted)
    model.save_pretrained(tmp_path)
    assert TREE_ATTENTION not in (tmp_path / "config.json").read_text()  # so that it loads anywhere


def test_it_is_chosen_where_it_works_and_what_cannot_be_is_said(make_llama, monkeypatch):
    with pytest.raises(UnusableModelError, match="FlexAttention has no gradient on a CPU; accepted: auto"):
        choose_attention(make_llama(V), MSGRPOConfig(attention="flex_attention"))
    with pytest.raises(ConfigError, match="flex_attention' is for packing = 'tree'"):
        MSGRPOConfig(attention="flex_attention", packing="rows")
    monkeypatch.setattr(tree_attention, "why_no_tree_attention", lambda *about: "")
    for attention, wanted in (("flex_attention", TREE_ATTENTION), ("auto", "sdpa"), ("sdpa", "sdpa")):  # on a CPU
        model = make_llama(V)
        choose_attention(model, MSGRPOConfig(attention=attention))
        assert model.config._attn_implementation == wanted


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
