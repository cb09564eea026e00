"""How a batch is split: every row once, in parts whose caches fit."""

from agents.models.local.decoding.batching import split_batch


def test_batches_are_split_by_tokens() -> None:
    prompts = [(1,) * n for n in (10, 30, 10, 90, 5)]
    limits = [10] * 5
    batches = split_batch(prompts, limits, most=100)
    assert sorted(row for batch in batches for row in batch) == list(range(5))
    assert [4, 0, 2] in batches  # 3 rows of at most 20 tokens
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(len(prompts[r]) + limits[r] for r in batch) <= 100


def test_what_fits_stays_together_and_in_its_order() -> None:
    prompts = [(1,) * n for n in (30, 10)]
    assert split_batch(prompts, [10, 5], most=80) == [[0, 1]]
    assert split_batch(prompts, [10, 5], most=79) == [[1], [0]]
    assert split_batch(prompts, [10, 5], most=1) == [[1], [0]]  # a row that fits nowhere runs by itself
    assert split_batch([], [], most=80) == []
