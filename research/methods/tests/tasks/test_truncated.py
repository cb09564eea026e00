"""T-PPO's rollouts: segments make up whole episodes, nothing is played twice, and a cut has the value before it."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.credit import METHODS, Batch, Trajectory
from agents.msgrpo.tasks import SAMPLERS
from research.methods.tasks.truncated import TruncatedRollouts
from tests.agents.msgrpo.exact import Known
from tests.agents.msgrpo.played import iteration_of
from textgames.scenarios import SCENARIOS

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("game", "window"), [("frozen-lake-slippery", 4), ("taxi", 3), ("snake-poison", 7)])
def test_the_segments_of_an_episode_make_up_one_episode(game, window):
    """Each continues in the state and with the rounds left of the one before; a place begins anew after an end."""
    sampler, limit = TruncatedRollouts(window=window), SCENARIOS[game].horizon
    places = defaultdict[int, list[list[Trajectory]]](list)
    for number in range(12):
        iteration = iteration_of(game, Known(share=0.3), number=number, groups=2, group_size=3)
        played, ends = sampler.sample(iteration, RNG), []
        assert len(played) == 6 == len(iteration.played)
        for place, segment in enumerate(played):
            episodes = places[place]
            before = episodes[-1][-1] if episodes else None
            if before is None or before.terminated or before.steps_left[-1] == 1:
                episodes.append([])
                assert segment.steps_left[0] == limit
            else:
                assert segment.states[0] == before.end_state
                assert segment.steps_left[0] == before.steps_left[-1] - 1
            episodes[-1].append(segment)
            over = segment.terminated or segment.steps_left[-1] == 1
            assert len(segment) == window or (over and len(segment) < window)
            if over:
                ends.append(sum(each.rewards.sum() for each in episodes[-1]))
        assert sampler.metrics["whole_episodes"] == len(ends)
        if ends:
            assert sampler.metrics["whole_return"] == pytest.approx(np.mean(ends))
    finished = [each for own in places.values() for each in own if each[-1].terminated or each[-1].steps_left[-1] == 1]
    assert max(map(len, finished)) > 1
    for episode in finished:
        left = [left for segment in episode for left in segment.steps_left]
        assert left == list(range(limit, limit - len(left), -1))  # every round once


def test_by_hand_the_row_of_five_is_crossed_in_two_iterations():
    """Three steps to the right, then one more that pays 1; V is 0.2, 0.5, 0.7 before the cut, and 0.7 behind it."""
    lake = SCENARIOS["frozen-lake"]
    row = lake._replace(kwargs={**lake.kwargs, "desc": ["SFFFG"], "max_steps": 9})
    sampler = TruncatedRollouts(window=3)

    class Right(Known):
        def _answer(self, request):
            return replace(super()._answer(request), response="<action>right</action>")

    first, second, third = (
        sampler.sample(iteration_of(row, Right(), number=number, groups=1, group_size=2), RNG)[0] for number in range(3)
    )
    assert [each.rewards.tolist() for each in (first, second, third)] == [[0, 0, 0], [1], [0, 0, 0]]
    assert [(each.terminated, each.success) for each in (first, second)] == [(False, False), (True, True)]
    assert [each.steps_left for each in (first, second, third)] == [(9, 8, 7), (6,), (9, 8, 7)]
    values = [replace(first, values=np.array([0.2, 0.5, 0.7])), replace(second, values=np.array([0.9]))]
    credit = METHODS.make("tppo", {"whiten": False}).assign(Batch(values), RNG)
    assert np.concatenate(credit.advantages).tolist() == pytest.approx([0.5, 0.2, 0.0, 0.1])


def test_a_game_of_several_players_is_refused():
    with pytest.raises(ConfigError, match="task_sampling = 'truncated' can't be used on kuhn-poker"):
        SAMPLERS.make("truncated").check(EpisodeTask.of("kuhn-poker", 0))


@pytest.mark.slow
def test_a_model_learns_from_segments(tokenizer, make_llama, prompt_file):
    """The corridor of four rounds, two at a time: whole episodes return more, and no segment is longer."""
    config = MSGRPOConfig(
        groups=4, group_size=8, episode_sampling="off", iterations=12, response_mode="direct", max_response_tokens=1,
        temperature=1.0, format_penalty=0.5, learning_rate=5e-3, minibatches=2, entropy_coefficient=0.01, eval_every=0,
        samples_every=0, min_valid_share=0, stop_after=0, prompt_file=prompt_file, credit="tppo",
        task_sampling="truncated", critic_learning_rate=3e-3, method_settings={"tasks": {"truncated": {"window": 2}}},
    )  # fmt: skip
    model = make_llama(len(tokenizer), initializer_range=0.15)
    history = MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, quiet=True).train()
    assert history[1]["whole_return"] < -0.5
    assert np.mean([metrics["whole_return"] for metrics in history[-3:]]) > 0.8
    assert all(metrics["episode_length"] <= 2 for metrics in history)
