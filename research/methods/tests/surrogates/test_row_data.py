"""The surrogates that know more of a row than its tokens: what they say of rows, by hand, and their loss by formula."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agents.msgrpo import ConfigError, MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit import METHODS, Batch
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.draws import Drawn
from agents.msgrpo.surrogates import SURROGATES
from agents.msgrpo.trajectories import training_rows
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.surrogates.ragged import Row, ragged, through_loss

# group a: returns 1, 0, 0.5 with 4, 9 and 3 response tokens; group b: all fail; group c: all succeed
PLAYED = batch(
    trajectory([0.0, 1.0], group="a", tokens=[1, 3], success=True),
    trajectory([0.0, 0.0, 0.0], group="a", tokens=[4, 2, 3]),
    trajectory([0.0], group="b"),
    trajectory([0.5], group="a", tokens=[3]),
    trajectory([-1.0], group="b"),
    trajectory([1.0], group="c", success=True),
    trajectory([2.0, 1.0], group="c", success=True),
)


def rows_of(played: Batch, advantages: Any = None, indices: Any = None, scale: Any = None) -> list[TokenRow]:
    drawn = np.arange(len(played)) if indices is None else np.array(indices)
    credit = [np.ones(len(each)) for each in played.trajectories] if advantages is None else advantages
    return training_rows(
        played.trajectories, Drawn(drawn, np.ones(len(drawn)) if scale is None else np.array(scale)), credit, 100
    )


def tokens_for(rows: list[TokenRow], seed: int = 0, off_policy: float = 0.4) -> list[Row]:
    """Random log-probabilities of as many tokens as each row has, with the row's advantages."""
    made = ragged(seed, len(rows) * 9, off_policy=off_policy, longest=1)
    found, at = [], 0
    for row in rows:
        own = made[at : at + len(row.response)]
        at += len(own)
        logp, old, ref = ([x for each in own for x in getattr(each, name)] for name in ("logp", "old", "ref"))
        found.append(Row(logp, old, ref, list(row.token_advantages())))
    return found


# ---------------------------------------------------------------- NFT


def test_nft_labels_by_hand():
    """Group a: one success of three; b and c have no difference and no weight. Rows: 2 3 1 1 1 1 2."""
    data = SURROGATES.make("nft").row_data(rows_of(PLAYED), PLAYED, None)
    assert data["label"].tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert data["rate"][[0, 1, 2, 3, 4, 6]] == pytest.approx([1 / 3] * 6)
    assert data["weight"].tolist() == [1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0]


def test_nft_graded_labels_by_hand():
    """Group a: 1, 0, 0.5, rate 0.5; b: 1, 0; c: returns 1 and 3 are 0 and 1."""
    data = SURROGATES.make("nft", {"labels": "return"}).row_data(rows_of(PLAYED), PLAYED, None)
    assert data["label"].tolist() == [1, 1, 0, 0, 0, 1, 0.5, 0, 0, 1, 1]
    assert data["rate"].tolist() == pytest.approx([0.5] * 11)
    assert data["weight"].tolist() == [1] * 11
    equal = batch(trajectory([2.0]), trajectory([2.0]))
    assert SURROGATES.make("nft", {"labels": "return"}).row_data(rows_of(equal), equal, None)["weight"].tolist() == [
        0,
        0,
    ]


def test_nft_rates_are_kept_from_the_edges():
    """One success of 100 is 0.02; and draws are told apart from trajectories: rows of draws 2 and 0, weighted."""
    many = batch(*(trajectory([0.0], success=i == 0) for i in range(100)))
    rows = rows_of(many, indices=[0, 7, 7], scale=[2.0, 0.5, 0.5])
    data = SURROGATES.make("nft").row_data(rows, many, None)
    assert data["rate"].tolist() == [0.02] * 3
    assert data["label"].tolist() == [1, 0, 0]
    assert data["weight"].tolist() == [2.0, 0.5, 0.5]


# ---------------------------------------------------------------- P3O


def test_p3o_with_all_pairs_is_rloo():
    rloo = METHODS.make("rloo").assign(PLAYED, np.random.default_rng(0)).advantages
    rows = rows_of(PLAYED, rloo)
    surrogate = SURROGATES.make("p3o")
    coefficients = surrogate.row_data(rows, PLAYED, None)["coefficient"]
    assert coefficients.tolist() == pytest.approx([row.advantage for row in rows], abs=1e-15)


