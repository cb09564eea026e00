"""The memory that caches may take, from numbers as a GPU reports them."""

import pytest
import torch

from agents.models.local.decoding.batching import cache_bytes, unused_bytes

GIB = 2**30


def test_memory_that_the_allocator_keeps_is_unused() -> None:
    """After an update the driver has 2 of 80 GiB and the allocator 75, of which tensors use 40."""
    assert unused_bytes(2 * GIB, 75 * GIB, 40 * GIB) == 37 * GIB
    assert unused_bytes(70 * GIB, 0, 0) == 70 * GIB
    assert unused_bytes(3 * GIB, 5 * GIB, 6 * GIB) == 3 * GIB  # the two counters are read one after the other


def test_caches_get_half_of_what_is_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {"mem_get_info": (2 * GIB, 80 * GIB), "memory_reserved": 75 * GIB, "memory_allocated": 40 * GIB}
    for name, number in numbers.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, number=number: number)
    assert cache_bytes(torch.device("cuda")) == 37 * GIB // 2
    assert cache_bytes(torch.device("cpu")) == GIB
