"""HCAPO: credit by hand from scores, the scores of a real model, and who is refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError
from agents.msgrpo.credit import METHODS, Batch
from agents.turn import request_in
from research.credit.tests.helpers import direct_policy
from research.methods.credit.asked import hindsight
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.played import iteration_of
from textgames.registry import game_of

LAKE = {"desc": ["SFF", "FHG"], "grid": False, "max_steps": 3}
SCORES = [np.log([0.5, 0.25]), np.log([0.7])]


def hcapo(**settings: float) -> Any:
    return METHODS.make("hcapo", {"temperature": 1.0} | settings)


def assigned(given: Batch, **settings: float) -> list[float]:
    return np.concatenate(hcapo(**settings).by_scores(given, SCORES).advantages).tolist()


def z(values: list[float]) -> Any:
    return (np.array(values) - np.mean(values)) / (np.std(values, ddof=1) + 1e-6)


def test_by_hand():
    """The first episode's ratios 4/3 and 2/3 are cut off at 1.2 and 0.8, so Q is 0.6 and 0.8; the other's is 0."""
    given = batch(trajectory([0.0, 1.0]), trajectory([0.0]))
    micro = z([0.6, 0.8, 0.0])
    np.testing.assert_allclose(assigned(given, discount=0.5), np.array([1, 1, -1]) * z([1.0, 0.0])[0] + micro)
    smoothed = z([0.7, 0.8, 0.0])
    found = assigned(given, discount=0.5, smoothing=0.5, step_weight=2.0)
    np.testing.assert_allclose(found, np.array([1, 1, -1]) * z([1.0, 0.0])[0] + 2 * smoothed)


def test_hindsight_does_no_harm_to_a_success():
    returns = z([1.0, 0.5])
    micro = z([0.12, 0.8, 0.5])
    assert micro[0] < 0
    for success in (False, True):
        given = batch(trajectory([0.0, 1.0], success=success), trajectory([0.5]))
        first = returns[0] + (0.0 if success else micro[0])
        expected = [first, returns[0] + micro[1], returns[1] + micro[2]]
        np.testing.assert_allclose(assigned(given, discount=0.1), expected)


def test_scores_are_the_models_own_after_the_end_was_told():
    policy: Any = direct_policy()
    iteration = iteration_of("frozen-lake", policy)
    played = iteration.play([EpisodeTask.of("frozen-lake", seed, **LAKE) for seed in range(4)])
    scores = hindsight(Batch(played, iteration))
    game = game_of("TextFrozenLake-v0", desc=LAKE["desc"], grid=False)
    assert len({end for each in played for end in [game.observe(each.end_state, "player_0")]}) > 1
    for each, own in zip(played, scores, strict=True):
        for t, response in enumerate(each.response_ids):
            request = request_in(game, each.states[t], each.player, each.steps_left[t])
            told = f"{game.observe(each.end_state, each.player)}\n\nNow:\n{request.observation}"
            prompt = policy.prompt_map(replace(request, observation=f"The episode will end like this:\n{told}"))
            (ids,) = policy.model.encode([prompt])
            with torch.no_grad():
                logits = policy.model.model(torch.tensor([[*ids, *response]])).logits[0] / policy.decoding.temperature
            logprobs = logits.log_softmax(-1)[range(len(ids) - 1, len(ids) + len(response) - 1), list(response)]
            assert own[t] == pytest.approx(float(logprobs.mean()), rel=1e-4)


def test_a_policy_without_a_model_here_is_refused():
    iteration = iteration_of("frozen-lake")
    played = iteration.play([EpisodeTask.of("frozen-lake", 0)])
    with pytest.raises(ConfigError, match="a model in this process"):
        hcapo().assign(Batch(played, iteration), np.random.default_rng(0))
