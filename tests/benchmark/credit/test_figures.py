"""The figures of credit by hand: agreement of signs, and what a gradient's variance is."""

import numpy as np
import pytest
import torch

from agents.msgrpo.credit import Batch, Credit, Trajectory
from benchmark.credit.fidelity import compare, fidelity
from benchmark.credit.gradients.quality import BatchGradient, quality


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


def test_a_gradients_variance_is_that_around_its_mean_by_its_means_square():
    rng = np.random.default_rng(0)
    mean, noise = np.array([3.0, 4.0, 0.0]), 2.0
    vectors = mean + noise * rng.standard_normal((400, 3))
    batches = [BatchGradient(torch.tensor(each, dtype=torch.float32), float(each @ mean), 1.0, 1.0) for each in vectors]
    found = quality(batches, float(np.linalg.norm(mean)))
    assert found.variance.value == pytest.approx(3 * noise**2 / 25, rel=0.2)
    assert found.bias_cosine.value == pytest.approx(1.0, abs=0.02)
