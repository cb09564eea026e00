"""RAGEN's group filters and the draw of PF-PPO, on returns written down by hand."""

import numpy as np
import pytest

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.credit import METHODS, Batch, Credit
from agents.msgrpo.draws import DRAWS
from agents.msgrpo.filters import FILTERS
from research.methods.selection import PFPPO
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.test_selection import EIGHT, in_another_order, kept_groups, returning


def test_starpo_s_keeps_the_quarter_whose_returns_differ_most():
    assert kept_groups("starpo_s", returning(*EIGHT)) == {3, 4}
    assert kept_groups("starpo_s", returning(*EIGHT), share=0.5) == {1, 3, 4, 6}
    assert kept_groups("starpo_s", returning(*EIGHT[:3])) == {1}  # a quarter of three is none: at least one
    assert kept_groups("starpo_s", returning(*EIGHT), share=1.0) == set(range(8))
    assert (FILTERS.make("starpo_s").keep(returning(*EIGHT)).scale == 1).all()
    # group 0's rewards differ and its returns don't; group 1's returns differ by a little
    played = batch(
        trajectory([5.0, -5.0], group=0), trajectory([0.0, 0.0], group=0),
        trajectory([0.1, 0.0], group=1), trajectory([0.0, 0.0], group=1),
    )  # fmt: skip
    assert kept_groups("starpo_s", played) == {1}
    with pytest.raises(ConfigError, match=r"\[filter.starpo_s\] share must be .* got 2"):
        FILTERS.make("starpo_s", {"share": 2.0})


def test_ragen2_takes_the_largest_until_their_sum_is_reached():
    """By hand, in units of sqrt(1/2): 3 + 2 + 1 + 1/2 = 6.5, that is 4.596; 0.9 of it less 0.01 is 4.127.
    3 + 2 is 3.536 and 3 + 2 + 1 is 4.243, so three stay. Of 0.75, 3.437, two do."""
    assert kept_groups("ragen2", returning(*EIGHT)) == {3, 4, 1}
    assert kept_groups("ragen2", returning(*EIGHT), mass=0.75) == {3, 4}
    assert kept_groups("ragen2", returning(*EIGHT), mass=1.0) == {1, 3, 4, 6}
    assert kept_groups("ragen2", returning(*EIGHT), mass=1.0, slack=1.0) == {1, 3, 4}  # 3.596: two are 3.536
    # nothing is needed if 0.9 of the total is no more than 0.01: sqrt(1/2) 0.01 = 0.0071 is
    assert kept_groups("ragen2", returning([1.0, 1.01], [2.0, 2.0])) == set()
    assert kept_groups("ragen2", returning([1.0, 1.02], [2.0, 2.0])) == {0}
    assert kept_groups("ragen2", returning([1.0], [2.0])) == set()


def test_ragen2_may_scale_the_loss_by_what_it_keeps_or_weigh_groups_in_place_of_leaving_them_out():
    played = returning(*EIGHT)
    for how, factor in (("none", 1.0), ("share", 3 / 8), ("root", (3 / 8) ** 0.5)):
        kept = FILTERS.make("ragen2", {"loss_scale": how}).keep(played)
        assert kept.scale.tolist() == pytest.approx([factor] * 6)
    kept = FILTERS.make("ragen2", {"soft": True}).keep(played)
    want = {1: 1 / 3, 3: 1.0, 4: 2 / 3, 6: 1 / 6}
    assert len(kept.indices) == 8
    for index, scale in zip(kept.indices, kept.scale.tolist(), strict=True):
        assert scale == pytest.approx(want[played.trajectories[index].group])  # type: ignore[index]
    assert len(FILTERS.make("ragen2", {"soft": True}).keep(returning([1.0, 1.0])).indices) == 0


def test_the_same_fractions_in_another_order_are_no_difference_anywhere():
    played = in_another_order(30_000)
    returns = played.returns()
    for name in ("ragen2", "starpo_s"):
        assert kept_groups(name, played) == {1}
    highest = PFPPO().weights(np.array([*returns[:2], returns[0] - 1.0, returns[0] - 2.0]), "max_min")
    assert highest.round().tolist() == [1, 1, 0, 1]
    seats = batch(trajectory([1.0]), *(trajectory([value]) for value in returns[:2]))
    a, b = METHODS.make("marshal", {"means": "distinct"}).assign(seats, np.random.default_rng(0)).draw_weight[1:]
    assert a == pytest.approx(b)


PLAYED: Batch = batch(*(trajectory([value]) for value in (2.0, -1.0, 0.0, 2.0, 0.5)))


@pytest.mark.parametrize(
    ("settings", "weights"),
    [
        ({}, [4.0, 1.0, 0.0, 4.0, 0.25]),  # |R|^2
        ({"power": 1.0}, [2.0, 1.0, 0.0, 2.0, 0.5]),
        ({"method": "max_min"}, [1.0, 1.0, 0.0, 1.0, 0.0]),
        ({"method": "max_random"}, [0.4, 0.1, 0.1, 0.4, 0.1]),
    ],
)
def test_pf_ppo_draws_as_many_as_there_are_by_returns(settings, weights):
    rule, found = DRAWS.make("pf_ppo", settings), settings.get("method", "pow")
    assert rule.weights(PLAYED.returns(), found) == pytest.approx(np.array(weights) + 1e-8, rel=1e-12)
    rng, credit = np.random.default_rng(4), Credit.of([np.ones(1)] * 5)
    drawn = [rule.draw(PLAYED, credit, 2, rng) for _ in range(20)]
    assert {(len(each.indices), each.scale.sum()) for each in drawn} == {(5, 5.0)}  # whatever episodes_drawn says
    assert any(2 in each.indices for each in drawn) == (weights[2] > 0)


