"""How a batch is split: every row once, in parts whose caches fit; and the memory that caches may take."""

import pytest
import torch

from agents.models.local.decoding.batching import cache_bytes, split_batch

GIB = 2**30


def test_batches_are_split_by_tokens_and_what_fits_stays_together_in_its_order():
    prompts = [(1,) * n for n in (10, 30, 10, 90, 5)]
    assert split_batch(prompts, [10] * 5, most=100) == [[4, 0, 2], [1], [3]]  # 3 rows of at most 20 tokens
    prompts = [(1,) * n for n in (30, 10)]
    assert split_batch(prompts, [10, 5], most=80) == [[0, 1]]
    assert split_batch(prompts, [10, 5], most=79) == [[1], [0]]
    assert split_batch(prompts, [10, 5], most=1) == [[1], [0]]  # a row that fits nowhere runs by itself
    assert split_batch([], [], most=80) == []


@pytest.mark.parametrize(
    ("free", "reserved", "allocated", "unused"),
    [
        (2, 75, 40, 37),  # after an update: memory that the allocator keeps is unused
        (70, 0, 0, 70),
        (3, 5, 6, 3),  # the two counters are read one after the other
    ],
)
def test_caches_get_half_of_the_unused_memory(free, reserved, allocated, unused, monkeypatch):
    numbers = {"mem_get_info": (free * GIB, 80 * GIB)}
    numbers |= {"memory_reserved": reserved * GIB, "memory_allocated": allocated * GIB}
    for name, number in numbers.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, number=number: number)
    assert cache_bytes(torch.device("cuda")) == unused * GIB // 2
    assert cache_bytes(torch.device("cpu")) == GIB
