"""What is learnt from, and how much: group filters, the sampler that refills, draw rules, and reward rules."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from agents.msgrpo import (
    DRAWS,
    ConfigError,
    MSGRPOConfig,
    effective_sample_size,
    group_advantages,
    sample_episodes,
    spreads,
)
from agents.msgrpo.credit import METHODS, Batch, Credit, Floats
from agents.msgrpo.filters import FILTERS
from agents.msgrpo.rewards import REWARDS, rewarded
from agents.msgrpo.tasks import DynamicSampling, with_signal
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.runs import ALONE, SHORT, Known, iteration_of, same_weights


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


# advantages per step of five episodes of one to three steps; their draw weights are the means of |A|: 2, 2, 0.5, 0, 1
ADVANTAGES = [np.array([2.0, -2.0]), np.array([0.0, -5.0, 1.0]), np.array([0.5]), np.zeros(2), np.array([-1.0, 1.0])]
EPISODES = batch(*(trajectory([0.0] * len(each)) for each in ADVANTAGES))
CREDIT = Credit.of(ADVANTAGES)
SCORES = [np.array([0.3, -1.1]), np.array([0.7, 0.2, -0.4]), np.array([2.0]), np.ones(2), np.array([0.6, 0.1])]
"""The score gradient of every step, one number each: any function of the steps."""
OF_EPISODES = np.array([2.0, -1.0, 0.5, 0.0, -0.25])
"""One advantage for each of five episodes."""


def check_frequencies(counts: np.ndarray, n: int, exact: np.ndarray) -> None:
    assert (np.abs(counts / n - exact) < 4.5 * np.sqrt(exact * (1 - exact) / n) + 1e-9).all()


def inclusion_without_replacement(weights: np.ndarray, m: int) -> np.ndarray:
    """Exact: the sum over all orders of drawing one after the other."""
    result = np.zeros(len(weights))
    for order in itertools.permutations(np.flatnonzero(weights), m):
        probability, left = 1.0, weights.sum()
        for index in order:
            probability *= weights[index] / left
            left -= weights[index]
        result[list(order)] += probability
    return result


def test_frequencies_without_replacement():
    rng, counts, n = np.random.default_rng(0), np.zeros(5), 8_000
    for _ in range(n):
        drawn = sample_episodes(OF_EPISODES, 2, rng, "aaw")
        assert len(set(drawn.tolist())) == 2
        counts[drawn] += 1
    check_frequencies(counts, n, inclusion_without_replacement(np.abs(OF_EPISODES), 2))
    first, again = (sample_episodes(OF_EPISODES, 3, np.random.default_rng(9), "aaw").tolist() for _ in range(2))
    assert first == again == sorted(first)
    assert sample_episodes(OF_EPISODES, 5, rng, "aaw").tolist() == [0, 1, 2, 4]  # never one without an advantage


@pytest.mark.parametrize("mode", ["aaw_replacement", "unbiased"])
def test_frequencies_with_replacement(mode):
    drawn = sample_episodes(OF_EPISODES, 20_000, np.random.default_rng(1), mode)
    check_frequencies(np.bincount(drawn, minlength=5), 20_000, np.abs(OF_EPISODES) / np.abs(OF_EPISODES).sum())


def test_draws_that_can_not_be_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="finite"):
        sample_episodes([1.0, float("nan")], 1, rng)
    for number in (0, 1.5):
        with pytest.raises(ValueError, match=f"m = {number} episodes can't be drawn"):
            sample_episodes([1.0], number, rng)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"mode must be one of .* got 'best'"):
        sample_episodes([1.0], 1, rng, "best")


def drawn_gradient(indices: np.ndarray, scale: np.ndarray) -> float:
    """The mean over draws of ``sum_t A_it f_it``: what the loss leads to with loss_normalizer = "episode"."""
    each = [c * float((ADVANTAGES[i] * SCORES[i]).sum()) for i, c in zip(indices.tolist(), scale.tolist(), strict=True)]
    return sum(each) / len(each)


@pytest.mark.parametrize("m", [1, 3])
def test_unbiased_draws_estimate_the_gradient_of_all_episodes_exactly(m):
    """The expectation over all sequences of m independent draws, with the scale that the rule gives each."""
    rule, probability = DRAWS.make("unbiased"), CREDIT.draw_weight / 5.5
    scale_of: dict[int, float] = {}
    rng = np.random.default_rng(1)
    while len(scale_of) < 4:  # what the rule says itself; episode 3 is never drawn
        drawn = rule.draw(EPISODES, CREDIT, m, rng)
        assert len(drawn.indices) == m
        scale_of.update(zip(drawn.indices.tolist(), drawn.scale.tolist(), strict=True))
    assert 3 not in scale_of
    expected = 0.0
    for sequence in itertools.product(scale_of, repeat=m):
        chance = float(np.prod(probability[list(sequence)]))
        scale = np.array([scale_of[i] for i in sequence])
        expected += chance * drawn_gradient(np.array(sequence), scale)
    assert expected == pytest.approx(sum(float((a * f).sum()) for a, f in zip(ADVANTAGES, SCORES, strict=True)) / 5)


def test_uniform_nonzero_leaves_out_what_teaches_nothing_and_weighs_nothing():
    rule, rng, counts = DRAWS.make("uniform_nonzero"), np.random.default_rng(3), np.zeros(5)
    for _ in range(2_000):
        counts[rule.draw(EPISODES, CREDIT, 2, rng).indices] += 1
    check_frequencies(counts, 2_000, np.array([0.5, 0.5, 0.5, 0.0, 0.5]))
    assert rule.draw(EPISODES, CREDIT, 9, rng).indices.tolist() == [0, 1, 2, 4]


def test_the_largest_are_drawn_and_equal_ones_by_chance():
    """Weights 2, 2, 0.5, 0 and 1."""
    rng = np.random.default_rng(4)
    draws = [DRAWS.make("largest").draw(EPISODES, CREDIT, m, rng).indices.tolist() for m in (2, 3, 9)]
    assert draws == [[0, 1], [0, 1, 4], [0, 1, 2, 4]]
    ones = {DRAWS.make("largest").draw(EPISODES, CREDIT, 1, rng).indices[0] for _ in range(40)}
    assert ones == {0, 1}


@pytest.mark.parametrize(("m", "above", "below"), [(4, {2}, {2}), (3, {1, 2}, {1, 2}), (9, {5}, {3})])
def test_balanced_draws_take_half_of_either_sign(m, above, below):
    """Five above 0, of any size, three below, and one without an advantage, which is never drawn."""
    signed, rng, counts = np.array([3.0, 0.1, 0.1, 0.1, 0.1, -0.2, -9.0, -0.2, 0.0]), np.random.default_rng(6), 0
    for _ in range(200):
        drawn = sample_episodes(signed, m, rng, "balanced")
        assert (signed[drawn] > 0).sum() in above
        assert (signed[drawn] < 0).sum() in below
        counts = counts + np.bincount(drawn, minlength=9)
    assert counts[8] == 0
    assert m != 4 or np.ptp(counts[:5]) < 60  # evenly, whatever the size


@pytest.mark.parametrize("name", DRAWS.names)
def test_without_any_advantage_nothing_is_drawn(name):
    nothing = Credit.of([np.zeros_like(each) for each in ADVANTAGES])
    assert len(DRAWS.make(name).draw(EPISODES, nothing, 2, np.random.default_rng(0)).indices) == 0
    some = DRAWS.make(name).draw(EPISODES, CREDIT, 3, np.random.default_rng(7))
    assert some.scale.shape == some.indices.shape


def test_effective_sample_size():
    assert effective_sample_size(np.array([3.0, 1.0])) == pytest.approx(16 / 10)
    assert effective_sample_size(np.zeros(4)) == 0


RNG = np.random.default_rng(0)


class SaysRed:
    """Pays for what is written, whatever the light is."""

    reward_mode: ClassVar[str] = "replace"

    def pay(self, batch: Batch) -> Sequence[Floats]:
        assert all("The light is " in text for each in batch.trajectories for text in each.observations)
        return [np.array(["red" in text for text in each.responses], dtype=np.float64) for each in batch.trajectories]


class Fixed:
    """Pays what it is told to, and keeps what it was shown."""

    def __init__(self, paid: Any) -> None:
        self.paid, self.metrics = paid, {"of_its_own": 7.0}

    reward_mode, seen = "add", list[float]()

    def pay(self, batch: Batch) -> Any:
        self.seen = [each.returned() for each in batch.trajectories]
        return self.paid


# the second one's first answer was invalid and cost 0.5
PLAYED = batch(trajectory([0.0, 1.0]), trajectory([-0.5, 1.0], valid=np.array([False, True])))


@pytest.mark.parametrize(
    ("mode", "expected"), [("auto", [[2.0, 1.0], [-0.5, 5.0]]), ("replace", [[2.0, 0.0], [-0.5, 4.0]])]
)
def test_payments_are_weighted_and_added_or_replace_the_games_and_format_penalties_stay(mode, expected):
    rule: Any = Fixed([np.array([1.0, 0.0]), np.array([0.0, 2.0])])
    config = MSGRPOConfig(reward="length", reward_mode=mode, reward_weight=2.0, format_penalty=0.5)
    found, told = rewarded(PLAYED, rule, config)
    assert [each.rewards.tolist() for each in found.trajectories] == expected
    assert rule.seen == [1.0, 1.0]
    assert told == {"reward": 1.5, "zero_advantage_groups": 0.0, "of_its_own": 7.0}
    assert PLAYED.returns().tolist() == [1.0, 0.5]


@pytest.mark.parametrize("paid", [[np.ones(2)], [np.ones(2), np.ones(3)], [np.ones(2), np.array([0.0, np.nan])]])
def test_a_payment_that_is_no_finite_number_for_each_step_is_refused(paid):
    rule: Any = Fixed(paid)
    with pytest.raises(ConfigError, match=r"reward = 'length': pay returned .* for each of the 2 trajectories"):
        rewarded(PLAYED, rule, MSGRPOConfig(reward="length"))


def test_the_length_rule_with_the_papers_credit_is_dapos_credit():
    played = batch(trajectory([0.0, 1.0], tokens=[3, 9]), *(trajectory([0.0], tokens=[n]) for n in (8, 12)))
    rule = REWARDS.make("length", {"max_response_tokens": 10})
    assert [each.tolist() for each in rule.pay(played)] == [[0.0, -0.5], [0.0], [-1.0]]
    wide = REWARDS.make("length", {"max_response_tokens": 100, "cache_share": 0.25})
    (paid,) = wide.pay(batch(trajectory([0.0] * 6, tokens=[1, 75, 76, 88, 100, 140])))
    assert paid.tolist() == pytest.approx([0, 0, -0.04, -0.52, -1, -1])
    found, told = rewarded(played, rule, MSGRPOConfig(reward="length"))
    own = METHODS.make("msgrpo").assign(found, RNG).advantages
    dapo = METHODS.make("dapo", {"max_response_tokens": 10}).assign(played, RNG).advantages
    assert np.concatenate(own) == pytest.approx(np.concatenate(dapo))
    assert told["reward"] == -0.5


def test_training_learns_from_the_rule_and_scores_keep_to_the_game(make_trainer):
    config = replace(
        SHORT, groups=4, group_size=16, iterations=12, max_response_tokens=1, minibatches=4, learning_rate=5e-3,
        eval_every=12, eval_episodes=20, format_penalty=0.5, **ALONE,
    )  # fmt: skip
    random: dict[str, Any] = {"model": {"initializer_range": 0.15}}
    plain = make_trainer(config, "TestButtons-v0", **random)
    other = make_trainer(replace(config, reward=f"{__name__}:SaysRed"), "TestButtons-v0", **random)
    first, same = plain.iterate(), other.iterate()
    assert "reward" not in first
    assert first["return"] == same["return"] != same["reward"]  # the same episodes
    assert not same_weights(plain, other)
    history = other.train()
    assert history[-1]["reward"] > 0.8 > history[0]["reward"] + 0.5
    (last,) = other.evaluations[-1][1]
    assert last.reward > 0.8
    assert last.score == last.mean_return < 0.7


def test_settings_that_can_not_be_used_together_are_refused(make_trainer):
    with pytest.raises(ConfigError, match="reward_weight = 2 with reward = 'game', which is no rule"):
        MSGRPOConfig(reward_weight=2.0)
    with pytest.raises(ConfigError, match="reward = 'length' with credit by fresh episodes, which the game alone pays"):
        make_trainer(replace(SHORT, reward="length", credit="vine")).iterate()
