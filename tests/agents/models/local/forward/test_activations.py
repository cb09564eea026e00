"""Hand-written gradients against PyTorch's own, and what they keep in memory."""

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
def test_values_and_gradients_equal_pytorchs(name):
    ours, theirs, shape = PAIRS[name]
    rng = torch.Generator().manual_seed(0)
    inputs = [torch.randn(size, generator=rng).double().requires_grad_() for size in ((9, 6), shape)]
    slope = torch.randn(9, 6, generator=rng).double()
    got, wanted = ours(*inputs), theirs(*inputs)
    assert torch.equal(got, wanted)
    gradients = [torch.autograd.grad((out * slope).sum(), inputs) for out in (got, wanted)]
    for mine, right in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, right, atol=1e-12, rtol=1e-12)


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
