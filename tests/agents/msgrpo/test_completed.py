"""What is computed for methods that need it, against one plain forward pass of the model for each response."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agents.msgrpo import MSGRPOTrainer
from agents.msgrpo.rollouts import completed
from tests.agents.msgrpo.runs import SHORT

CONFIG = replace(SHORT, group_size=3, iterations=1, max_response_tokens=3, temperature=1.7)


@pytest.fixture
def trainer(make_trainer):
    made: MSGRPOTrainer = make_trainer(CONFIG)
    return made


def plain(model: Any, prompt: tuple[int, ...], response: tuple[int, ...]) -> tuple[list[float], float]:
    """Log-probabilities of a response's tokens and the mean entropy of their distributions, temperature applied."""
    logits = model(input_ids=torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1].double() / 1.7
    distributions = logits.softmax(-1)
    logprobs = [float(row[token].log()) for row, token in zip(distributions, response, strict=True)]
    entropies = [-sum(p * np.log(p) for p in row.tolist() if p > 0) for row in distributions]
    return logprobs, float(np.mean(entropies))


@torch.no_grad()
def test_entropies_and_old_log_probabilities(trainer):
    trajectories = trainer.rollout().trajectories
    silent = [replace(each, old_logprobs=None) for each in trajectories]
    for needs in ({"entropies"}, {"old_logprobs"}, {"entropies", "old_logprobs"}):
        told = completed(silent, needs, trainer.learner.logprobs_and_entropies)
        assert [len(each) for each in told] == [len(each) for each in trajectories]
        for each in told:
            for t, pair in enumerate(zip(each.prompt_ids, each.response_ids, strict=True)):
                logprobs, entropy = plain(trainer.model, *pair)
                assert each.old_logprobs is not None
                assert each.entropies is not None
                np.testing.assert_allclose(each.old_logprobs[t], logprobs, atol=1e-5)
                assert each.entropies[t] == pytest.approx(entropy, abs=1e-5)
    spread = [value for each in told for value in each.entropies.tolist()]  # type: ignore[union-attr]
    assert len(set(spread)) > 3  # not one number for all


def test_nothing_is_computed_that_nobody_needs_and_what_the_sampler_told_is_kept(trainer):
    trajectories = list(trainer.rollout().trajectories)
    assert all(each.entropies is None for each in trajectories)
    scores_of = trainer.learner.logprobs_and_entropies
    told = completed(trajectories, {"old_logprobs"}, scores_of)
    assert all(new is old for new, old in zip(told, trajectories, strict=True))
    with_entropies = completed(trajectories, {"entropies"}, scores_of)
    assert all(new.old_logprobs is old.old_logprobs for new, old in zip(with_entropies, trajectories, strict=True))
