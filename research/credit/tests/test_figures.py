"""The figures of credit by hand: agreement of signs, and what a gradient's variance is."""

import numpy as np
import pytest
import torch

from agents.msgrpo.credit import Batch, Credit, Trajectory
from research.credit.instrument.fidelity import compare, fidelity
from research.credit.instrument.gradients.quality import BatchGradient, quality


class OneEpisode:
    """Two batches of an episode each, and the true advantages of its four steps, of which one is 0."""

    batches = tuple(Batch([Trajectory(group=group, rewards=np.zeros(4))]) for group in "ab")

    def advantages(self, trajectory):
        return np.array([1.0, -1.0, 2.0, 0.0])

    def cells(self, trajectory):
        return [(step, 0, 0) for step in range(4)]


@pytest.mark.parametrize(
    ("assigned", "agreement"), [([1, -1, 1, 1], 1.0), ([0, 0, 0, 0], 0.5), ([1, 1, 0, 9], 0.5), ([-1, 1, -1, 0], 0.0)]
)
def test_credit_of_nothing_agrees_with_neither_sign(assigned, agreement):
    truth = OneEpisode()
    credits = [Credit.of([np.array(assigned, dtype=float)]) for _ in truth.batches]
    found = fidelity(compare(truth.batches, credits, truth))
    assert found.sign_agreement.value == pytest.approx(agreement)
    assert found.mean_sign_agreement.value == pytest.approx(agreement)


@pytest.mark.slow
def test_a_gradients_variance_is_that_around_its_mean_by_its_means_square():
    rng = np.random.default_rng(0)
    mean, noise = np.array([3.0, 4.0, 0.0]), 2.0
    vectors = mean + noise * rng.standard_normal((400, 3))
    batches = [BatchGradient(torch.tensor(each, dtype=torch.float32), float(each @ mean), 1.0, 1.0) for each in vectors]
    found = quality(batches, float(np.linalg.norm(mean)))
    assert found.variance.value == pytest.approx(3 * noise**2 / 25, rel=0.2)


def gradients(mean, noise, batches, rng):
    """Batches' gradients with the exact one along the first axis, noise of several directions around a mean."""
    scale = noise * np.array([0.3, 1.0, 0.8, 0.6, 0.4, 0.3, 0.2])
    vectors = (np.array([*mean, 0, 0, 0, 0, 0]) + scale * rng.standard_normal((batches, 7))).astype(np.float32)
    return [BatchGradient(torch.tensor(each), float(each[0]), 1.0, 1.0) for each in vectors]


def test_the_bias_of_two_batches_by_hand():
    """Products of the pair: along g 2 * 1, in all 2 * 1 + 1 * 1, so the squared cosine is 2 / 3; across it is 1."""
    batches = [BatchGradient(torch.tensor([x, 1.0]), x, 1.0, 1.0) for x in (2.0, 1.0)]
    found = quality(batches, 1.0).bias
    assert found.value == pytest.approx(np.sqrt(2 * 3 / (9 + 2 * 1 / 2)))


@pytest.mark.parametrize(("mean", "bias"), [((1.0, 0.0), 1.0), ((0.7, 0.714), 0.7), ((-0.7, 0.714), -0.7)])
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


def test_no_gradient_at_all_has_no_bias():
    nothing = [BatchGradient(torch.zeros(2), 0.0, 1.0, 1.0)] * 3
    assert quality(nothing, 1.0).bias.to_json() == dict.fromkeys(("value", "low", "high"))
