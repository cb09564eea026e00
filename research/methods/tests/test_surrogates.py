"""Surrogates: what some of them say of rows, by hand, and all through the learner against plain loops."""

import math
from collections.abc import Sequence
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
from agents.msgrpo.learner.update import UpdateStats, known_tokens
from agents.msgrpo.surrogates import SURROGATES
from agents.msgrpo.trajectories import training_rows
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.learner import test_surrogates
from tests.agents.msgrpo.learner.learners import (
    Answer,
    Data,
    Row,
    by_differences,
    clip,
    gradients,
    gspo,
    make_learner,
    ppo,
    ppo_token,
    ragged,
    ragged_rows,
    through_loss,
)
from tests.agents.msgrpo.learner.test_surrogates import MORE, WAYS, configured, played

# ---------------------------------------------------------------- as plain loops


def sapo(rows: Sequence[Row], data: Data) -> Answer:
    def loss(rows: Sequence[Row]) -> float:
        total = 0.0
        for row in rows:
            for logp, old, a in zip(row.logp, row.old, row.advantages, strict=True):
                tau = 2.0 if a > 0 else 1.05
                total += -(4 / tau) / (1 + math.exp(-tau * (math.exp(logp - old) - 1))) * a
        return total

    return loss(rows), by_differences(loss, rows)


def nft(rows: Sequence[Row], data: Data) -> Answer:
    """Of ``-log m`` with the gradient straight through ``m = max(x, 1)``: ``-1/m dx``, ``dx = -p rho / (1 - p)``."""
    total, gradient = 0.0, []
    for i, row in enumerate(rows):
        c, p, w = (data[name][i] for name in ("label", "rate", "weight"))
        gradient.append([])
        for logp, old in zip(row.logp, row.old, strict=True):
            rho = math.exp(logp - old)
            m = max((1 - p * rho) / (1 - p), 1.0)
            total += w * (1 - p) * (c * -(logp - old) + (1 - c) * -math.log(m))
            gradient[-1].append(w * (1 - p) * (-c + (1 - c) * p * rho / (1 - p) / m))
    return total, gradient


def p3o(rows: Sequence[Row], data: Data) -> Answer:
    pairs = list(zip(rows, data["coefficient"], strict=True))
    return sum(-c * x for row, c in pairs for x in row.logp), [[-c] * len(row.logp) for row, c in pairs]


def minpro(rows: Sequence[Row], data: Data) -> Answer:
    """The gradient of ``-sg(w) A log pi`` is ``-w A``, with the smallest earlier ratio in w."""
    total, gradient = 0.0, []
    for row in rows:
        ratios = [math.exp(new - old) for new, old in zip(row.logp, row.old, strict=True)]
        gradient.append([])
        for k, (ratio, logp, a) in enumerate(zip(ratios, row.logp, row.advantages, strict=True)):
            weight = clip(min([1.0] if k == 0 else ratios[:k]) * ratio, 0.7, 1.28)
            total += -weight * a * logp
            gradient[-1].append(-weight * a)
    return total, gradient


def apo(rows: Sequence[Row], data: Data) -> Answer:
    def loss(rows: Sequence[Row]) -> float:
        total = 0.0
        for row, kl_weight, factor in zip(rows, data["kl_weight"], data["length_factor"], strict=True):
            for logp, old, ref, a in zip(row.logp, row.old, row.ref, row.advantages, strict=True):
                total += ppo_token(math.exp(logp - old), a * (factor if a < 0 else 1.0), 0.2, 0.2)
                total += 0.5 * (kl_weight if a > 0 else 1.0) * (math.exp(ref - logp) - 1 - (ref - logp))
        return total

    return loss(rows), by_differences(loss, rows)


def direct_apo(rows: Sequence[Row], data: Data) -> Answer:
    """The sum over responses of half the squared difference of A / beta and their log-ratio to the reference."""

    def loss(rows: Sequence[Row]) -> float:
        return sum((np.mean(row.advantages) / 0.5 - (sum(row.logp) - sum(row.ref))) ** 2 / 2 for row in rows)

    return loss(rows), by_differences(loss, rows)


