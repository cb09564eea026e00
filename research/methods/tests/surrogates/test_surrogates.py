"""The surrogates of this folder through the learner: see tests/agents/msgrpo/learner/test_surrogates.py."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agents.msgrpo.learner.update import UpdateStats, known_tokens
from agents.msgrpo.surrogates import SURROGATES
from research.methods.tests.surrogates import formulas
from tests.agents.msgrpo.learner import test_surrogates
from tests.agents.msgrpo.learner.learners import gradients, make_learner, ragged_rows
from tests.agents.msgrpo.learner.test_distributed import run
from tests.agents.msgrpo.learner.test_surrogates import MORE, WAYS, configured, played
from tests.agents.msgrpo.surrogates.formulas import gspo, ppo
from tests.agents.msgrpo.surrogates.ragged import Row, through_loss

OWN: dict[str, Any] = {
    "atpo": ({}, gspo(3e-3, 4e-3)),
    "sapo": ({"tau_positive": 2.0}, formulas.sapo(2.0)),
    "nft": ({}, formulas.nft),
    "p3o": ({"off_policy": True}, formulas.p3o),
    "minpro": ({"clip_low": 0.3, "clip_high": 0.28}, formulas.minpro(0.7, 1.28)),
    "apo": ({"kl_coefficient": 0.5}, formulas.apo(0.2, 0.2, 0.5)),
    "llds": ({"weight": 0.5}, ppo()),
}


@pytest.fixture(autouse=True)
def _ways(monkeypatch):
    for name, way in OWN.items():
        monkeypatch.setitem(WAYS, name, way)
    monkeypatch.setitem(MORE, "llds", lambda rows, episodes: 0.5 * formulas.llds_term(rows, episodes))


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


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"surrogate": "nft"}, id="numbers-per-row", marks=pytest.mark.nightly),
        pytest.param(
            {"surrogate": "p3o", "minibatches": 1, "update_passes": 2, "episode_sampling": "off",
             "loss_normalizer": "episode", "method_settings": {"surrogate": {"p3o": {"off_policy": True}}}},
            id="looks-at-every-step", marks=pytest.mark.nightly,
        ),
        pytest.param(
            {"surrogate": "llds", "loss_normalizer": "response",
             "method_settings": {"surrogate": {"llds": {"base": "gspo"}}}},
            id="adds-a-term", marks=pytest.mark.nightly,
        ),
    ],
)  # fmt: skip
def test_surrogates_that_know_more_of_rows_are_the_same_in_two_processes(
    changes, tmp_path, tokenizer, make_llama, prompt_file
):
    model = str(tmp_path / "model")
    make_llama(len(tokenizer)).save_pretrained(model)
    tokenizer.save_pretrained(model)
    one, weights_one = run(tmp_path / "one", model, prompt_file, 1, "ddp", **changes)
    two, weights_two = run(tmp_path / "two", model, prompt_file, 2, "ddp", **changes)
    assert any(h["grad_norm"] > 0 for h in one)
    for a, b in zip(one, two, strict=True):
        for name in ("loss", "grad_norm", "ratio", "clip_fraction"):
            assert a[name] == pytest.approx(b[name], rel=2e-3, abs=2e-5), name
    for name in weights_one:
        torch.testing.assert_close(weights_two[name], weights_one[name], atol=2e-5, rtol=1e-3)
