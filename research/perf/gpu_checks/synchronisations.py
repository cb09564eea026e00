"""Counts of the host's waits for a device: every such wait leaves the device without work until the host returns.

On a GPU PyTorch's own account is taken (``torch.cuda.set_sync_debug_mode``). On a CPU, if nothing waits, the calls
are counted that would wait on a GPU: reading a value, copying to the host, shapes that depend on values. Tensors that
would be on the host in any case are counted too, so that number is an upper bound.
"""

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_READS = ("item", "tolist", "cpu", "nonzero", "masked_select", "unique", "__bool__", "__int__", "__float__")
_GPU_WARNING = "called a synchronizing"


@contextmanager
def count_synchronisations(device: torch.device) -> Iterator[Counter[str]]:
    """Count within the block, by the name of the call; on a GPU all under one name."""
    counts: Counter[str] = Counter()
    if device.type != "cuda":
        with _CountReads(counts):
            yield counts
        return
    mode = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield counts
        finally:
            torch.cuda.set_sync_debug_mode(mode)
            counts["synchronisation"] = sum(_GPU_WARNING in str(warning.message) for warning in seen)


class _CountReads(TorchFunctionMode):
    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self._counts = counts

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _READS:
            self._counts[name] += 1
        elif name in ("__getitem__", "__setitem__") and _has_mask(args[1]):
            self._counts["index by a mask"] += 1
        return func(*args, **(kwargs or {}))


def _has_mask(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, Tensor) and part.dtype == torch.bool for part in parts)
