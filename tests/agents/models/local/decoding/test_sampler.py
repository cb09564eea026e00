"""When the host looks at the tokens of a device, and that a response doesn't depend on it."""

import pytest
import torch

from agents.models.base import Decoding
from agents.models.local.decoding.drawing import choose, nucleus
from agents.models.local.decoding.sampler import Sampled, looks, sample
from agents.models.local.transformers import TransformersModel
from tests.agents.models.local.test_transformers import make_model, make_tokenizer

PROMPTS = [tuple(range(5, 5 + length)) for length in (20, 31, 8, 20, 40, 12, 9, 33)]
SEEDS = [(row,) for row in range(len(PROMPTS))]


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


def responses(player: TransformersModel, limits: list[int], look_every: int, stop: tuple[str, ...]) -> list[Sampled]:
    decoding = Decoding(1.0, max_tokens=max(limits), stop=stop)
    check = player.stop_check(stop)
    with torch.inference_mode():
        return sample(player.decoder, PROMPTS, decoding, SEEDS, check, limits, look_every=look_every)


@pytest.mark.parametrize("kind", ["tied", "gpt2"])
def test_responses_do_not_depend_on_how_often_the_host_looks(kind, tokenizer):
    player = TransformersModel(make_model(kind, tokenizer), tokenizer)
    limits = [30, 7, 30, 21, 30, 30, 16, 30]
    wanted = responses(player, limits, 1, ("e", "go"))
    assert {row.stopped for row in wanted} == {True, False}
    assert len({len(row.ids) for row in wanted}) > 3
    for every in (2, 8, 100):
        for got, row in zip(responses(player, limits, every, ("e", "go")), wanted, strict=True):
            assert (got.ids, got.stopped) == (row.ids, row.stopped)
            assert got.logprobs == pytest.approx(row.logprobs, abs=1e-5)


def test_the_host_looks_often_at_first_and_at_every_limit():
    assert looks([20, 13], 8) == {1, 2, 4, 8, 13, 16, 20}
    assert looks([5, 5], 1) == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("kind", ["tied", "gpt2"])
def test_a_row_at_the_end_of_the_context_lets_the_others_go_on(kind, tokenizer):
    """It would otherwise be fed on with them, to positions that the model doesn't have."""
    player = TransformersModel(make_model(kind, tokenizer), tokenizer)
    player.eos_ids = frozenset()
    prompts = [(5,) * 150] + [(6,) * 20] * 9
    rows = player.generate_ids(prompts, Decoding(1.0, max_tokens=60), [(row,) for row in range(10)])
    assert [len(row.ids) for row in rows] == [10] + [60] * 9


def test_the_nucleus_is_the_fewest_tokens_that_reach_top_p_and_of_equals_the_first():
    """Probabilities 1/4, 1/2, 1/8, 1/8: the largest reaches 1/2 alone, and 7/8 takes one of the two equal ones."""
    logprobs = torch.tensor([[0.25, 0.5, 0.125, 0.125]]).log()
    kept = {top_p: nucleus(logprobs, top_p).exp()[0].tolist() for top_p in (0.5, 0.75, 0.875)}
    assert kept[0.5] == pytest.approx([0, 1, 0, 0])
    assert kept[0.75] == pytest.approx([1 / 3, 2 / 3, 0, 0])
    assert kept[0.875] == pytest.approx([2 / 7, 4 / 7, 1 / 7, 0])
    equal = nucleus(torch.full((1, 64), 1 / 64).log(), 0.25)[0].isfinite()
    assert equal.nonzero()[:, 0].tolist() == list(range(16))
    token, drawn = choose(logprobs, Decoding(temperature=1.0, top_p=0.7), torch.tensor([0.9999]).double())
    assert (token.item(), drawn.exp().item()) == (1, pytest.approx(2 / 3))  # renormalised
