"""How a batch is run on the machine that is there: in parts whose caches fit, and on how many threads."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from agents.models.local.decoding.sampler import TokenIds
from agents.models.local.forward.llama_forward import unwrap

_CPU_BYTES = 2**30
_GPU_SHARE = 0.5  # of the unused memory when a batch comes: logits, prompts' attention and growing caches need the rest


def split_batch(prompts: Sequence[TokenIds], limits: Sequence[int], most: int) -> list[list[int]]:
    """Return row numbers, split so that each part's caches hold at most ``most`` tokens (or it is one row); ``limits``
    are the most tokens of each row's response."""
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


def in_parts(sizes: Sequence[int], most: int) -> list[range]:
    """Return the indices of sizes in parts that add up to at most ``most`` each (or are one)."""
    parts, begin, total = [], 0, 0
    for index, size in enumerate(sizes):
        if total and total + size > most:
            parts.append(range(begin, index))
            begin, total = index, 0
        total += size
    return [*parts, range(begin, len(sizes))]


@contextmanager
def one_thread() -> Iterator[None]:
    """Take one thread for a small model, unless the environment names a number: on a machine with other work, threads
    that wait for each other in every layer cost tenfold."""
    threads = torch.get_num_threads()
    if threads == 1 or "OMP_NUM_THREADS" in os.environ:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def bytes_per_token(model: nn.Module) -> int:
    """Return the memory of one token of one row in the caches."""
    config = unwrap(model).config.get_text_config()
    heads = getattr(config, "num_attention_heads", None) or 1
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    return int(2 * config.num_hidden_layers * kv_heads * dim * next(model.parameters()).element_size())


def cache_bytes(device: torch.device) -> int:
    """Return the memory for the keys and values of all rows in flight."""
    if device.type != "cuda":
        return _CPU_BYTES
    # the allocator keeps the memory of freed tensors: after an update the driver has next to nothing free
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int((free + max(0, unused)) * _GPU_SHARE)
