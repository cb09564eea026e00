"""Gradients of what draw rules draw, on inner products that are known by hand and on a small game."""

import numpy as np
import pytest

from agents.msgrpo.credit import Batch, Credit, Trajectory
from research.credit.instrument.batches import Setting
from research.credit.instrument.draws import DrawnBatch, compare_draws
from research.credit.instrument.gradients.episodes import EpisodeGradients
from research.credit.instrument.instrument import Instrument, methods_of
from research.credit.measuring import gradients_of_others, ready_to_draw
from research.credit.tests.helpers import direct_policy
from research.credit.tests.test_instrument import SMALL


def by_hand() -> DrawnBatch:
    """Four episodes whose gradients are 2x, 0, x and y, in two dimensions; the reference is x."""
    vectors = np.array([[2.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    trajectories = [Trajectory(group="a", rewards=np.zeros(1)) for _ in vectors]
    credit = Credit(np.array([2.0, 0.0, 1.0, 1.0]), [np.zeros(1)] * 4)
    gradients = EpisodeGradients(vectors @ vectors.T, vectors @ np.array([[1.0], [0.0]]))
    return DrawnBatch(Batch(trajectories), credit, gradients, np.array([10.0, 20.0, 30.0, 40.0]))


def test_all_episodes_have_the_cosine_of_their_sum():
    """The sum is 3x + y."""
    ((off,),) = [compare_draws([by_hand()] * 2, ["off"], [2], [1.0, 1.0])]
    assert off.cosine.value == pytest.approx(3 / np.sqrt(10))
    assert off.mean_cosine.value == pytest.approx(3 / np.sqrt(10))
    assert (off.drawn, off.tokens, off.variance.value, off.empty) == (4, 100, 0, 0)
    assert off.effective_episodes == pytest.approx(16 / 6)
    assert off.cosine_per_kilotoken.value == pytest.approx(off.cosine.value * 10)


@pytest.mark.slow
def test_one_drawn_episode_is_right_as_often_as_its_rule_draws_it():
    """Of one draw the cosine is 1 for the first and third episode and 0 for the others."""
    results = compare_draws([by_hand()] * 4, ["aaw", "uniform", "uniform_nonzero"], [1], [1.0] * 4, repeats=500)
    expected = {"aaw": 3 / 4, "uniform": 2 / 4, "uniform_nonzero": 2 / 3}
    for result in results:
        assert result.cosine.value == pytest.approx(expected[result.rule], abs=0.04)
    aaw, uniform, _ = results
    assert aaw.minus_uniform.value == pytest.approx(aaw.cosine.value - uniform.cosine.value)
    assert uniform.minus_uniform.value == 0
    # the mean update of uniform draws is that of all episodes, x and y in the proportion 3 to 1
    assert uniform.mean_cosine.value == pytest.approx(3 / np.sqrt(10), abs=0.01)
    # E |f|^2 - |E f|^2 = (4 + 1 + 1) / 4 - 10 / 16 = 14 / 16, relative to 10 / 16
    assert uniform.variance.value == pytest.approx(1.4, rel=0.1)
    assert uniform.empty == 0


def test_what_is_left_of_gradients_that_cancel_is_no_direction():
    """Two episodes did the same; their float32 gradients differ by rounding, and their advantages sum to zero."""
    vectors = np.array([[1.0, 0.0], [1.0, 1e-8]])
    gradients = EpisodeGradients(vectors @ vectors.T, vectors @ np.array([[1e-3], [1.0]]))
    assert gradients.cosine(np.array([1.0, -1.0]), 0, 1.0) == 0
    assert gradients.square(np.array([1.0, -1.0])) == 0
    assert gradients.cosine(np.array([1.0, -0.5]), 0, 1.0) == pytest.approx(1e-3, rel=1e-3)


def test_a_batch_without_any_advantage_gives_no_update():
    nothing = by_hand()._replace(credit=Credit(np.zeros(4), [np.zeros(1)] * 4))
    (aaw,) = compare_draws([nothing, nothing], ["aaw"], [2], [1.0, 1.0])
    assert (aaw.cosine.value, aaw.empty, aaw.tokens) == (0, 1, 0)
    assert aaw.cosine_per_kilotoken.to_json()["value"] is None


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["exact", "others"])
def test_rules_are_compared_by_the_same_episodes(reference):
    setting = Setting(SMALL, groups=2, group_size=32)
    instrument = Instrument(direct_policy(), setting, batches=4)
    credits = instrument.assign("msgrpo", methods_of(["msgrpo"], setting)["msgrpo"]).credits
    model, exact = instrument.model, instrument.exact
    others = gradients_of_others(model, instrument.batches, credits)
    drawn = ready_to_draw(model, instrument.batches, credits, exact=exact.vector, others=others)
    norms = {"exact": [float(exact.vector.norm())] * 4, "others": [float(each.norm()) for each in others]}
    found = compare_draws(
        drawn, ("aaw", "uniform", "off"), (2, 16), norms[reference], reference=list(norms).index(reference)
    )
    results = {(each.rule, each.m): each for each in found}
    whole = results["off", 16]
    assert results["off", 2].cosine == whole.cosine
    assert results["uniform", 2].cosine.value < results["uniform", 16].cosine.value < whole.cosine.value
    assert results["aaw", 2].tokens < results["aaw", 16].tokens < whole.tokens