def test_pf_ppo_of_worthless_episodes_draws_them_evenly():
    """All returns 0: only the 1e-8 is left; and resample_all = false draws episodes_drawn of them."""
    zeros, credit = batch(*(trajectory([0.0]) for _ in range(4))), Credit.of([np.ones(1)] * 4)
    rule, rng = DRAWS.make("pf_ppo", {"resample_all": False}), np.random.default_rng(5)
    drawn = np.array([rule.draw(zeros, credit, 2, rng).indices for _ in range(500)])
    assert drawn.shape == (500, 2)
    assert np.abs(np.bincount(drawn.ravel()) / 1_000 - 0.25).max() < 4.5 * np.sqrt(0.25 * 0.75 / 1_000)
    assert not len(rule.draw(zeros, Credit.of([np.zeros(1)] * 4), 2, rng).indices)  # nothing to learn


def paid(returns, truths, **others):
    """A batch whose episodes a reward rule paid ``returns`` and the game ``truths``."""
    pairs = zip(returns, truths, strict=True)
    return batch(*(trajectory([r], earned=np.array([t]), success=t > 0, **others) for r, t in pairs))


def chosen(*batches, **settings):
    """Return the draw's choice after some batches, and its R²."""
    rule = DRAWS.make("pf_ppo", {"method": "auto", **settings})
    for each in batches:
        rule.draw(each, Credit.of([np.ones(1)] * len(each)), 1, np.random.default_rng(0))
    names, told = ("pow", "max_min", "max_random"), rule.metrics
    (by,) = [name for name in names if told[f"pf_ppo_by_{name}"]]
    return by, {name: told[f"pf_ppo_r2_{name}"] for name in names}


def test_auto_s_r2_by_hand():
    """Returns of +-1 alone count. Six of a batch: R² is 1/2, adjusted 1 - 1/2 5/4. With another batch, which weighs as
    much, it is 5/7, and they are worth 1 / (6/144 + 2/16) = 6 episodes as well: 1 - 2/7 5/4."""
    six = paid([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 0.0], [1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 5.0])
    assert chosen(six)[1]["max_min"] == pytest.approx(3 / 8, abs=1e-6)
    assert chosen(six, paid([1.0, -1.0], [1.0, 0.0]))[1]["max_min"] == pytest.approx(9 / 14, abs=1e-6)
    assert chosen(paid([1.0, -1.0], [1.0, 0.0]))[1]["max_min"] == 0.0  # two points always lie on a line


@pytest.mark.parametrize("truth", ["return", "success"])
def test_auto_takes_the_filter_under_which_rewards_tell_the_truth(truth):
    """Rewards of moderate size say nothing; or the highest one of each batch is a fraud; or all of them say nothing."""
    rng, batches = np.random.default_rng(0), {"moderate": [], "fraud": [], "useless": []}
    for _ in range(8):
        rewards = np.array([-1.0, *rng.uniform(-0.7, 0.7, 14), 1.0])
        coins = rng.integers(2, size=16).astype(float)
        batches["moderate"].append(paid(rewards, np.where(np.abs(rewards) == 1, rewards > 0, coins)))
        sound = np.append(rng.uniform(-1, 1, 15), 1.1)
        batches["fraud"].append(paid(sound, np.append(sound[:15] > 0, 0.0)))
        batches["useless"].append(paid(rewards, coins))
    best, r2 = chosen(*batches["moderate"], truth=truth)
    assert best == "max_min"
    assert r2["max_min"] > 0.99 > 0.6 > max(r2["pow"], r2["max_random"])
    assert chosen(*batches["fraud"], truth=truth)[0] == "pow"
    assert max(chosen(*batches["useless"], truth=truth)[1].values()) < 0.3


def test_auto_in_the_trainer_tells_what_it_drew_by_and_keeps_its_batches(make_trainer):
    config = MSGRPOConfig(
        iterations=2, groups=2, group_size=8, max_response_tokens=1, reward="length", samples_every=0, eval_every=0,
        response_mode="direct", episode_sampling="pf_ppo", method_settings={"draw": {"pf_ppo": {"method": "auto"}}},
    )  # fmt: skip
    trainer = make_trainer(config)
    *_, second = trainer.train()
    assert sum(second[f"pf_ppo_by_{name}"] for name in ("pow", "max_min", "max_random")) == 1
    kept = trainer.methods.draw.state_dict()
    assert [len(returns) for returns, _ in kept["recent"]] == [16, 16]
    other = DRAWS.make("pf_ppo", {"method": "auto"})
    other.load_state_dict(kept)
    assert other.r2("pow") == second["pf_ppo_r2_pow"]
