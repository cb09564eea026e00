"""Group filters on returns written down by hand."""

import numpy as np
import pytest

from agents.msgrpo import ConfigError, group_advantages, sample_episodes
from agents.msgrpo.credit import METHODS, Batch
from agents.msgrpo.draws.pf_ppo import PFPPO
from agents.msgrpo.filters import FILTERS
from agents.msgrpo.tasks.dynamic import with_signal
from tests.agents.msgrpo.hand_made import batch, trajectory


def returning(*groups: list[float]) -> Batch:
    """Group g's episodes return these; the episodes of all groups are interleaved, as far as they go."""
    longest = max(map(len, groups))
    return batch(
        *(trajectory([own[k]], group=g) for k in range(longest) for g, own in enumerate(groups) if k < len(own))
    )


def kept_groups(name: str, played: Batch, **settings: object) -> set[object]:
    kept = FILTERS.make(name, settings).keep(played)
    assert list(kept.indices) == sorted(kept.indices)
    labels = {played.trajectories[index].group for index in kept.indices}
    assert len(kept.indices) == sum(len(played.groups[label]) for label in labels)  # whole groups
    assert len(kept.scale) == len(kept.indices)
    return labels


# sample standard deviations: 0, sqrt(1/2), 0, sqrt(1/2) * 3, sqrt(1/2) * 2, 0, sqrt(1/2) / 2, 0
EIGHT = [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 3.0], [2.0, 0.0], [0.1, 0.1], [0.5, 0.0], [-1.0, -1.0]]


def test_starpo_s_keeps_the_quarter_whose_returns_differ_most() -> None:
    assert kept_groups("starpo_s", returning(*EIGHT)) == {3, 4}
    assert kept_groups("starpo_s", returning(*EIGHT), share=0.5) == {1, 3, 4, 6}
    assert kept_groups("starpo_s", returning(*EIGHT[:3])) == {1}  # a quarter of three is none: at least one
    assert kept_groups("starpo_s", returning(*EIGHT), share=1.0) == set(range(8))
    assert (FILTERS.make("starpo_s").keep(returning(*EIGHT)).scale == 1).all()


def test_the_spread_is_that_of_returns_and_not_of_rewards() -> None:
    """Group 0's rewards differ and its returns don't; group 1's returns differ by a little."""
    played = batch(
        trajectory([5.0, -5.0], group=0), trajectory([0.0, 0.0], group=0),
        trajectory([0.1, 0.0], group=1), trajectory([0.0, 0.0], group=1),
    )  # fmt: skip
    assert kept_groups("starpo_s", played) == {1}


def test_nonzero_drops_groups_whose_returns_are_equal() -> None:
    assert kept_groups("nonzero", returning(*EIGHT)) == {1, 3, 4, 6}
    assert kept_groups("nonzero", returning([1.0, 1.0], [0.0])) == set()
    # thirds add up to the same in any order, up to rounding: equal returns are equal
    assert kept_groups("nonzero", returning([0.1] * 3, [0.1, 0.1, 0.2])) == {1}


@pytest.mark.parametrize("penalties", [30, 30_000])
def test_the_same_fractions_in_another_order_are_no_difference_anywhere(penalties: int) -> None:
    """Nothing keeps or draws them, though the sums end on other digits: not where they are large either."""
    early, late = [1.0] + [-0.1] * penalties, [-0.1] * penalties + [1.0]
    played = batch(trajectory(early), trajectory(late), trajectory(early, group=1), trajectory([0.0], group=1))
    returns = played.returns()
    assert returns[0] != returns[1]
    for name in ("nonzero", "ragen2", "starpo_s"):
        assert kept_groups(name, played) == {1}
    assert list(with_signal(list(played.trajectories))) == [1]
    credit = METHODS.make("msgrpo").assign(played, np.random.default_rng(0))
    assert credit.draw_weight[:2].tolist() == [0.0, 0.0]
    for mode in ("aaw", "balanced", "uniform_nonzero", "largest"):
        drawn = sample_episodes(group_advantages(returns, [0, 0, 1, 1]), 4, np.random.default_rng(0), mode)
        assert drawn.tolist() == [2, 3]
    highest = PFPPO(method="max_min").weights(np.array([*returns[:2], returns[0] - 1.0, returns[0] - 2.0]))
    assert highest.round().tolist() == [1, 1, 0, 1]
    seats = batch(trajectory([1.0]), *(trajectory([value]) for value in returns[:2]))
    a, b = METHODS.make("marshal", {"means": "distinct"}).assign(seats, np.random.default_rng(0)).draw_weight[1:]
    assert a == pytest.approx(b)


def test_ragen2_takes_the_largest_until_their_sum_is_reached() -> None:
    """By hand, in units of sqrt(1/2): 3 + 2 + 1 + 1/2 = 6.5, that is 4.596; 0.9 of it less 0.01 is 4.127.
    3 + 2 is 3.536 and 3 + 2 + 1 is 4.243, so three stay. Of 0.75, 3.437, two do."""
    assert kept_groups("ragen2", returning(*EIGHT)) == {3, 4, 1}
    assert kept_groups("ragen2", returning(*EIGHT), mass=0.75) == {3, 4}
    assert kept_groups("ragen2", returning(*EIGHT), mass=1.0) == {1, 3, 4, 6}
    assert kept_groups("ragen2", returning(*EIGHT), mass=1.0, slack=1.0) == {1, 3, 4}  # 3.596: two are 3.536
    assert (FILTERS.make("ragen2").keep(returning(*EIGHT)).scale == 1).all()


def test_ragen2_skips_what_has_too_little_difference() -> None:
    """Nothing is needed where 0.9 of the total is no more than 0.01: sqrt(1/2) 0.01 = 0.0071 is."""
    assert kept_groups("ragen2", returning([1.0, 1.0], [2.0, 2.0])) == set()
    assert kept_groups("ragen2", returning([1.0, 1.01], [2.0, 2.0])) == set()
    assert kept_groups("ragen2", returning([1.0, 1.02], [2.0, 2.0])) == {0}
    assert kept_groups("ragen2", returning([1.0], [2.0])) == set()


@pytest.mark.parametrize(("how", "factor"), [("none", 1.0), ("share", 3 / 8), ("root", (3 / 8) ** 0.5)])
def test_ragen2_may_scale_the_loss_by_what_it_keeps(how: str, factor: float) -> None:
    kept = FILTERS.make("ragen2", {"loss_scale": how}).keep(returning(*EIGHT))
    assert kept.scale.tolist() == pytest.approx([factor] * 6)


def test_ragen2_soft_weighs_groups_in_place_of_leaving_them_out() -> None:
    played = returning(*EIGHT)
    kept = FILTERS.make("ragen2", {"soft": True}).keep(played)
    want = {1: 1 / 3, 3: 1.0, 4: 2 / 3, 6: 1 / 6}
    assert len(kept.indices) == 8
    for index, scale in zip(kept.indices, kept.scale.tolist(), strict=True):
        assert scale == pytest.approx(want[played.trajectories[index].group])  # type: ignore[index]
    assert len(FILTERS.make("ragen2", {"soft": True}).keep(returning([1.0, 1.0])).indices) == 0


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"\[filter.starpo_s\] share = 2"):
        FILTERS.make("starpo_s", {"share": 2.0})
    assert np.isfinite(FILTERS.make("starpo_s").keep(returning([1.0], [0.0])).scale).all()  # groups of one
