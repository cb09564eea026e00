"""A batch's step recorded as a CUDA graph, so that a token costs one launch and not several hundred.

The kernels of a model of a hundred million parameters are over before Python has launched the next ones. A recording
is of one shape, and making it costs about as much as a step, so it pays if responses are longer than an action's name.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

Compute = Callable[[Tensor], Tensor]
"""Tokens ``(rows,)`` to logits ``(rows, vocabulary)``; everything else that it reads or writes stays in its place."""


class Recorder:
    """Makes the recordings of a decoder. They share their memory, so only the last one may be replayed, and it is kept
    in ``last`` until the next is made."""

    def __init__(self, device: torch.device) -> None:
        # the same for all: memory is only passed on within a stream
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.forget()

    def forget(self) -> None:
        """Give the memory back."""
        self.last: CapturedStep | None = None
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, compute: Compute, tokens: Tensor) -> "CapturedStep | None":
        """Return a recording of ``compute``, which has run in this shape before; ``None`` if memory is short."""
        try:
            self.last = CapturedStep(compute, tokens, self._stream, self._pool)
        except torch.cuda.OutOfMemoryError:
            self.forget()
            torch.cuda.empty_cache()
        return self.last


class CapturedStep:
    """``compute`` recorded for one shape; a call replays it."""

    def __init__(self, compute: Compute, tokens: Tensor, stream: torch.cuda.Stream, pool: Any) -> None:
        self._tokens = tokens.clone()
        self._graph = torch.cuda.CUDAGraph()
        now = torch.cuda.current_stream(tokens.device)
        stream.wait_stream(now)
        # torch.cuda.graph would also wait for the device and give its unused memory back, every time
        with torch.cuda.stream(stream):
            self._graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                self._logits = compute(self._tokens)
            except BaseException:
                with suppress(RuntimeError):  # it may report the fault again, and less well
                    self._graph.capture_end()
                raise
            self._graph.capture_end()
        now.wait_stream(stream)

    def __call__(self, tokens: Tensor) -> Tensor:
        """Return the logits after these tokens; the next call overwrites them."""
        self._tokens.copy_(tokens)
        self._graph.replay()
        return self._logits
