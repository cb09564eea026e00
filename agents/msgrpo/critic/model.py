"""The critic's model: a copy of the policy's backbone with one linear head for each value."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from agents.models.local.forward.llama_forward import unwrap
from agents.msgrpo.errors import UnusableModelError
from agents.msgrpo.learner.adapter import copy_of_trained
from agents.msgrpo.learner.scoring.packing import MicroBatch
from agents.msgrpo.learner.scoring.scorer import inputs_of


class ValueModel(nn.Module):
    """Values at places of a text: ``V_h = w_h . hidden + b_h`` for each head h, on the last hidden states.

    The backbone is the policy's as it is when this is made, without its output head. Weights that the policy trains are
    copied; frozen ones are shared. So with an adapter of peft the critic has an adapter of its own on the one base
    model that is in memory, and without one it is a second model of the policy's size.

    Heads start at 0, in float32: before anything is learnt every value is 0, and no randomness is used.

    Args:
        policy: a causal language model of transformers, or one with a peft adapter.
        heads: names of the values.
        autocast: the type of matrix products, where it isn't that of the weights.

    Raises:
        UnusableModelError: a model that doesn't keep its backbone apart from its output head.
    """

    def __init__(self, policy: nn.Module, heads: Sequence[str], autocast: torch.dtype | None = None) -> None:
        super().__init__()
        causal_lm = unwrap(policy)
        backbone = getattr(causal_lm, "base_model", causal_lm)
        if backbone is causal_lm:
            raise UnusableModelError(
                f"{type(causal_lm).__name__} has no base_model apart from its output head, so a critic can't be made "
                "of it: choose a method of credit that needs no values"
            )
        self.backbone = copy_of_trained(backbone)
        self.names, self.autocast = tuple(heads), autocast
        weight = next(self.backbone.parameters())
        with torch.no_grad():
            start = torch.zeros((1, 1), dtype=torch.long, device=weight.device)
            width = self.backbone(input_ids=start, use_cache=False)[0].shape[-1]
        kinds: dict[str, Any] = {"device": weight.device, "dtype": _at_least_float32(weight.dtype)}
        self.heads: Any = nn.utils.skip_init(nn.Linear, width, len(self.names), **kinds)  # type: ignore[no-untyped-call]
        nn.init.zeros_(self.heads.weight)
        nn.init.zeros_(self.heads.bias)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, position_ids: Tensor | None, index: Tensor) -> Tensor:
        """(n, H) values at the places ``index`` (n,) of the flattened (B, L) input."""
        inputs: dict[str, Any] = {"input_ids": input_ids, "attention_mask": attention_mask, "use_cache": False}
        if position_ids is not None:
            inputs["position_ids"] = position_ids
        with self._autocast():
            hidden = self.backbone(**inputs)[0].flatten(0, 1).index_select(0, index)
        with torch.autocast(hidden.device.type, enabled=False):
            values: Tensor = self.heads(hidden.to(self.heads.weight.dtype))
            return values

    def inputs(self, batch: MicroBatch) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """What :meth:`forward` takes, of a micro-batch."""
        return inputs_of(batch, self.backbone, self.autocast)

    def _autocast(self) -> AbstractContextManager[Any]:
        kind = self.heads.weight.device.type
        return nullcontext() if self.autocast is None else torch.autocast(kind, dtype=self.autocast)


def _at_least_float32(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32
