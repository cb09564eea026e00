"""Updates of several steps with and without the clip."""

import pytest
import torch

from benchmark.credit.batches import Setting
from benchmark.credit.instrument import Instrument, methods_of
from research.credit.clipping import clipping
from tests.benchmark.credit.helpers import direct_policy
from tests.benchmark.credit.test_instrument import SMALL


@pytest.fixture(scope="module")
def measured():
    torch.set_num_threads(1)
    setting = Setting(SMALL, groups=1, group_size=6)
    instrument = Instrument(direct_policy(), setting, batches=2)
    return instrument, instrument.assign("msgrpo", methods_of(["msgrpo"], setting)["msgrpo"]).credits


@pytest.mark.slow
def test_small_steps_meet_no_clip(measured):
    instrument, credits = measured
    weights = [p.detach().clone() for p in instrument.model.parameters.values()]
    found = clipping(instrument.model, instrument.exact, instrument.batches, credits, passes=2, shift=1e-3)
    assert found.clip_fraction.value == 0
    assert found.difference.value == pytest.approx(0, abs=1e-9)
    # two small steps go the way of the gradient itself
    report = instrument.measure(methods_of(["msgrpo"], instrument.setting))
    assert found.clipped.value == pytest.approx(report["msgrpo"].gradient.cosine.value, abs=0.02)
    for before, after in zip(weights, instrument.model.parameters.values(), strict=True):
        assert torch.equal(before, after)


def test_large_steps_meet_it(measured):
    instrument, credits = measured
    found = clipping(instrument.model, instrument.exact, instrument.batches, credits, passes=2, shift=0.5)
    assert 0 < found.clip_fraction.value < 1
    assert found.difference.value != 0
    assert found.difference.value == pytest.approx(found.clipped.value - found.unclipped.value)


def test_one_step_is_refused(measured):
    instrument, credits = measured
    with pytest.raises(ValueError, match="at least 2 optimiser steps"):
        clipping(instrument.model, instrument.exact, instrument.batches, credits, passes=1)
