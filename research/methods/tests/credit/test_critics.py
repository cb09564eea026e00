"""Credit by values: bi-level GAE and HiPER by hand, and their place among the tokens."""

from typing import Any

import numpy as np
import pytest

from agents.msgrpo.credit import METHODS, Segment
from tests.agents.msgrpo.hand_made import batch, trajectory

RNG = np.random.default_rng(0)


def test_bi_level_gae_by_hand():
    """With 1/2 for all: turns have 1 + 4/2 - 2 = 1 and 3 - 4 = -1, so 3/4 and -1 are their advantages, and 2 + 3/4 and
    3 what their last tokens are paid. In the first turn tokens have 2/2 - 1 = 0 and 2.75 - 2 = 3/4, so 3/16 and 3/4."""
    given = batch(trajectory([1.0, 3.0], tokens=[2, 1], head_values={"token": [np.array([1.0, 2.0]), np.array([4.0])]}))
    settings = {"discount": 0.5, "token_discount": 0.5, "lam": 0.5}
    wanted = np.array([3 / 16, 3 / 4, -1])
    for whiten, scaled in ((False, wanted), (True, (wanted - wanted.mean()) / (wanted.std(ddof=1) + 1e-6))):
        credit: Any = METHODS.make("ppo_bilevel", settings | {"whiten": whiten}).assign(given, RNG)
        assert [len(turn) for turn in credit.advantages[0]] == [2, 1]
        np.testing.assert_allclose(np.concatenate(credit.advantages[0]), scaled)
        np.testing.assert_allclose(np.concatenate(credit.value_targets["token"][0]), np.add(wanted, [1, 2, 4]))


SWITCH = (Segment("switch", 0, 2, "SWITCH"), Segment("subgoal", 2, 4, "the corner"), Segment("action", 4, 6, "up"))
KEEP = (Segment("switch", 0, 2, "KEEP"), Segment("action", 2, 4, "up"))
NOTHING: tuple[Segment, ...] = ()


def z(*values: float) -> list[float]:
    """Standardised with the population's std."""
    return ((np.array(values) - np.mean(values)) / np.std(values)).tolist()


def test_every_token_has_its_level_s_advantage_and_every_head_its_target():
    """Two options of two steps, which pay 1, 1 and 0, 2 once the price of keeping is off; all discounts are 1/2.

    * actions, V_low 1, 2 | 1, 0 and V_high 4 behind the first option: deltas 1, 1 | -1, 2, so 5/4, 1 | -1/2, 2;
    * switches: to go is 1 + 3/2, 1 + 4/2 | 1, 2, less V_term 0, 1 | 2, 3;
    * subgoals: 5/2 - 2 and 1 - 4 = -3, a quarter of the half of which counts for the first.
    """
    low = [np.full(length, 9.0) for length in (7, 4, 7, 3)]  # a SWITCH has a token behind its action's tag
    places = [4, 2, 4, 0]  # behind the subgoal, behind the switch, or at the first token
    for tokens, place, value in zip(low, places, (1.0, 2.0, 1.0, 0.0), strict=True):
        tokens[place] = value
    told = {"low": low, "high": np.array([2.0, 9.0, 4.0, 9.0]), "term": np.arange(4.0)}
    kinds = (SWITCH, KEEP, SWITCH, NOTHING)
    given = batch(trajectory([1.0, 1.25, 0.0, 2.25], tokens=[7, 4, 7, 3], segments=kinds, head_values=told))
    settings = {"discount": 0.5, "lam": 0.5, "lam_options": 0.5, "keep_penalty": 0.25}
    credit: Any = METHODS.make("hiper", settings).assign(given, RNG)
    act, switch, subgoal = z(1.25, 1, -0.5, 2), z(2.5, 2, -1), z(0.125, -3)
    wanted = [
        [switch[0]] * 2 + [subgoal[0]] * 2 + [act[0]] * 3, [switch[1]] * 2 + [act[1]] * 2,
        [switch[2]] * 2 + [subgoal[1]] * 2 + [act[2]] * 3, [act[3]] * 3,
    ]  # fmt: skip
    for got, row in zip(credit.advantages[0], wanted, strict=True):
        np.testing.assert_allclose(got, row, rtol=1e-7)
    for tokens, place, target in zip(credit.value_targets["low"][0], places, (2.25, 3.0, 0.5, 2.0), strict=True):
        assert tokens[place] == pytest.approx(target)
        assert np.isnan(np.delete(tokens, place)).all()
    np.testing.assert_allclose(credit.value_targets["high"][0], [2.125, np.nan, 1.0, np.nan])
    np.testing.assert_allclose(credit.value_targets["term"][0], [2.5, 3.0, 1.0, 2.0])
    assert credit.metrics == {"switch_rate": 1 / 3}  # of the steps after the first one


def test_a_subgoal_written_where_it_is_kept_gets_nothing():
    wordy = (Segment("switch", 0, 1, " keep\n"), Segment("subgoal", 1, 3, "again"))
    values = {"low": [np.zeros(4)] * 2, "high": np.zeros(2), "term": np.zeros(2)}
    given = batch(trajectory([0.0, 1.0], tokens=4, segments=(SWITCH[:2], wordy), head_values=values))
    credit = METHODS.make("hiper").assign(given, RNG)
    assert credit.advantages[0][1][1:3].tolist() == [0.0, 0.0]
    assert credit.metrics == {"switch_rate": 0.0}
    # without any token behind the subgoal, V_low is read behind the switch; the first subgoal ends with the response
    places = [int(np.flatnonzero(~np.isnan(tokens))[0]) for tokens in credit.value_targets["low"][0]]  # type: ignore[index]
    assert places == [2, 3]
    with pytest.raises(ValueError, match="the trajectory has no segments"):
        METHODS.make("hiper").assign(batch(trajectory([1.0])), RNG)
