"""The figures of credit: by hand, and the correlation of expected advantages, told from few batches."""

import numpy as np
import pytest
import torch

from agents import load_agent
from agents.msgrpo.credit import Batch, Credit, Trajectory
from research.credit.instrument.batches import Setting
from research.credit.instrument.fidelity import BatchGradient, Compared, compare, fidelity, quality
from research.credit.instrument.instrument import Instrument, methods_of
from textgames import SCENARIOS


class OneEpisode:
    """Two batches of an episode each, and the true advantages of its four steps, of which one is 0."""

    batches = tuple(Batch([Trajectory(group=group, rewards=np.zeros(4))]) for group in "ab")

    def advantages(self, trajectory):
        return np.array([1.0, -1.0, 2.0, 0.0])

    def cells(self, trajectory):
        return [(step, 0, 0) for step in range(4)]


@pytest.mark.parametrize(("assigned", "agreement"), [([1, -1, 1, 1], 1.0), ([0, 0, 0, 0], 0.5), ([-1, 1, -1, 0], 0.0)])
def test_credit_of_nothing_agrees_with_neither_sign(assigned, agreement):
    truth = OneEpisode()
    credits = [Credit.of([np.array(assigned, dtype=float)]) for _ in truth.batches]
    found = fidelity(compare(truth.batches, credits, truth))
    assert found.sign_agreement.value == pytest.approx(agreement)
    assert found.mean_sign_agreement.value == pytest.approx(agreement)


def gradients(mean, noise, batches, rng):
    """Batches' gradients with the exact one along the first axis, noise of several directions around a mean."""
    scale = noise * np.array([0.3, 1.0, 0.8, 0.6, 0.4, 0.3, 0.2])
    vectors = (np.array([*mean, 0, 0, 0, 0, 0]) + scale * rng.standard_normal((batches, 7))).astype(np.float32)
    return [BatchGradient(torch.tensor(each), float(each[0]), 1.0, 1.0) for each in vectors]


def test_the_bias_and_the_variance_of_two_batches_by_hand():
    """Products of the pair: along g 2 * 1, in all 2 * 1 + 1 * 1, so the squared cosine is 2 / 3; across it is 1.

    The squared lengths are 5 and 2: 7/2 on average, and so 1/6 more than 3."""
    found = quality([BatchGradient(torch.tensor([x, 1.0]), x, 1.0, 1.0) for x in (2.0, 1.0)], 1.0)
    assert found.bias.value == pytest.approx(np.sqrt(2 * 3 / (9 + 2 * 1 / 2)))
    assert found.variance.value == pytest.approx(1 / 6)
    nothing = quality([BatchGradient(torch.zeros(2), 0.0, 1.0, 1.0)] * 3, 1.0)
    assert nothing.bias.to_json() == dict.fromkeys(("value", "low", "high"))


@pytest.mark.parametrize(("mean", "bias"), [((1.0, 0.0), 1.0), ((-0.7, 0.714), -0.7)])
def test_bias_is_estimated_on_both_sides_of_the_truth(mean, bias):
    rng = np.random.default_rng(1)
    found = [quality(gradients(mean, 0.8, 16, rng), 1.0).bias for _ in range(150)]
    values = np.array([each.value for each in found])
    assert values.mean() == pytest.approx(bias, abs=0.02)
    assert 0.25 < np.mean(values > bias) < 0.75  # without being cut off at 1
    assert np.mean([each.low <= bias <= each.high for each in found]) >= 0.88


def test_gradients_without_a_mean_have_a_bias_of_about_0_and_say_that_it_isnt_known():
    rng = np.random.default_rng(2)
    found = [quality(gradients((0.0, 0.0), 1.0, 16, rng), 1.0).bias for _ in range(150)]
    assert np.mean([each.value for each in found]) == pytest.approx(0, abs=0.1)
    assert max(abs(each.value) for each in found) < 1.5
    assert np.mean([each.low <= 0 <= each.high for each in found]) >= 0.95
    assert np.median([each.high - each.low for each in found]) > 1


def test_an_exact_gradient_that_was_estimated_widens_the_interval_of_the_bias():
    batches = gradients((1.0, 0.0), 0.5, 16, np.random.default_rng(3))
    sure, unsure = quality(batches, 1.0).bias, quality(batches, 1.0, reliability=0.9).bias
    assert unsure.value == sure.value
    assert (unsure.low**2, unsure.high**2) == pytest.approx((0.9 * sure.low**2, 1.1 * sure.high**2))


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
