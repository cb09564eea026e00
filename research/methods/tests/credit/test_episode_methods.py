"""Methods that give an episode one advantage, against figures worked out by hand."""

import math

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError
from agents.msgrpo.credit import METHODS
from tests.agents.msgrpo.credit.test_episode_methods import of_returns
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)


def test_riskpo():
    """Scores 0, 2, 4 with lo = 1 and hi = 3 so far.

    The quantiles move first: a third of the scores is below 1, two thirds below 3, so
    lo = 1 + 0.1 (0.2 - 1/3) = 0.98667 and hi = 3 + 0.1 (0.9 - 2/3) = 3.02333.
    Score 0: tail = -0.98667 / 0.2 = -4.93333, middle = (0.98667 - 3.02333) / 0.7 = -2.90952, mixed
    (1.5 * -4.93333 - 2.90952) / 2.5 = -4.12381. Score 2: tail 0, middle (2 - 3.02333) / 0.7 = -1.46190, mixed
    -0.58476. Score 4: middle (4 - lo) - (4 - hi) + lo - hi = 0. The standard deviation is 2, of scores and of returns
    alike, and divides once.
    """
    method = METHODS.make("riskpo", {"groups_per_bundle": 1})
    method.load_state_dict({"quantiles": [1.0, 3.0]})  # type: ignore[attr-defined]
    credit = method.assign(of_returns([0, 2, 4]), RNG)
    found = [float(each[0]) for each in credit.advantages]
    np.testing.assert_allclose(found, [-4.1238095 / 2, -0.5847619 / 2, 0], atol=1e-7)
    assert credit.metrics == pytest.approx({"riskpo_low": 0.9866667, "riskpo_high": 3.0233333})


def test_riskpo_begins_with_the_quantiles_of_its_first_batch():
    """Of 0, 2, 4: 0.2 of the way is 0.4 of the first gap, 0.9 of it is 0.8 of the second one."""
    credit = METHODS.make("riskpo", {"groups_per_bundle": 1}).assign(of_returns([0, 2, 4]), RNG)
    assert credit.metrics == pytest.approx({"riskpo_low": 0.8, "riskpo_high": 3.6})


def test_riskpo_bundles():
    """Groups a, b, c of 2, 3 and 2 episodes in bundles of 2: a and b have the sums 0 + 1 = 1 and 2 + 3 = 5.

    c is alone in its bundle, so its returns 1 and 2 count as 2 and 4. lo = 1 and hi = 5 stay where they are at a rate
    that is next to nothing. Sum 1: (1 - 5) / 0.7 / 2.5 = -2.285714; sum 5: 0; 2 gives -1.714286, 4 gives -0.571429.
    Then divided by the sums' std (4 / sqrt 2 and 2 / sqrt 2), and in the bundle of two by the group's own: a sqrt 2,
    b 2.
    """
    given = of_returns([0, 2, 1, 3, 5, 1, 2], "aabbbcc")
    method = METHODS.make("riskpo", {"groups_per_bundle": 2, "rate": 1e-12})
    method.load_state_dict({"quantiles": [1.0, 5.0]})  # type: ignore[attr-defined]
    found = [float(each[0]) for each in method.assign(given, RNG).advantages]
    wide = 4 / math.sqrt(2)
    expected = [-2.285714 / wide / math.sqrt(2), 0, -2.285714 / wide / 2, 0, 0]
    np.testing.assert_allclose(found, [*expected, -1.714286 / math.sqrt(2), -0.571429 / math.sqrt(2)], atol=1e-6)


@pytest.mark.parametrize(("size", "least", "most"), [(1, 0.0, 0.05), (5, 0.85, 1.0)])
def test_riskpo_needs_bundles_where_few_succeed(size, least, most):
    """Eight groups of sixteen of which 5% succeed: a first batch without any advantage teaches nothing."""
    rng, groups = np.random.default_rng(0), "".join(name * 16 for name in "abcdefgh")
    batches = [of_returns((rng.random(128) < 0.05).astype(float).tolist(), groups) for _ in range(100)]
    taught = [
        any(each.any() for each in METHODS.make("riskpo", {"groups_per_bundle": size}).assign(one, rng).advantages)
        for one in batches
    ]
    assert least <= np.mean(taught) <= most


@pytest.mark.parametrize(("size", "least", "most"), [(1, 0.95, 1.0), (5, 0.3, 0.6)])
def test_riskpo_blurs_an_episode_with_its_bundle(size, least, most):
    """Half of the episodes succeed: advantages follow returns, in a bundle of five those of four others too."""
    rng, method = np.random.default_rng(0), METHODS.make("riskpo", {"groups_per_bundle": size})
    returns, groups = (rng.random((20, 80)) < 0.5).astype(float), "".join(name * 8 for name in "abcdefghij")
    found = [[each[0] for each in method.assign(of_returns(one.tolist(), groups), rng).advantages] for one in returns]
    assert least < np.corrcoef(returns.ravel(), np.ravel(found))[0, 1] < most


def test_riskpo_never_praises():
    method, rng = METHODS.make("riskpo"), np.random.default_rng(3)
    for _ in range(20):
        given = of_returns(rng.choice([0.0, 0.5, 1.0, 2.0], size=12).tolist(), "aaaabbbbcccc")
        credit = method.assign(given, rng)
        assert max(float(each[0]) for each in credit.advantages) <= 0
        assert np.isfinite(credit.draw_weight).all()


def test_riskpo_refuses_levels_in_the_wrong_order():
    with pytest.raises(ConfigError, match=r"\[credit.riskpo\] low = 0.9 is not below high = 0.5"):
        METHODS.make("riskpo", {"low": 0.9, "high": 0.5})


def test_rae_has_a_mean_for_every_seat():
    """Means begin at 0 and move by a twentieth after each episode: first seat 0, 0.05, 0.0475; second 0, -0.05.

    Another game's first seat is another seat.
    """
    tic, kuhn = EpisodeTask.of("tic-tac-toe", 0), EpisodeTask.of("kuhn-poker", 0)
    plays = [
        ("player_0", tic, 1.0), ("player_1", tic, -1.0), ("player_0", tic, 0.0), ("player_0", kuhn, 2.0),
        ("player_1", tic, 1.0), ("player_0", tic, 1.0),
    ]  # fmt: skip
    given = batch(*[trajectory([value], player=player, task=task) for player, task, value in plays])
    method = METHODS.make("rae")
    found = method.assign(given, RNG)
    np.testing.assert_allclose([each[0] for each in found.advantages], [1, -1, -0.05, 2, 1.05, 1 - 0.0475])
    after = {"tic-tac-toe_player_0": 0.95 * 0.0475 + 0.05, "tic-tac-toe_player_1": 0.0025}
    assert found.metrics == pytest.approx(
        {f"baseline_{k}": v for k, v in (after | {"kuhn-poker_player_0": 0.1}).items()}
    )
