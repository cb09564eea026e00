"""The correlation of expected advantages: what very many batches would give, told from few."""

import numpy as np
import pytest

from agents import load_agent
from research.credit.instrument.batches import Setting
from research.credit.instrument.fidelity import Compared, compare, fidelity
from research.credit.instrument.instrument import Instrument, methods_of
from textgames import SCENARIOS


@pytest.fixture(scope="module")
def population():
    """A hundred batches of random play in kuhn-poker, whose truth is exact: batches are drawn from these."""
    setting = Setting(SCENARIOS["kuhn-poker"], groups=2, group_size=8)
    instrument = Instrument(load_agent("random"), setting, batches=100, gradient=False)
    credits = instrument.assign("msgrpo", methods_of(["msgrpo"], setting)["msgrpo"]).credits
    return compare(instrument.batches, credits, instrument.truth)


def some(compared, size, rng):
    chosen = rng.integers(len(compared.cells), size=size)
    return fidelity(Compared(compared.parts[chosen], [compared.cells[i] for i in chosen]))


def expected_correlation(compared):
    """That of the population: its own means are the expected advantages."""
    cells = sorted({cell for met in compared.cells for cell in met})
    visits, sums = (
        np.array([sum(met.get(cell, (0, 0, 0))[part] for met in compared.cells) for cell in cells]) for part in (0, 1)
    )
    true = [next(met[cell][2] for met in compared.cells if cell in met) for cell in cells]
    covariance = np.cov(sums / visits, true, aweights=visits)
    return covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])


@pytest.mark.parametrize("size", [4, 16])
def test_the_correlation_of_expected_advantages_does_not_climb_with_the_number_of_batches(population, size):
    rng, expected = np.random.default_rng(size), expected_correlation(population)
    found = [some(population, size, rng).mean_correlation for _ in range(100)]
    assert np.median([each.value for each in found]) == pytest.approx(expected, abs=0.01)
    assert np.mean([each.low <= expected <= each.high for each in found]) >= 0.93


def test_noise_has_a_correlation_of_about_0_and_says_that_it_isnt_known(population):
    """Random numbers in the place of credit: their means have no variance that batches have in common."""
    rng = np.random.default_rng(1)
    cells = [
        {cell: (n, n**0.5 * rng.standard_normal(), y) for cell, (n, _, y) in met.items()} for met in population.cells
    ]
    found = some(Compared(population.parts, cells), 8, rng).mean_correlation
    assert abs(found.value) < 1
    assert found.low <= 0 <= found.high
    assert found.high - found.low > 1


def test_the_truth_itself_has_the_correlation_1_and_one_batch_tells_nothing(population):
    cells = [{cell: (n, n * y, y) for cell, (n, _, y) in met.items()} for met in population.cells]
    exact = fidelity(Compared(population.parts[:5], cells[:5]))
    assert exact.mean_correlation == pytest.approx((1, 1, 1))
    assert exact.mean_sign_agreement == (1.0, None, None)  # depends on the number of batches, so it has no interval
    assert np.isnan(fidelity(Compared(population.parts[:1], cells[:1])).mean_correlation.value)
