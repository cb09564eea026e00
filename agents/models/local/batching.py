"""How a batch is run on the machine that is there: in parts whose caches fit, and on how many threads."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from agents.models.local.sampler import TokenIds


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
