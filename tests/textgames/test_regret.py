"""Regrets and Hedge, against brute force and the theorem."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

from textgames.solving.regret import external_regret, hedge, hedge_rate, regrets_of_counts, swap_regret

LOSSES = [(3.0, 1.0), (0.0, 10.0), (5.0, 4.0)]


def test_external_regret_by_hand():
    assert external_regret(LOSSES, [0, 1, 0]) == 18 - 8  # always the first would have cost 8
    assert external_regret(LOSSES, [1, 0, 1]) == 5 - 8  # better than any fixed action
    assert external_regret(LOSSES, []) == 0


@pytest.mark.parametrize("seed", range(5))
def test_swap_regret_against_all_functions(seed):
    rng = np.random.default_rng(seed)
    losses, chosen = rng.random((8, 3)).tolist(), rng.integers(3, size=8).tolist()
    paid = sum(losses[t][a] for t, a in enumerate(chosen))
    swapped = [sum(losses[t][f[a]] for t, a in enumerate(chosen)) for f in product(range(3), repeat=3)]
    assert swap_regret(losses, chosen) == pytest.approx(paid - min(swapped))
    assert swap_regret(losses, chosen) >= external_regret(losses, chosen) - 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_regrets_of_counts_are_those_of_the_rounds(seed):
    rng = np.random.default_rng(seed)
    payoffs = rng.integers(-5, 6, (3, 3)).astype(float).tolist()
    own, other = rng.integers(3, size=12).tolist(), rng.integers(3, size=12).tolist()
    losses = [[-payoffs[action][theirs] for action in range(3)] for theirs in other]
    found = regrets_of_counts(payoffs, Counter(zip(own, other, strict=True)))
    assert found == (external_regret(losses, own), swap_regret(losses, own))


def test_hedge_by_hand():
    assert hedge((0.0, 0.0, 0.0), 3.0) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert hedge((1.0, 2.0), math.log(3)) == pytest.approx((0.75, 0.25))
    assert hedge((1e5, 1e5 + 1), math.log(3)) == pytest.approx((0.75, 0.25))  # no overflow, no 0/0
    assert hedge_rate(2, 25, 10.0) == pytest.approx(math.sqrt(8 * math.log(2) / 25) / 10)


@pytest.mark.parametrize("pattern", ["random", "adaptive"])
def test_hedge_keeps_the_bound_of_its_theorem(pattern):
    rng, rounds = np.random.default_rng(0), 200
    rate, so_far, expected = hedge_rate(3, rounds, 10.0), np.zeros(3), 0.0
    for _ in range(rounds):
        chances = np.array(hedge(so_far.tolist(), rate))
        losses = rng.uniform(0, 10, 3) if pattern == "random" else 10.0 * (chances == chances.max())
        expected += float(chances @ losses)
        so_far += losses
    assert expected - so_far.min() <= 10 * math.sqrt(rounds * math.log(3) / 2)