def llds_term(rows: Sequence[Row], episodes: Sequence[int]) -> float:
    """L: rows of one number in ``episodes`` are one episode's."""
    of_episode: dict[int, list[Row]] = {}
    for row, own in zip(rows, episodes, strict=True):
        of_episode.setdefault(own, []).append(row)
    shares = []
    for own in of_episode.values():
        if np.mean([np.mean(row.advantages) for row in own]) >= 0:
            lost = [[old - new for new, old in zip(row.logp, row.old, strict=True)] for row in own]
            nats = sum(max(0.0, d) for ds in lost if sum(ds) > 0 for d in ds)
            shares.append(nats / sum(map(len, lost)))
    return float(np.mean(shares)) if shares else 0.0


OWN: dict[str, Any] = {
    "atpo": ({}, gspo(3e-3, 4e-3)),
    "sapo": ({"tau_positive": 2.0}, sapo),
    "nft": ({}, nft),
    "p3o": ({"off_policy": True}, p3o),
    "minpro": ({"clip_low": 0.3, "clip_high": 0.28}, minpro),
    "apo": ({"kl_coefficient": 0.5}, apo),
    "llds": ({"weight": 0.5}, ppo()),
    "direct_apo": ({"beta": 0.5}, direct_apo),
}


@pytest.fixture(autouse=True)
def _ways(monkeypatch):
    for name, way in OWN.items():
        monkeypatch.setitem(WAYS, name, way)
    monkeypatch.setitem(MORE, "llds", lambda rows, episodes: 0.5 * llds_term(rows, episodes))


@pytest.mark.parametrize("name", OWN)
def test_the_gradient_equals_plain_loops_whatever_the_micro_batches(make_llama, name):
    test_surrogates.test_the_gradient_equals_plain_loops_whatever_the_micro_batches(make_llama, name)


def test_minpro_by_hand():
    """Ratios 0.5, 2, 1.5 are multiplied by 1, 0.5, min(0.5, 2): 0.5, 1, 0.75, of which two are below 0.8."""
    row = Row([math.log(0.5), math.log(2.0), math.log(1.5)], [0.0, 0.0, 0.0], [0.0] * 3, [1.0, 1.0, -2.0])
    got = through_loss(SURROGATES.make("minpro"), [row])
    assert got.gradient[0] == pytest.approx([-0.8, -1.0, 1.6])
    assert got.loss == pytest.approx(-(0.8 * math.log(0.5) + math.log(2.0) - 1.6 * math.log(1.5)))
    assert (got.sums["clipped_low"], got.sums["clipped_high"]) == (2, 0)


