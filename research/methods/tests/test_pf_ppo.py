"""PF-PPO on returns written down by hand."""

import numpy as np
import pytest

from agents.msgrpo.credit import Batch, Credit
from agents.msgrpo.draws import DRAWS
from tests.agents.msgrpo.hand_made import batch, trajectory

RETURNS = [2.0, -1.0, 0.0, 2.0, 0.5]


PLAYED: Batch = batch(*(trajectory([value]) for value in RETURNS))


SOME = Credit.of([np.ones(1)] * 5)


@pytest.mark.parametrize(
    ("settings", "weights"),
    [
        ({}, [4.0, 1.0, 0.0, 4.0, 0.25]),  # |R|^2
        ({"power": 1.0}, [2.0, 1.0, 0.0, 2.0, 0.5]),
        ({"method": "max_min"}, [1.0, 1.0, 0.0, 1.0, 0.0]),
        ({"method": "max_random"}, [0.4, 0.1, 0.1, 0.4, 0.1]),
    ],
)
def test_pf_ppo_weighs_by_returns(settings, weights):
    rule, n = DRAWS.make("pf_ppo", settings), 1_500
    counts, rng = np.zeros(5), np.random.default_rng(4)
    for _ in range(n):
        drawn = rule.draw(PLAYED, SOME, 2, rng)
        assert len(drawn.indices) == 5  # N of N, whatever episodes_drawn says
        assert (drawn.scale == 1).all()
        counts += np.bincount(drawn.indices, minlength=5)
    exact = (np.array(weights) + 1e-8) / (np.array(weights) + 1e-8).sum()
    assert (np.abs(counts / (5 * n) - exact) < 4.5 * np.sqrt(exact * (1 - exact) / (5 * n)) + 1e-6).all()


def test_pf_ppo_of_worthless_episodes_draws_them_evenly():
    """All returns 0: only the 1e-8 is left; and resample_all = false draws episodes_drawn of them."""
    zeros = batch(*(trajectory([0.0]) for _ in range(4)))
    rule = DRAWS.make("pf_ppo", {"resample_all": False})
    rng, counts = np.random.default_rng(5), np.zeros(4)
    for _ in range(2_000):
        drawn = rule.draw(zeros, Credit.of([np.ones(1)] * 4), 2, rng)
        assert len(drawn.indices) == 2
        counts += np.bincount(drawn.indices, minlength=4)
    assert (np.abs(counts / 4_000 - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / 4_000)).all()
