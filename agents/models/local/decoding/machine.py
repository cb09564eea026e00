"""Running a batch on this machine: in parts whose caches fit, on as many threads as help, as a CUDA graph.

A step recorded as a graph costs one launch and not several hundred: the kernels of a model of a hundred million
parameters are over before Python has launched the next ones. A recording is of one shape, and making it costs about as
much as a step, so it pays if responses are longer than an action's name.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import torch
from torch import Tensor, nn

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


Compute = Callable[[Tensor], Tensor]
"""Tokens ``(rows,)`` to logits ``(rows, vocabulary)``; everything else that it reads or writes stays in its place."""


class Recorder:
    """Makes the recordings of a decoder. They share their memory, so only the ``last`` one may be replayed."""

    def __init__(self, device: torch.device) -> None:
        # the same for all: memory is only passed on within a stream
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.forget()

    def forget(self) -> None:
        """Give the memory back."""
        self.last: Compute | None = None
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, compute: Compute, tokens: Tensor) -> Compute | None:
        """Return a recording of ``compute``, which has run in this shape before; ``None`` if memory is short.

        Each call of the recording overwrites the logits of the one before.
        """
        held, graph = tokens.clone(), torch.cuda.CUDAGraph()
        now = torch.cuda.current_stream(tokens.device)
        self._stream.wait_stream(now)
        try:
            # torch.cuda.graph would also wait for the device and give its unused memory back, every time
            with torch.cuda.stream(self._stream):
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    logits = compute(held)
                except BaseException:
                    with suppress(RuntimeError):  # it may report the fault again, and less well
                        graph.capture_end()
                    raise
                graph.capture_end()
        except torch.cuda.OutOfMemoryError:
            self.forget()
            torch.cuda.empty_cache()
            return None
        now.wait_stream(self._stream)

        def replay(tokens: Tensor) -> Tensor:
            held.copy_(tokens)
            graph.replay()
            return logits

        self.last = replay
        return replay
