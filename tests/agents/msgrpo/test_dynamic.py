"""Dynamic sampling: what is dropped, what takes its place, when it gives up, and that the log tells all of it."""

import numpy as np
import pytest

from agents.msgrpo import MSGRPOConfig
from agents.msgrpo.credit import Batch
from agents.msgrpo.tasks import DynamicSampling
from tests.agents.msgrpo.exact import Known
from tests.agents.msgrpo.played import iteration_of

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
