"""What is true of every registered surrogate, and of those added later."""

import subprocess
import sys

import pytest
import torch

from agents.msgrpo.surrogates import SURROGATES
from tests.agents.msgrpo.surrogates.ragged import flat, ragged, through_loss

PLAIN = [name for name in SURROGATES.names if not SURROGATES.make(name).needs and name not in ("nft", "p3o", "llds")]
"""They need nothing but tokens; the others are told of rows as well."""


@pytest.mark.parametrize("name", PLAIN)
def test_rows_do_not_look_at_each_other(name):
    """So micro-batches may hold any of them: each row alone has the gradient that it has among the others."""
    rows, surrogate = ragged(8, per_token=True), SURROGATES.make(name)
    together = through_loss(surrogate, rows)
    for row, gradient in zip(rows, together.gradient, strict=True):
        assert through_loss(surrogate, [row]).gradient[0] == pytest.approx(gradient, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("name", PLAIN)
def test_tokens_without_an_advantage_have_no_gradient(name):
    rows = [row._replace(advantages=[0.0] * len(row.logp)) for row in ragged(9)]
    got = through_loss(SURROGATES.make(name), rows)
    assert not flat(got.gradient).any()
    assert got.sums["clipped_low"] == got.sums["clipped_high"] == 0


@pytest.mark.parametrize("name", PLAIN)
def test_large_ratios_are_finite_in_float32(name):
    """A token that was certain and isn't any more, and the reverse: 30 nats either way."""
    from agents.msgrpo.learner.loss import loss_of
    from agents.msgrpo.surrogates.tokens import Tokens

    logp = torch.tensor([-30.0, -0.1, -0.1], requires_grad=True)
    old = torch.tensor([-0.1, -30.0, -0.1])
    for sign in (1.0, -1.0):
        told = Tokens(logp, old, torch.full((3,), sign), torch.tensor([2, 1]))
        result = loss_of(told, SURROGATES.make(name), 3.0)
        result.loss.backward()
        assert logp.grad is not None
        assert torch.isfinite(logp.grad).all()
        assert torch.isfinite(result.loss)


@pytest.mark.slow
def test_the_names_are_known_without_torch():
    code = (
        "import sys, agents.msgrpo; from agents.msgrpo.surrogates import SURROGATES; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
