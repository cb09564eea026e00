"""Training with legal_only: no invalid answer, the learner's probabilities are the sampler's, it resumes exactly."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from agents.analysis.action_probabilities import exact_probabilities, sample_actions, score_actions
from agents.analysis.inspection import DirectAnswers
from agents.models.local.transformers import TransformersModel
from agents.msgrpo import ConfigError
from agents.policy import LanguageAgentPolicy
from agents.turn import Message, TurnRequest
from tests.agents.models.local.test_transformers import make_tokenizer
from tests.agents.msgrpo import runs

SHORT = replace(
    runs.SHORT, legal_only=True, iterations=2, max_response_tokens=24, temperature=1.25, kl_coefficient=0.01,
    entropy_coefficient=0.01, eval_episodes=4, eval_every=2,
)  # fmt: skip


@pytest.fixture
def tokenizer():
    """Writes every answer in many ways."""
    return make_tokenizer()


@pytest.mark.parametrize(("mode", "tokens", "packing"), [("think", 50, "tree"), ("direct", 24, "rows")])
def test_no_invalid_answer_and_the_learner_agrees_with_the_sampler(make_trainer, mode, tokens, packing):
    config = replace(SHORT, response_mode=mode, max_response_tokens=tokens, packing=packing, minibatches=1)
    trainer = make_trainer(config)
    batch = trainer.rollout()
    rows = [row for each in batch.trajectories for row in each.rows]
    assert all(row.allowed is not None for row in rows)
    told = np.concatenate([logprobs for each in batch.trajectories for logprobs in each.old_logprobs])
    scores = trainer.learner.logprobs_and_entropies(rows)
    assert torch.cat([logprobs for logprobs, _ in scores]).numpy() == pytest.approx(told, abs=2e-5)
    forced = 0
    for row, (logprobs, entropies) in zip(rows, scores, strict=True):
        for allowed, logprob, entropy in zip(row.allowed, logprobs.tolist(), entropies.tolist(), strict=True):
            if allowed is not None and not allowed.others and len(allowed.ids) == 1:
                forced += 1
                assert (logprob, entropy) == (0.0, 0.0)
    assert forced
    trainer.iteration = 0
    first = trainer.iterate()
    assert first["invalid_rate"] == 0.0
    assert first["mismatch_max"] < 2e-5
    (result,) = trainer.evaluate()
    assert result.invalid_rate == 0.0


def test_what_cannot_be_trained_so_is_refused_at_the_start(make_trainer):
    with pytest.raises(ConfigError, match=r"legal_only = true: .*doesn't list its legal actions"):
        make_trainer(SHORT, "guess-number")
    with pytest.raises(ConfigError, match=r"eval_regret_episodes .* with legal_only an answer has thousands"):
        make_trainer(replace(SHORT, eval_regret_episodes=2))


def test_nothing_exact_is_said_of_answers_with_thousands_of_tokenisations(make_trainer):
    trainer = make_trainer(SHORT)
    reader = TransformersModel(trainer.model, trainer.tokenizer)
    policy = LanguageAgentPolicy(reader, trainer.policy.prompt_map, trainer.policy.decoding, legal_only=True)
    with pytest.raises(ValueError, match="plays legal-only, where an answer has thousands of tokenisations"):
        DirectAnswers(policy)
    assert score_actions(policy, (Message("user", "x"),), "", ("left", "right")) is None
    request = TurnRequest("cell 0", "Go right.", ("left", "right"), seed=(1,))
    assert exact_probabilities(policy, [request]) is None
    (shares,) = sample_actions(policy, [request], 16)
    assert sum(shares.values()) == 1.0  # none is invalid