def test_p3o_off_policy_by_the_loss_of_its_authors():
    """The gradient of ``max(-q w D, -q w clamp(D, D_old - clip, D_old + clip)) / 2`` over all ordered pairs, whose
    ``D = l_i - l_j`` and ``w`` are those of whole episodes, summed over their steps."""
    rows, returns = rows_of(PLAYED, indices=[0, 1, 3]), [1.0, 0.0, 0.5]
    ended, kept, limited = 0, 0, 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        moved = [torch.tensor(rng.normal(0, 0.15, len(row.response))) for row in rows]
        episodes = torch.tensor(
            [sum(float(x.sum()) for x, row in zip(moved, rows, strict=True) if row.draw == d) for d in range(3)],
            requires_grad=True,
        )
        loss = torch.tensor(0.0)
        for i in range(3):
            for j in range(3):
                q, moved_apart = returns[i] - returns[j], episodes[i] - episodes[j]
                w = (episodes[i] + episodes[j]).detach().exp()
                limited += bool(w > 1.3 or w < 1 / 1.3)
                w = w.clamp(1 / 1.3, 1.3)
                whole, cut = -q * w * moved_apart, -q * w * moved_apart.clamp(-0.1, 0.1)
                ended, kept = ended + bool(cut > whole), kept + bool(abs(moved_apart) > 0.1 and cut < whole)
                loss = loss + torch.maximum(whole, cut) / 2
        (slopes,) = torch.autograd.grad(loss, episodes)
        surrogate = SURROGATES.make("p3o", {"off_policy": True, "clip": 0.1, "ratio_limit": 1.3})
        assert surrogate.needs == {"current"}
        got = surrogate.row_data(rows, PLAYED, moved)["coefficient"]
        assert got.tolist() == pytest.approx([-float(slopes[row.draw]) / 2 for row in rows], abs=1e-6)  # over n - 1
    assert min(ended, kept, limited) > 0


def test_p3o_pairs_are_those_of_the_update():
    """An episode drawn alone from its group has no pair; one drawn twice is no pair with itself."""
    rows = rows_of(PLAYED, indices=[0, 1, 1, 4])
    got = {
        row.draw: c
        for row, c in zip(rows, SURROGATES.make("p3o").row_data(rows, PLAYED, None)["coefficient"], strict=True)
    }
    assert got == {0: pytest.approx(1.0), 1: pytest.approx(-0.5), 2: pytest.approx(-0.5), 3: 0.0}


def test_p3o_off_policy_needs_whole_episodes_in_a_step():
    config = MSGRPOConfig(surrogate="p3o", minibatches=2, method_settings={"surrogate": {"p3o": {"off_policy": True}}})
    with pytest.raises(ConfigError, match="minibatches = 2: a minibatch holds some steps"):
        Methods.of(config)
    assert Methods.of(replace(config, minibatches=1)).surrogate.needs == {"current"}


# ---------------------------------------------------------------- APO


def test_apo_weights_by_hand():
    """Group a has 1 of 3 successes, of 4 tokens; the failure of 9 is 5 longer, that of 3 isn't. b and c: 1."""
    data = SURROGATES.make("apo").row_data(rows_of(PLAYED), PLAYED, None)
    w, f = 1 - math.exp(-math.e / 3), 2 - 1.00001**-5.0
    assert data["kl_weight"].tolist() == pytest.approx([w, w, w, w, w, 1, w, 1, 1, 1, 1])
    assert data["length_factor"].tolist() == pytest.approx([1, 1, f, f, f, 1, 1, 1, 1, 1, 1], rel=1e-14)
    assert f == pytest.approx(1 + 5e-5, rel=1e-8)


# ---------------------------------------------------------------- LLDS

STEPS = [np.array([1.0, 1.0]), np.array([-1.0, -0.5, 2.0]), np.array([0.0]), np.array([-1.0]), np.array([2.0]),
         np.array([-1.0]), np.array([1.0, -3.0])]  # fmt: skip
"""Advantages of PLAYED: the means of episodes 0, 1, 2 and 4 are at least 0."""


def test_llds_is_nothing_at_the_first_optimiser_step():
    """And rounding in the log-probabilities doesn't make it something."""
    rows = rows_of(PLAYED, STEPS)
    surrogate = SURROGATES.make("llds")
    data = {name: each.tolist() for name, each in surrogate.row_data(rows, PLAYED, None).items()}
    for noise in (0.0, 1e-7):
        tokens = tokens_for(rows, off_policy=noise)
        got, alone = through_loss(surrogate, tokens, data=data), through_loss(SURROGATES.make("ppo"), tokens)
        assert got.loss == alone.loss
        assert got.gradient == alone.gradient


def test_llds_takes_the_bases_settings_from_the_run():
    settings = {"surrogate": {"llds": {"base": "cispo"}, "cispo": {"cap": 1.5}}}
    config = MSGRPOConfig(surrogate="llds", clip_high=0.5, method_settings=settings)
    rows = rows_of(PLAYED, STEPS)
    tokens = tokens_for(rows, 2)
    made = Methods.of(config).surrogate
    data = {"share_of_mean": [0.0] * len(rows)}
    assert through_loss(made, tokens, data=data) == through_loss(SURROGATES.make("cispo", {"cap": 1.5}), tokens)
    plain = Methods.of(replace(config, method_settings={})).surrogate
    assert through_loss(plain, tokens, data=data) == through_loss(SURROGATES.make("ppo", {"clip_high": 0.5}), tokens)


def test_llds_refuses_what_it_cannot_stand_on():
    with pytest.raises(ConfigError, match="did you mean 'gspo'"):
        SURROGATES.make("llds", {"base": "gsp0"})
    settings = {"surrogate": {"llds": {"base": "p3o"}, "p3o": {"off_policy": True}}}
    with pytest.raises(ConfigError, match="base = 'p3o' looks at the rows of every optimiser step"):
        Methods.of(MSGRPOConfig(surrogate="llds", minibatches=1, method_settings=settings))
    with pytest.raises(ConfigError, match="accepted is another surrogate"):
        Methods.of(MSGRPOConfig(surrogate="llds", method_settings={"surrogate": {"llds": {"base": "llds"}}}))
