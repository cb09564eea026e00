"""HCAPO and IGPO: the questions to the model, credit by hand, and refused policies and games."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agents.baselines.random import RandomPlayer
from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError
from agents.msgrpo.credit import METHODS, Batch
from agents.turn import TurnRequest, request_in
from research.credit.tests.helpers import direct_policy
from research.methods.credit.asked import IGPO, hindsight
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.runs import iteration_of
from textgames.registry import game_of

SHORT_LAKE = {"desc": ["SFF", "FHG"], "grid": False, "max_steps": 3}
SCORES = [np.log([0.5, 0.25]), np.log([0.7])]


def assigned(given: Batch, **settings: float) -> list[float]:
    made: Any = METHODS.make("hcapo", {"temperature": 1.0} | settings)
    return np.concatenate(made.by_scores(given, SCORES).advantages).tolist()


def z(values: list[float]) -> Any:
    return (np.array(values) - np.mean(values)) / (np.std(values, ddof=1) + 1e-6)


def test_hcapo_by_hand():
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
    played = iteration.play([EpisodeTask.of("frozen-lake", seed, **SHORT_LAKE) for seed in range(4)])
    scores = hindsight(Batch(played, iteration))
    game = game_of("TextFrozenLake-v0", desc=SHORT_LAKE["desc"], grid=False)
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


RNG = np.random.default_rng(0)
LAKE = {"desc": ["SFF", "FHF", "FFG"], "max_steps": 6}


class Leaning(RandomPlayer):
    """Random, and says of itself that it goes right with a probability that depends on how many rounds are left."""

    def action_probabilities(self, request: TurnRequest) -> dict[str, float]:
        right = request.steps_left / 10
        return {a: right if a == "right" else (1 - right) / 3 for a in request.legal_actions}


def test_igpo_by_hand():
    """Both ways around the hole take four steps: right and down are best at the start, then one of them alone.

    With six rounds left an action that goes nowhere would get there as well, but it dawdles. P is 0.6 + 0.4 / 3 at the
    start, and 0.5 after a step right, with five left, where only right is best.
    """
    task = EpisodeTask.of("frozen-lake", 0, **LAKE)
    (any_one,) = iteration_of("frozen-lake").play([task])
    first = any_one.states[0]
    cells = {cell: first._replace(position=cell) for cell in range(9)}
    one = trajectory([0.0, 0.0, 0.0, 1.0], [cells[cell] for cell in (0, 1, 2, 5)], horizon=6, task=task)
    other = trajectory([0.0, -0.5], [cells[0], cells[0]], horizon=6, task=task)
    sure_one = [0.6 + 0.4 / 3, 0.5, (1 - 0.4) / 3, (1 - 0.3) / 3]
    sure_other = [0.6 + 0.4 / 3, 0.5 + 0.5 / 3]
    batch = Batch([one, other], iteration_of("frozen-lake", Leaning()))
    ahead_one = [1.0 + sure_one[3] - sure_one[t] for t in range(3)] + [1.0]  # gains telescope
    ahead_other = [-0.5 + sure_other[1] - sure_other[0], -0.5]
    credit = IGPO().assign(batch, RNG)
    np.testing.assert_allclose(credit.advantages[0], np.subtract(ahead_one, [*ahead_other, 0.0, 0.0]))  # then alone
    np.testing.assert_allclose(credit.advantages[1], np.subtract(ahead_other, ahead_one[:2]))
    assert credit.metrics["planner_probability"] == pytest.approx(np.mean(sure_one + sure_other))
    assert credit.metrics["probabilities_asked"] == 5  # the start is one state in both


def test_policies_without_a_model_and_games_without_a_yardstick_are_refused():
    iteration = iteration_of("TestButtons-v0", RandomPlayer(), groups=1, group_size=2)
    played = Batch(iteration.play(iteration.tasks()), iteration)
    with pytest.raises(ConfigError, match="a model in this process"):
        METHODS.make("hcapo").assign(played, RNG)
    with pytest.raises(ConfigError, match="TestButtons-v0 has no yardstick: choose another method or game"):
        METHODS.make("igpo").assign(played, RNG)
    with pytest.raises(ValueError, match="this batch has no rollouts"):
        METHODS.make("igpo").assign(Batch(iteration.played), RNG)
