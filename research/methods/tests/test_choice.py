"""Credit on the tokens of the choice alone, by hand and over base methods of both kinds."""

from dataclasses import replace

import numpy as np
import pytest

from agents.msgrpo import ConfigError
from agents.msgrpo.credit import METHODS, Batch, Credit, Segment, register
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)
PARTS = (Segment("think", 0, 3), Segment("plan", 3, 4), Segment("action", 4, 6))


def spoken() -> Batch:
    """Two episodes of a group that return 1 and 0: z-values of 1/sqrt(2) and -1/sqrt(2)."""
    won, lost = trajectory([0.0, 1.0], "AB"), trajectory([0.0], "A")
    return batch(
        replace(won, response_ids=((1,) * 7, (1,) * 4), segments=(PARTS, (Segment("action", 1, 3),))),
        replace(lost, response_ids=((1,) * 3,), segments=((Segment("think", 0, 3),),)),
    )


def test_only_the_tokens_of_the_named_parts_have_advantages():
    credit = METHODS.make("choice").assign(spoken(), RNG)
    a = np.sqrt(0.5)
    np.testing.assert_allclose(credit.advantages[0][0], [0, 0, 0, a, a, a, 0], rtol=1e-5)
    np.testing.assert_allclose(credit.advantages[0][1], [0, a, a, 0], rtol=1e-5)
    # nothing was chosen in the form that is asked for, and that is what the update has to be about
    np.testing.assert_allclose(credit.advantages[1][0], [-a, -a, -a], rtol=1e-5)
    np.testing.assert_allclose(credit.draw_weight, [a, a], rtol=1e-5)  # the base method's own


def test_the_parts_can_be_chosen():
    credit = METHODS.make("choice", {"credited": ("action",)}).assign(spoken(), RNG)
    assert np.flatnonzero(credit.advantages[0][0]).tolist() == [4, 5]
    with pytest.raises(ConfigError, match="nothing would be learnt"):
        METHODS.make("choice", {"credited": ()})
    with pytest.raises(ConfigError, match="another method"):
        METHODS.make("choice", {"base": "choice"})


def test_a_base_method_that_tells_tokens_apart_keeps_its_own_where_something_was_chosen():
    @register("counting")
    class Counting:
        needs = frozenset({"old_logprobs"})

        def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
            return Credit.of([[np.arange(1.0, len(ids) + 1) for ids in t.response_ids] for t in batch.trajectories])

    method = METHODS.make("choice", {"base": "counting"})
    assert method.needs == {"old_logprobs", "segments"}
    credit = method.assign(spoken(), RNG)
    assert credit.advantages[0][0].tolist() == [0, 0, 0, 4, 5, 6, 0]
