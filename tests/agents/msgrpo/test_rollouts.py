"""Fresh rollouts: unbiased, with noise of their own, and counted; and hints that reach the prompts that are learnt."""

import copy
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.models.scripted import ScriptedModel
from agents.msgrpo import ConfigError, MSGRPOTrainer, completed
from agents.msgrpo.credit import Start
from agents.msgrpo.rollouts import HintedPromptMap
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap, as_text
from agents.turn import TurnRequest
from tests.agents.models.local.test_thinking import HYBRID, NEVER, THOUGHT, taught, tokenizer_with
from tests.agents.msgrpo.runs import SHORT, Exact, Known, iteration_of

LAKE = {"desc": ["SFF", "FHF", "FFG"], "is_slippery": True, "max_steps": 6, "format_penalty": 0.25}


@pytest.mark.parametrize("player", ["player_0", "player_1"])
def test_every_player_has_returns_of_its_own_from_any_state(player):
    """Also one who isn't to move; in kuhn poker, from the first state and from the one after it."""
    iteration, task = iteration_of("kuhn-poker", Known(share=0.4)), EpisodeTask.of("kuhn-poker", 0, protocol="default")
    exact = Exact(task, share=0.4)
    starts = [Start(task, each.states[0], done, player) for done, each in enumerate(iteration.play([task])[:2])]
    for start, row in zip(starts, iteration.returns_from(starts, 500), strict=True):
        value = exact.value(start.state, task.kwargs["max_steps"] - start.elapsed_steps, player)
        assert abs(row.mean() - value) < 4.5 * row.std(ddof=1) / np.sqrt(500)


def test_noise_is_never_used_twice():
    """Not within a call, not in the next one, not in another iteration, and not that of the episodes themselves."""

    def seeds_of(number: int) -> list[tuple[int, ...]]:
        policy = Known()
        iteration = iteration_of("frozen-lake", policy, number=number, groups=2, group_size=4)
        first = iteration.play(iteration.tasks())[0]
        assert first.task is not None
        start = Start(first.task, first.states[0], 0, "player_0")
        for _ in range(2):
            iteration.returns_from([start, start], 5)
        return policy.seeds

    assert max(Counter(seeds_of(0) + seeds_of(1)).values()) == 1
    assert sorted(seeds_of(1)) == sorted(seeds_of(1))  # and yet the run's seed decides all of it


def test_prompts_that_show_earlier_turns_can_not_be_made():
    policy = LanguageAgentPolicy(ScriptedModel(["<action>left</action>"]), PromptMap("direct", history_turns=2))
    iteration = iteration_of("frozen-lake", policy)
    with pytest.raises(ConfigError, match=r"history_turns = 2\): use a prompt map with history_turns = 0"):
        iteration.returns_from([], 3)


def test_a_hint_is_in_the_prompts_that_are_learnt_from(make_trainer, tokenizer):
    iteration = make_trainer(replace(SHORT, max_response_tokens=1)).rollout().rollouts
    hinted = iteration.play(iteration.tasks(), lambda r: "green" if r.observation == "cell 0" else "")
    told = {tokenizer.decode(prompt) for each in hinted for prompt in each.prompt_ids}
    assert {text.count("green") for text in told if "cell 0" in text} == {1}
    assert any("green\n\ncell 0" in text for text in told)
    assert not any("green" in text for text in told if "cell 1" in text)
    plain = iteration.play(iteration.tasks())
    assert not any("green" in tokenizer.decode(prompt) for each in plain for prompt in each.prompt_ids)


def test_the_arguments_of_the_chat_template_are_trained_and_saved_with(tmp_path, prompt_file):
    tokenizer, model = tokenizer_with(HYBRID), copy.deepcopy(taught(HYBRID, THOUGHT))
    config = replace(SHORT, prompt_file=prompt_file).with_overrides(["chat_template_kwargs.enable_thinking=false"])
    trainer = MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, quiet=True)
    closed = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    for each in trainer.rollout().trajectories:
        assert all(tokenizer.decode(prompt).endswith(closed) for prompt in each.prompt_ids)
    assert tokenizer.chat_template == HYBRID  # the caller's own is as it was
    for saved in (model, trainer.tokenizer):
        saved.save_pretrained(tmp_path)
    player: Any = load_agent(f"hf:{tmp_path}", mode="direct")
    assert tokenizer.decode(player.act(["Where to?"])[0].prompt_ids).endswith(closed)
    with pytest.raises(ConfigError, match="enable_thinking, which the chat template of the model doesn't read"):
        MSGRPOTrainer(model, tokenizer_with(NEVER), "TestCorridor-v0", config, quiet=True)


def test_a_hint_stands_before_the_observation_of_its_own_decision_alone():
    hints = {"first": "Go left.", "second": ""}
    rho = HintedPromptMap("direct", 1, hint=lambda request: hints[request.observation])
    plain = PromptMap("direct", 1)
    first = TurnRequest("first", "rules", ("left", "right"))
    assert as_text(rho(first)) == as_text(plain(first)).replace("first", "Go left.\n\nfirst")
    second = TurnRequest("second", "rules", ("left", "right"), history=(("first", "<action>left</action>"),))
    assert rho(second) == plain(second)  # nothing is told, and what was told before isn't repeated


def plain(model: Any, prompt: tuple[int, ...], response: tuple[int, ...]) -> tuple[list[float], float]:
    """Log-probabilities of a response's tokens and the mean entropy of their distributions, temperature applied."""
    logits = model(input_ids=torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1].double() / 1.7
    log_p = logits.log_softmax(-1)
    logprobs = [float(row[token]) for row, token in zip(log_p, response, strict=True)]
    return logprobs, float(-(log_p.exp() * log_p).sum(-1).mean())


@torch.no_grad()
def test_entropies_and_old_log_probabilities_are_computed_if_they_are_needed_and_not_told(make_trainer):
    trainer = make_trainer(replace(SHORT, group_size=3, max_response_tokens=3, temperature=1.7))
    trajectories, scores_of = list(trainer.rollout().trajectories), trainer.learner.logprobs_and_entropies
    silent = [replace(each, old_logprobs=None) for each in trajectories]
    for each in completed(silent, {"entropies", "old_logprobs"}, scores_of):
        for t, pair in enumerate(zip(each.prompt_ids, each.response_ids, strict=True)):
            logprobs, entropy = plain(trainer.model, *pair)
            assert each.old_logprobs is not None
            assert each.entropies is not None
            np.testing.assert_allclose(each.old_logprobs[t], logprobs, atol=1e-5)
            assert each.entropies[t] == pytest.approx(entropy, abs=1e-5)
    told = completed(trajectories, {"old_logprobs"}, scores_of)
    assert all(new is old for new, old in zip(told, trajectories, strict=True))
    told = completed(trajectories, {"entropies"}, scores_of)
    assert all(new.old_logprobs is old.old_logprobs for new, old in zip(told, trajectories, strict=True))