def test_the_term_of_llds_on_parts_of_the_rows_estimates_the_whole(make_llama):
    """Two optimiser steps on a half of the rows each, at a rate of nothing: the mean of their losses is the whole's."""
    rows = ragged_rows(6)
    rows = rows[: len(rows) // 2 * 2]
    config = configured("llds", loss_normalizer="step", learning_rate=1e-12)
    learner = make_learner(make_llama, config)
    whole = gradients(learner, rows, batch=played(rows))[0]
    alone = gradients(make_learner(make_llama, replace(config, surrogate="ppo")), rows)[0]
    assert whole > alone + 0.01
    for group in learner.optimizer.param_groups:
        group["lr"] = 0.0
    old = [torch.tensor(row.logprobs, dtype=torch.float64) for row in rows]
    data = learner._row_data(rows, range(len(rows)), played(rows))
    known, stats = known_tokens(rows, old)._replace(data=data), UpdateStats()
    for part in (range(0, len(rows), 2), range(1, len(rows), 2)):
        learner._step(rows, known, part, stats)
    assert np.mean(stats.losses) == pytest.approx(whole, rel=1e-8)


# ---------------------------------------------------------------- what is said of rows

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


def test_nft_labels_by_hand():
    """Group a: one success of three; b and c have no difference and no weight. Rows: 2 3 1 1 1 1 2.

    Graded, a has 1, 0, 0.5, b 1, 0, and c the returns 1 and 3, which are 0 and 1."""
    data = SURROGATES.make("nft").row_data(rows_of(PLAYED), PLAYED, None)
    assert data["label"].tolist() == [1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert data["rate"][[0, 1, 2, 3, 4, 6]] == pytest.approx([1 / 3] * 6)
    assert data["weight"].tolist() == [1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0]
    graded = SURROGATES.make("nft", {"labels": "return"})
    data = graded.row_data(rows_of(PLAYED), PLAYED, None)
    assert data["label"].tolist() == [1, 1, 0, 0, 0, 1, 0.5, 0, 0, 1, 1]
    assert data["rate"].tolist() == pytest.approx([0.5] * 11)
    assert data["weight"].tolist() == [1] * 11
    equal = batch(trajectory([2.0]), trajectory([2.0]))
    assert not graded.row_data(rows_of(equal), equal, None)["weight"].any()


def test_nft_rates_are_kept_from_the_edges():
    """One success of 100 is 0.02; and draws are told apart from trajectories: rows of draws 2 and 0, weighted."""
    many = batch(*(trajectory([0.0], success=i == 0) for i in range(100)))
    rows = rows_of(many, indices=[0, 7, 7], scale=[2.0, 0.5, 0.5])
    data = SURROGATES.make("nft").row_data(rows, many, None)
    assert data["rate"].tolist() == [0.02] * 3
    assert data["label"].tolist() == [1, 0, 0]
    assert data["weight"].tolist() == [2.0, 0.5, 0.5]


def test_p3o_with_all_pairs_is_rloo_and_pairs_are_those_of_the_update():
    """An episode drawn alone from its group has no pair; one drawn twice is no pair with itself."""
    surrogate = SURROGATES.make("p3o")
    rows = rows_of(PLAYED, METHODS.make("rloo").assign(PLAYED, np.random.default_rng(0)).advantages)
    coefficients = surrogate.row_data(rows, PLAYED, None)["coefficient"]
    assert coefficients.tolist() == pytest.approx([row.advantage for row in rows], abs=1e-15)
    rows = rows_of(PLAYED, indices=[0, 1, 1, 4])
    got = dict(zip([row.draw for row in rows], surrogate.row_data(rows, PLAYED, None)["coefficient"], strict=True))
    assert got == {0: pytest.approx(1.0), 1: pytest.approx(-0.5), 2: pytest.approx(-0.5), 3: 0.0}


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


def test_p3o_off_policy_needs_whole_episodes_in_a_step():
    config = MSGRPOConfig(surrogate="p3o", minibatches=2, method_settings={"surrogate": {"p3o": {"off_policy": True}}})
    with pytest.raises(ConfigError, match="minibatches = 2: a minibatch holds some steps"):
        Methods.of(config)
    assert Methods.of(replace(config, minibatches=1)).surrogate.needs == {"current"}


def test_apo_weights_by_hand():
    """Group a has 1 of 3 successes, of 4 tokens; the failure of 9 is 5 longer, that of 3 isn't. b and c: 1."""
    data = SURROGATES.make("apo").row_data(rows_of(PLAYED), PLAYED, None)
    w, f = 1 - math.exp(-math.e / 3), 2 - 1.00001**-5.0
    assert data["kl_weight"].tolist() == pytest.approx([w, w, w, w, w, 1, w, 1, 1, 1, 1])
    assert data["length_factor"].tolist() == pytest.approx([1, 1, f, f, f, 1, 1, 1, 1, 1, 1], rel=1e-14)
    assert f == pytest.approx(1 + 5e-5, rel=1e-8)


def test_llds_is_nothing_at_the_first_optimiser_step():
    """And rounding in the log-probabilities doesn't make it something."""
    for noise in (0.0, 1e-7):
        tokens = ragged(0, 6, off_policy=noise)
        got = through_loss(SURROGATES.make("llds"), tokens, data={"share_of_mean": [0.2] * 6})
        assert got[:2] == through_loss(SURROGATES.make("ppo"), tokens)[:2]


def test_llds_takes_the_bases_settings_from_the_run_and_refuses_what_it_cannot_stand_on():
    def made(base: str = "ppo", **own: Any) -> Any:
        settings = {"surrogate": {"llds": {"base": base}, base: own}}
        config = MSGRPOConfig(surrogate="llds", clip_high=0.5, minibatches=1, method_settings=settings)
        return Methods.of(config).surrogate

    tokens, data = ragged(2, 6), {"share_of_mean": [0.0] * 6}
    for base, same, own in (("cispo", {"cap": 1.5}, {"cap": 1.5}), ("ppo", {"clip_high": 0.5}, {})):
        assert through_loss(made(base, **own), tokens, data=data) == through_loss(SURROGATES.make(base, same), tokens)
    with pytest.raises(ConfigError, match="did you mean 'gspo'"):
        SURROGATES.make("llds", {"base": "gsp0"})
    with pytest.raises(ConfigError, match="base = 'p3o' looks at the rows of every optimiser step"):
        made("p3o", off_policy=True)
    with pytest.raises(ConfigError, match="accepted is another surrogate"):
        SURROGATES.make("llds", {"base": "llds"})
