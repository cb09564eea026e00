"""SAPO and MinPRO against plain loops, on ragged off-policy rows."""

import math

import pytest

from agents.msgrpo.surrogates import SURROGATES
from research.methods.tests import formulas
from tests.agents.msgrpo.surrogates import test_ratios
from tests.agents.msgrpo.surrogates.ragged import Row, through_loss


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("name", "settings", "formula"),
    [
        ("sapo", {}, formulas.sapo()),
        ("sapo", {"tau_positive": 2.0, "tau_negative": 0.5}, formulas.sapo(2.0, 0.5)),
        ("minpro", {}, formulas.minpro()),
        ("minpro", {"clip_low": 0.3, "clip_high": 0.28}, formulas.minpro(0.7, 1.28)),
    ],
)
def test_token_surrogates(name, settings, formula, seed):
    test_ratios.test_token_surrogates(name, settings, formula, seed)


@pytest.mark.parametrize("name", ["sapo", "minpro"])
def test_padded_rows_are_the_same_as_flat_ones(name):
    test_ratios.test_padded_rows_are_the_same_as_flat_ones(name)


def test_minpro_by_hand():
    """Ratios 0.5, 2, 1.5 are multiplied by 1, 0.5, min(0.5, 2): 0.5, 1, 0.75, of which two are below 0.8."""
    row = Row([math.log(0.5), math.log(2.0), math.log(1.5)], [0.0, 0.0, 0.0], [0.0] * 3, [1.0, 1.0, -2.0])
    got = through_loss(SURROGATES.make("minpro"), [row])
    assert got.gradient[0] == pytest.approx([-0.8, -1.0, 1.6])
    assert got.loss == pytest.approx(-(0.8 * math.log(0.5) + math.log(2.0) - 1.6 * math.log(1.5)))
    assert (got.sums["clipped_low"], got.sums["clipped_high"]) == (2, 0)
