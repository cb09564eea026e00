"""How a batch is run on the machine that is there: in parts whose caches fit, and on how many threads."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from agents.models.local.decoding.sampler import TokenIds

_CPU_BYTES = 2**30
_GPU_SHARE = 0.5  # of what is unused when a batch comes: logits, prompts' attention and growing caches need the rest


def split_batch(prompts: Sequence[TokenIds], limits: Sequence[int], most: int) -> list[list[int]]:
    """Row numbers, split so that each part's caches fit; equal prompts together, then by length.

    Args:
        prompts: the token ids of each row's prompt.
        limits: the most tokens of each row's response.
        most: tokens that may be in the caches at once; a row that needs more is a part by itself.
    """
    if not prompts:
        return []
    if len(prompts) * (max(map(len, prompts)) + max(limits)) <= most:
        return [list(range(len(prompts)))]
    batches: list[list[int]] = [[]]
    widest = 0
    for row in sorted(range(len(prompts)), key=lambda row: (len(prompts[row]), prompts[row])):
        widest = max(widest, len(prompts[row]) + limits[row])
        if batches[-1] and widest * (len(batches[-1]) + 1) > most:
            batches.append([])
            widest = len(prompts[row]) + limits[row]
        batches[-1].append(row)
    return batches


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for a model so small that handing its products to several costs more than they save.

    On a machine with other work the difference is tenfold, as threads then wait for each other in every layer.
    What a user set in the environment stays.
    """
    threads = torch.get_num_threads()
    if threads == 1 or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def cache_bytes(device: torch.device) -> int:
    """Memory for the keys and values of all rows in flight."""
    if device.type != "cuda":
        return _CPU_BYTES
    free, _ = torch.cuda.mem_get_info(device)
    return int(unused_bytes(free, torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)) * _GPU_SHARE)


def unused_bytes(free: int, reserved: int, allocated: int) -> int:
    """Return what a process can still allocate on a GPU.

    PyTorch's allocator keeps what tensors have given back, so after an update the driver has next to nothing free
    while most of the memory is unused.

    Args:
        free: bytes that the driver could hand out.
        reserved: bytes that PyTorch's allocator has taken from the driver.
        allocated: of those, bytes in tensors.
    """
    return free + max(0, reserved - allocated)
