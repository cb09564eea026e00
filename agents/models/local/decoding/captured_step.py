"""A batch's step recorded as a CUDA graph, so that a token costs one launch and not several hundred.

The kernels of a model of a hundred million parameters are over before Python has launched the next ones. Recording
costs about two steps, so it pays where responses are longer than an action's name: where the model thinks in words.
"""

from collections.abc import Callable

import torch
from torch import Tensor


class GraphMemory:
    """The memory of a decoder's recordings, of which the last one alone is replayed.

    A recording keeps what it computes in a pool of its own. All of a decoder's share one, which is theirs as long as
    one of them is there, so the last is kept until the next is made.
    """

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()
        # the same for all: memory is only given on within a stream
        self.stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.last: CapturedStep | None = None


class CapturedStep:
    """``compute`` recorded for one shape; a call replays it.

    Args:
        compute: tokens ``(rows,)`` to logits ``(rows, vocabulary)``. What else it reads or writes stays where it is in
            memory for as long as this is called, and it has run before (libraries are set up at their first call).
        tokens: of any value, in the shape of all that will come.
        memory: of the decoder.
    """

    def __init__(self, compute: Callable[[Tensor], Tensor], tokens: Tensor, memory: GraphMemory) -> None:
        self._tokens = tokens.clone()
        self._graph = torch.cuda.CUDAGraph()
        now = torch.cuda.current_stream()
        memory.stream.wait_stream(now)
        # torch.cuda.graph would also wait for the device and give its unused memory back, every time
        with torch.cuda.stream(memory.stream):
            self._graph.capture_begin(pool=memory.pool, capture_error_mode="thread_local")
            try:
                self._logits = compute(self._tokens)
            finally:
                self._graph.capture_end()
        now.wait_stream(memory.stream)
        memory.last = self

    def __call__(self, tokens: Tensor) -> Tensor:
        """The logits after these tokens; the next call overwrites them."""
        self._tokens.copy_(tokens)
        self._graph.replay()
        return self._logits
