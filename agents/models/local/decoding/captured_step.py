"""A batch's step recorded as a CUDA graph, so that a token costs one launch and not several hundred.

The kernels of a model of a hundred million parameters are over before Python has launched the next ones. A recording
is of one shape, and making it costs about as much as a step, so it pays if responses are longer than an action's name.
"""

from collections.abc import Callable
from contextlib import suppress

import torch
from torch import Tensor

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
