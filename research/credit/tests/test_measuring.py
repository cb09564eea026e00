"""Draw rules on a small game, against both references."""

import pytest

from research.credit.instrument.batches import Setting
from research.credit.instrument.draws import compare_draws
from research.credit.instrument.instrument import Instrument, methods_of
from research.credit.measuring import gradients_of_others, ready_to_draw
from research.credit.tests.helpers import direct_policy
from research.credit.tests.test_instrument import SMALL


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["exact", "others"])
def test_rules_are_compared_by_the_same_episodes(reference):
    setting = Setting(SMALL, groups=2, group_size=32)
    instrument = Instrument(direct_policy(), setting, batches=4)
    credits = instrument.assign("msgrpo", methods_of(["msgrpo"], setting)["msgrpo"]).credits
    model, exact = instrument.model, instrument.exact
    assert model is not None
    assert exact is not None
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
