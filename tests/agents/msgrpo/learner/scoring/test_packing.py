"""Token trees and padded rows give every row the scores it has alone, through real models."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring import scorer as scorer_module
from agents.msgrpo.learner.scoring.packing import SharedWork, pack
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways, score_rows

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


@pytest.mark.parametrize("packing", ["tree", "rows"])
@pytest.mark.parametrize("attention", ["sdpa", "eager", "lean"])
def test_scores_equal_the_models_own(make_llama, packing, attention, monkeypatch):
    model = make_llama(40)
    if attention == "lean":
        monkeypatch.setattr(scorer_module, "LEAN_FROM", 0)
    else:
        model.set_attn_implementation(attention)
    rng = torch.Generator().manual_seed(1)
    prompt = torch.randint(0, 40, (12,), generator=rng).tolist()
    rows = []
    for i in range(9):
        cut = 4 + i % 3 * 4
        response = torch.randint(0, 40, (1 + i % 4,), generator=rng).tolist()
        rows.append(TokenRow((*prompt[:cut], i % 2), tuple(response)))
    rows.append(rows[0])
    scorer = TokenScorer(model, temperature=1.25, chunk=5, autocast=None)
    assert choose_ways(scorer, packing) == packing
    assert scorer.head == "linear"
    wanted = [alone(model, row, 1.25) for row in rows]
    for budget in (1, 60, 10_000):
        batches = pack(rows, packing=packing, micro_batch_tokens=budget, tree_tokens=50)
        for got, own in zip(score_rows(scorer, rows, batches), wanted, strict=True):
            torch.testing.assert_close(got.double(), own, atol=2e-6, rtol=1e-5)


def other_models() -> dict[str, Any]:
    import transformers as t

    small: dict[str, Any] = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    mlp: dict[str, Any] = small | {"intermediate_size": 32, "num_key_value_heads": 1, "max_position_embeddings": 64}
    special = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    return {
        "gpt2": (
            t.GPT2Config(vocab_size=40, n_positions=64, n_embd=16, n_layer=2, n_head=2, **special),
            "tree",
            "linear",
        ),
        "qwen2": (t.Qwen2Config(**mlp, **special), "tree", "linear"),
        "gemma2": (t.Gemma2Config(**mlp, head_dim=8, final_logit_softcapping=1.0, **special), "tree", "module"),
        "cohere": (t.CohereConfig(**mlp, logit_scale=0.25, **special), "tree", "module"),
        "bloom": (t.BloomConfig(vocab_size=40, hidden_size=16, n_layer=2, n_head=2, **special), "rows", "linear"),
        "mamba": (t.MambaConfig(vocab_size=40, hidden_size=16, state_size=4, num_hidden_layers=2), "rows", None),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2", "qwen2", "gemma2", "cohere", "bloom", "mamba"])
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


@pytest.mark.slow
def test_a_sliding_window_that_is_too_short_for_the_rows_falls_back_to_rows():
    """A 4-dimensional mask replaces the window, so a tree would let tokens see further than the model does."""
    from transformers import MistralConfig, MistralForCausalLM

    model = MistralForCausalLM(
        MistralConfig(
            vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=1, sliding_window=20,
        )
    ).eval()  # fmt: skip
    scorer = TokenScorer(model, temperature=1.0, chunk=5, autocast=None)
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


def test_ways_are_compared_without_the_rounding_of_bfloat16(make_llama, monkeypatch):
    """It grows with the logits: SmolLM2 after a warm start was taken for a model without trees, and was slow."""
    autocasts: list[torch.dtype | None] = []
    agrees = scorer_module._agrees

    def noting(scorer: TokenScorer, *compared: Any) -> bool:
        autocasts.append(scorer.autocast)
        return agrees(scorer, *compared)

    monkeypatch.setattr(scorer_module, "_agrees", noting)
    for weights, compared_in in ((torch.float32, None), (torch.bfloat16, torch.bfloat16)):
        scorer = TokenScorer(make_llama(40).to(weights), temperature=1.0, chunk=5, autocast=torch.bfloat16)
        autocasts.clear()
        assert choose_ways(scorer, "tree") == "tree"
        assert {*autocasts} == {compared_in}
        assert scorer.autocast == torch.bfloat16


@pytest.mark.parametrize("packing", ["tree", "rows"])
def test_the_lean_forward_takes_a_large_models_place_on_a_cpu(make_llama, packing, monkeypatch):
    """Nothing of the model's own forward runs, and what it needed padding for is computed without."""
    small = TokenScorer(make_llama(40), temperature=1.0, chunk=5, autocast=None)
    choose_ways(small, packing)
    assert not small.lean
    monkeypatch.setattr(scorer_module, "LEAN_FROM", 0)
    model = make_llama(40)
    scorer = TokenScorer(model, temperature=1.0, chunk=5, autocast=None)
    choose_ways(scorer, packing)
    assert scorer.lean
    rows = [TokenRow(tuple(range(3, 3 + length)), (1, 2)) for length in (4, 9, 20)]
    batches = pack(rows, packing=packing, micro_batch_tokens=100, tree_tokens=5)
    wanted = [alone(model, row, 1.0) for row in rows]
    model.model.forward = None
    for got, right in zip(score_rows(scorer, rows, batches), wanted, strict=True):
        torch.testing.assert_close(got.double(), right, atol=2e-6, rtol=1e-5)
    model.train()  # as for gradient checkpointing, which is the model's own
    model.model.forward = type(model.model).forward.__get__(model.model)
    again = TokenScorer(model, temperature=1.0, chunk=5, autocast=None)
    choose_ways(again, packing)
    assert not again.lean


def test_a_lean_micro_batch_is_small(make_llama):
    work = [SharedWork(MSGRPOConfig(), Processes(), "tree", 16, lean=lean) for lean in (False, True)]
    rows = [TokenRow((number, *range(200)), (1, 2)) for number in range(60)]
    assert [max(batch.input_ids.numel() for batch in each.pack(rows)) for each in work] == [202 * 40, 202 * 5]


def test_lean_trees_are_small_for_a_wide_model():
    work = [SharedWork(MSGRPOConfig(), Processes(), "tree", 576, lean=lean) for lean in (False, True)]
    rows = [TokenRow((*range(100), number), (1, 2)) for number in range(800)]
    largest = [max(batch.input_ids.shape[1] for batch in each.pack(rows)) for each in work]
    assert 1024 < largest[0] <= 2304
    assert 512 < largest[1] <= 1024
