"""Group filters on returns written down by hand, and the sampler that refills what they drop."""

from dataclasses import replace

import numpy as np
import pytest

from agents.msgrpo import group_advantages, sample_episodes
from agents.msgrpo.credit import METHODS, Batch
from agents.msgrpo.filters import FILTERS, spreads
from agents.msgrpo.tasks import DynamicSampling, with_signal
from tests.agents.msgrpo.exact import Known
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.played import iteration_of
from tests.agents.msgrpo.runs import SHORT


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


def test_nonzero_drops_groups_whose_returns_are_equal():
    assert kept_groups("nonzero", returning(*EIGHT)) == {1, 3, 4, 6}
    assert kept_groups("nonzero", returning([1.0, 1.0], [0.0])) == set()
    # thirds add up to the same in any order, up to rounding: equal returns are equal
    assert kept_groups("nonzero", returning([0.1] * 3, [0.1, 0.1, 0.2])) == {1}


def in_another_order(penalties: int) -> Batch:
    """Two groups; the first one's episodes are paid the same fractions in another order."""
    early, late = [1.0] + [-0.1] * penalties, [-0.1] * penalties + [1.0]
    return batch(trajectory(early), trajectory(late), trajectory(early, group=1), trajectory([0.0], group=1))


@pytest.mark.parametrize("penalties", [30, 30_000])
def test_the_same_fractions_in_another_order_are_no_difference_anywhere(penalties):
    """Nothing keeps or draws them, though the sums end on other digits: not where they are large either."""
    played = in_another_order(penalties)
    returns = played.returns()
    assert returns[0] != returns[1]
    assert kept_groups("nonzero", played) == {1}
    assert list(with_signal(list(played.trajectories))) == [1]
    credit = METHODS.make("msgrpo").assign(played, np.random.default_rng(0))
    assert credit.draw_weight[:2].tolist() == [0.0, 0.0]
    for mode in ("aaw", "balanced", "uniform_nonzero", "largest"):
        drawn = sample_episodes(group_advantages(returns, [0, 0, 1, 1]), 4, np.random.default_rng(0), mode)
        assert drawn.tolist() == [2, 3]


# ---------------------------------------------------------------- dynamic sampling


RNG = np.random.default_rng(0)
SHAPE = {"groups": 4, "group_size": 3}


def test_groups_without_a_difference_are_replaced_and_no_more_is_played_than_is_missing():
    """Three random plays of one hand of blackjack are often all lost."""
    kept = []
    for refills in (0, 1, 60):
        iteration = iteration_of("blackjack", Known(), **SHAPE)  # type: ignore[arg-type]
        kept.append(Batch(DynamicSampling(refills=refills).sample(iteration, RNG)))
        assert all(spreads(kept[-1]))
        if refills == 1:
            assert len(iteration.played) == 12 + 3 * (4 - len(kept[0].groups))
    assert 0 < len(kept[0].groups) < len(kept[-1].groups) == 4
    assert list(kept[-1].groups)[: len(kept[0].groups)] == list(kept[0].groups)
    assert {len(members) for members in kept[-1].groups.values()} == {3}
    hopeless = iteration_of("frozen-lake", Known(invalid=1.0), **SHAPE)  # type: ignore[arg-type]
    assert len(Batch(DynamicSampling(refills=2).sample(hopeless, RNG)).groups) == 4  # those of the first play
    assert len(hopeless.played) == 36


def test_the_log_has_what_was_dropped(make_trainer):
    settings = {"tasks": {"dynamic": {"refills": 4}}}
    config = replace(SHORT, groups=3, max_response_tokens=1, task_sampling="dynamic", method_settings=settings)
    trainer = make_trainer(config, "TestButtons-v0", model={"initializer_range": 0.3})
    batch = trainer.rollout()
    assert batch.played is not None
    assert len(batch.played) > len(batch.trajectories) >= 4
    metrics = trainer.iterate()
    assert metrics["episodes"] == metrics["response_tokens"] == len(batch.played)
    assert metrics["return"] == pytest.approx(np.mean([each.returned() for each in batch.played]))
