"""What hand-written backward passes keep in memory; test_transformers holds their gradients to PyTorch's own."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from agents.models.local.forward.activations import gated_silu, rms_norm

Of = Callable[[Tensor, Tensor], Tensor]
PAIRS: dict[str, tuple[Of, Of, tuple[int, ...]]] = {
    "rms_norm": (lambda x, w: rms_norm(x, w, 1e-5), lambda x, w: F.rms_norm(x, (6,), w, 1e-5), (6,)),
    "gated_silu": (gated_silu, lambda gate, up: F.silu(gate) * up, (9, 6)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_inputs_alone_are_kept(name):
    ours, theirs, shape = PAIRS[name]
    inputs = [torch.randn(size, requires_grad=True) for size in ((9, 6), shape)]
    assert kept_by(ours, inputs) == {x.data_ptr() for x in inputs}
    assert len(kept_by(theirs, inputs)) > 2


def kept_by(function: Of, inputs: list[Tensor]) -> set[int]:
    """Addresses of the tensors that are kept for the backward pass."""
    found = []

    def keep(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        function(*inputs)
    return {tensor.data_ptr() for tensor in found if tensor.dim()}


def test_a_type_that_is_asked_for_is_the_results():
    x, weight = torch.randn(9, 6, requires_grad=True), torch.ones(6)
    for each in (x, x.detach()):
        assert rms_norm(each, weight, 1e-5, torch.bfloat16).dtype == torch.bfloat16
        assert rms_norm(each, weight, 1e-5).dtype == torch.float32
