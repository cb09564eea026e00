"""Group filters on returns written down by hand."""

import numpy as np
import pytest

from agents.msgrpo import ConfigError
from agents.msgrpo.credit import Batch
from agents.msgrpo.filters import FILTERS
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


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"\[filter.starpo_s\] share = 2"):
        FILTERS.make("starpo_s", {"share": 2.0})
    assert np.isfinite(FILTERS.make("starpo_s").keep(returning([1.0], [0.0])).scale).all()  # groups of one
