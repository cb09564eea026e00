"""Group filters on returns written down by hand."""

import numpy as np
import pytest

from agents.msgrpo import MSGRPOConfig, group_advantages, sample_episodes
from agents.msgrpo.credit import METHODS, Batch
from agents.msgrpo.filters import FILTERS
from agents.msgrpo.tasks import DynamicSampling, with_signal
from tests.agents.msgrpo.exact import Known
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.played import iteration_of


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


def differs(batch: Batch, members: list[int]) -> bool:
    return len({batch.trajectories[index].returned() for index in members}) > 1


def test_every_group_that_is_left_has_returns_that_differ():
    """Three random plays of one hand of blackjack are often all lost; others are played in place of these."""
    iteration = iteration_of("blackjack", Known(), **SHAPE)  # type: ignore[arg-type]
    plain = Batch(iteration.play(iteration.tasks()))
    good = [label for label, members in plain.groups.items() if differs(plain, members)]
    assert 0 < len(good) < 4
    batch = Batch(DynamicSampling(refills=60).sample(iteration, RNG))
    assert len(batch.groups) == 4
    assert all(differs(batch, members) and len(members) == 3 for members in batch.groups.values())
    assert list(batch.groups)[: len(good)] == good
    assert len({each.task.seed for each in batch.trajectories}) <= 12  # type: ignore[union-attr]


def test_it_plays_no_more_than_is_missing_and_stops_where_it_may_not_go_on():
    counts = []
    for refills in (0, 1, 2, 60):
        iteration = iteration_of("blackjack", Known(), **SHAPE)  # type: ignore[arg-type]
        batch = Batch(DynamicSampling(refills=refills).sample(iteration, RNG))
        assert len(iteration.played) <= 12 * (refills + 1)
        counts.append(len(batch.groups))
        if refills == 1:
            assert len(iteration.played) == 12 + 3 * (4 - counts[0])
    assert counts == sorted(counts)
    assert counts[0] < counts[-1] == 4


def test_where_nothing_differs_what_was_played_first_is_left():
    """Nobody ever says anything readable here: the update is skipped, and nothing fails."""
    iteration = iteration_of("frozen-lake", Known(invalid=1.0), **SHAPE)  # type: ignore[arg-type]
    batch = Batch(DynamicSampling(refills=2).sample(iteration, RNG))
    assert len(batch.groups) == 4
    assert len(iteration.played) == 36


def test_seats_are_groups_of_their_own():
    iteration = iteration_of("kuhn-poker", Known(share=0.1), groups=2, group_size=4)
    batch = Batch(DynamicSampling(refills=20).sample(iteration, RNG))
    assert len(batch.groups) == 4
    assert all(differs(batch, members) for members in batch.groups.values())
    assert {label[2] for label in batch.groups} == {"player_0", "player_1"}  # type: ignore[index]


def test_the_log_has_what_was_dropped(make_trainer):
    config = MSGRPOConfig(
        groups=3, group_size=4, iterations=1, response_mode="direct", max_response_tokens=1, learning_rate=1e-3,
        temperature=1.0, eval_every=0, samples_every=0, task_sampling="dynamic",
        method_settings={"tasks": {"dynamic": {"refills": 4}}},
    )  # fmt: skip
    trainer = make_trainer(config, "TestButtons-v0", model={"initializer_range": 0.3})
    batch = trainer.rollout()
    assert batch.played is not None
    assert len(batch.played) > len(batch.trajectories) >= 4
    (metrics,) = trainer.train()
    assert metrics["episodes"] == metrics["response_tokens"] == len(batch.played)
    assert metrics["return"] == pytest.approx(np.mean([each.returned() for each in batch.played]))
