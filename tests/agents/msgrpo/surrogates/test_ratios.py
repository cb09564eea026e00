"""The surrogates that differ in what they do with the ratio, against plain loops, on ragged off-policy rows."""

import math

import pytest
import torch

from agents.msgrpo import ConfigError
from agents.msgrpo.surrogates import SURROGATES
from tests.agents.msgrpo.surrogates import formulas
from tests.agents.msgrpo.surrogates.ragged import Row, flat, ragged, through_loss


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("name", "settings", "formula"),
    [
        ("ppo", {"clip_high": 0.28}, formulas.ppo(0.2, 0.28)),
        ("ppo", {"dual_clip": 1.3}, formulas.ppo(dual=1.3)),
        ("cispo", {"clip_high": 0.28}, formulas.cispo(0.8, 1.28)),
        ("cispo", {"cap": 1.5}, formulas.cispo(0.0, 1.5)),
    ],
)
def test_token_surrogates(name, settings, formula, seed):
    rows = ragged(seed, per_token=seed % 2 == 1)
    got = through_loss(SURROGATES.make(name, settings), rows, denominator=3.0)
    loss, gradient = formula(rows, {})
    assert got.loss == pytest.approx(loss / 3, rel=1e-12)
    assert torch.allclose(flat(got.gradient), flat(gradient) / 3, atol=1e-8)


def test_a_dual_clip_bounds_what_a_negative_advantage_costs():
    """By hand, ratios 4, 2 and 4: the first is cut at 3, where its gradient ends; a positive advantage is as ever."""
    row = Row([math.log(0.8), math.log(0.8), math.log(0.8)], [math.log(0.2), math.log(0.4), math.log(0.2)], [0.0] * 3,
              [-2.0, -2.0, 5.0])  # fmt: skip
    got = through_loss(SURROGATES.make("ppo", {"dual_clip": 3.0}), [row])
    assert got.loss == pytest.approx(3 * 2 + 2 * 2 - 1.2 * 5)
    assert got.gradient[0] == pytest.approx([0.0, 2 * 2, 0.0])
    assert (got.sums["clipped_low"], got.sums["clipped_high"]) == (0, 2)
    unbounded = through_loss(SURROGATES.make("ppo"), [row])
    assert unbounded.loss == pytest.approx(4 * 2 + 2 * 2 - 1.2 * 5)
    assert unbounded.gradient[0] == pytest.approx([4 * 2, 2 * 2, 0.0])


@pytest.mark.parametrize("seed", range(4))
def test_gspo_clips_whole_responses(seed):
    """With its own normaliser, the mean of each response, it is the paper's sequence objective."""
    rows = ragged(seed)
    surrogate = SURROGATES.make("gspo", {"clip_low": 0.05, "clip_high": 0.08})
    weights = [1 / len(row.logp) for row in rows]
    got = through_loss(surrogate, rows, denominator=len(rows), row_weights=weights)
    sequences = [row._replace(advantages=[row.advantages[0] / len(row.logp)] * len(row.logp)) for row in rows]
    loss, gradient = formulas.gspo(0.05, 0.08)(sequences, {})
    assert got.loss == pytest.approx(loss / len(rows), rel=1e-12)
    assert torch.allclose(flat(got.gradient), flat(gradient) / len(rows), atol=1e-8)
    whole = [[g == 0 for g in row] for row in got.gradient]
    assert all(len(set(row)) == 1 for row in whole)  # a response is clipped as a whole or not at all
    assert 0 < sum(row[0] for row in whole) < len(rows)
    assert got.sums["clipped_low"] + got.sums["clipped_high"] == sum(map(sum, whole))


def test_gspo_takes_an_advantage_for_every_token():
    """By hand: log s = (0.3 - 0.1) / 2 = 0.1, s = 1.10517; above 1 + 0.05 a positive advantage is clipped, and
    a negative one keeps the gradient ``-s A`` at its token."""
    row = Row([-0.7, -1.1], [-1.0, -1.0], [0.0, 0.0], [2.0, -3.0])
    got = through_loss(SURROGATES.make("gspo", {"clip_low": 0.05, "clip_high": 0.05}), [row])
    assert got.loss == pytest.approx(-1.05 * 2 + math.exp(0.1) * 3)
    assert got.gradient[0] == pytest.approx([0.0, 3 * math.exp(0.1)])
    assert (got.sums["clipped_low"], got.sums["clipped_high"]) == (0, 1)


@pytest.mark.parametrize("cap", [None, 1.5])
def test_cispo_keeps_every_gradient_and_its_log_counts_weights(cap):
    rows = ragged(3, per_token=True)
    got = through_loss(SURROGATES.make("cispo", {} if cap is None else {"cap": cap}), rows)
    ratios = [math.exp(new - old) for row in rows for new, old in zip(row.logp, row.old, strict=True)]
    low, high = (0.8, 1.2) if cap is None else (0.0, cap)
    assert got.sums["clipped_low"] == sum(ratio < low for ratio in ratios)
    assert got.sums["clipped_high"] == sum(ratio > high for ratio in ratios) > 0
    assert all(g != 0 for row in got.gradient for g in row)


def test_settings_are_checked():
    with pytest.raises(ConfigError, match=r"\[surrogate.cispo\] cap must be a number above 0, got -1"):
        SURROGATES.make("cispo", {"cap": -1.0})
    with pytest.raises(ConfigError, match=r"\[surrogate.ppo\] dual_clip must be .*1.*, got 0.5"):
        SURROGATES.make("ppo", {"dual_clip": 0.5})
    with pytest.raises(ConfigError, match="did you mean 'gspo'"):
        SURROGATES.make("gsp0")


# ---------------------------------------------------------------- every registered surrogate


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
