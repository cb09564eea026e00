"""The tokens that all sequences of a pass begin with, computed once for all of its micro-batches."""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from agents.models.local.forward.llama_forward import hidden_states, read_weights
from agents.models.local.forward.path_attention import QUERIES, TreeAttention


class Trunk:
    """A common beginning ``ids``, at positions from 0 on, as the micro-batches of one pass attend to it. Each of them
    adds gradients to copies of the trunk's keys and values; :meth:`backward` sends the sums through the trunk itself,
    so that the trunk and one micro-batch are held at a time."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids
        self._made: dict[nn.Module, tuple[list[Tensor], list[Tensor]]] = {}

    def layers(self, model: nn.Module) -> Sequence[Tensor]:
        """Return each layer's keys and values ``(n, K, D)`` in turn, as the model was when they were first asked."""
        if model not in self._made:
            made: list[Tensor] = []
            count, filling = len(self.ids), -len(self.ids) % QUERIES  # whole blocks, as in micro-batches
            tree = TreeAttention(np.full(count + filling, count + filling))

            def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                made.extend((k[:count], v[:count]))
                return tree(layer, q, k, v)

            ids, places = F.pad(torch.tensor(self.ids), (0, filling)), torch.arange(count + filling)
            hidden_states(read_weights(model), ids, places, attend, only=places[:0])
            # many micro-batches add to one gradient: in single precision at least
            wide = [each.detach().to(torch.promote_types(each.dtype, torch.float32)) for each in made]
            copies = [copy.requires_grad_(each.requires_grad) for copy, each in zip(wide, made, strict=True)]
            self._made[model] = made, copies
        return self._made[model][1]

    def backward(self) -> None:
        """Send what has reached the copies through the trunk, and forget all that was computed."""
        for made, copies in self._made.values():
            pairs = zip(made, copies, strict=True)
            reached = [(each, copy.grad.to(each.dtype)) for each, copy in pairs if copy.grad is not None]
            if reached:
                torch.autograd.backward([each for each, _ in reached], [slope for _, slope in reached])
        self._made.clear()
