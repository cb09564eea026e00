"""Fresh rollouts: unbiased, with noise of their own, and counted; and hints that reach the prompts that are learnt."""

import copy
import tomllib
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.models.scripted import ScriptedModel
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.credit import Start
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.rollouts import HintedPromptMap, completed
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap, as_text
from agents.turn import TurnRequest
from tests.agents.models.local.test_thinking import HYBRID, NEVER, THOUGHT, taught, tokenizer_with
from tests.agents.msgrpo.conftest import PROMPTS
from tests.agents.msgrpo.exact import Exact, Known
from tests.agents.msgrpo.played import iteration_of
from tests.agents.msgrpo.runs import SHORT
from tests.tiny_models import word_tokenizer

LAKE = {"desc": ["SFF", "FHF", "FFG"], "is_slippery": True, "max_steps": 6, "format_penalty": 0.25}


@pytest.mark.parametrize("player", ["player_0", "player_1"])
def test_every_player_has_returns_of_its_own_from_any_state(player):
    """Also one who isn't to move; in kuhn poker, from the first state and from the one after it."""
    iteration, task = iteration_of("kuhn-poker", Known(share=0.4)), EpisodeTask.of("kuhn-poker", 0, protocol="default")
    (first, second) = iteration.play([task])[:2]
    exact = Exact(task, share=0.4)
    starts = [Start(task, each.states[0], elapsed, player) for elapsed, each in enumerate((first, second))]
    limit = task.kwargs["max_steps"]
    for start, row in zip(starts, iteration.returns_from(starts, 500), strict=True):
        value = exact.value(start.state, limit - start.elapsed_steps, player)
        assert abs(row.mean() - value) < 4.5 * row.std(ddof=1) / np.sqrt(500)


def test_noise_is_never_used_twice():
    """Not within a call, not in the next one, not in another iteration, and not that of the episodes themselves."""
    used: Counter[tuple[int, ...]] = Counter()
    for number in range(2):
        policy = Known()
        iteration = iteration_of("frozen-lake", policy, number=number, groups=2, group_size=4)
        trajectories = iteration.play(iteration.tasks())
        task = trajectories[0].task
        assert task is not None
        start = Start(task, trajectories[0].states[0], 0, "player_0")
        for _ in range(2):
            iteration.returns_from([start, start], 5)
        used.update(policy.seeds)
    assert max(used.values()) == 1
    again = Known()
    iteration = iteration_of("frozen-lake", again, number=1, groups=2, group_size=4)
    iteration.play(iteration.tasks())
    for _ in range(2):
        iteration.returns_from([start, start], 5)
    assert set(again.seeds) == {seed for seed in policy.seeds}  # noqa: C416 - and yet the run's seed decides all of it


def test_prompts_that_show_earlier_turns_can_not_be_made():
    policy = LanguageAgentPolicy(ScriptedModel(["<action>left</action>"]), PromptMap("direct", history_turns=2))
    iteration = iteration_of("frozen-lake", policy)
    with pytest.raises(ConfigError, match=r"history_turns = 2\): use a prompt map with history_turns = 0"):
        iteration.returns_from([], 3)


def test_a_hint_is_in_the_prompts_that_are_learnt_from(make_trainer, tokenizer):
    """The trajectories' prompts are those that were sampled from; without a hint nothing is told."""
    config = MSGRPOConfig(
        groups=1, group_size=2, iterations=1, response_mode="direct", max_response_tokens=1, eval_every=0,
        samples_every=0,
    )  # fmt: skip
    trainer = make_trainer(config)
    iteration = trainer.rollout().rollouts
    hinted = iteration.play(iteration.tasks(), lambda r: "green" if r.observation == "cell 0" else "")
    told = {tokenizer.decode(prompt) for each in hinted for prompt in each.prompt_ids}
    assert {text.count("green") for text in told if "cell 0" in text} <= {1}
    assert not any("green" in text for text in told if "cell 1" in text)
    assert any("green\n\ncell 0" in text for text in told)
    for each in hinted:
        (said,) = trainer.learner.logprobs([TokenRow(each.prompt_ids[0], each.response_ids[0])])
        np.testing.assert_allclose(said.numpy(), each.old_logprobs[0], atol=1e-4)
    plain = iteration.play(iteration.tasks())
    assert not any("green" in tokenizer.decode(prompt) for each in plain for prompt in each.prompt_ids)


@pytest.mark.slow
def test_a_prefix_is_of_the_prompt_and_what_is_sampled_behind_it_is_learnt(tmp_path, make_llama):
    """<action> stands in the prompts' tokens, so that a response of one word and the closing tag is a valid one."""
    tokenizer = word_tokenizer(("<action>", "</action>", "left", "right", "cell 0", "cell 1", "cell 2", "\n"))
    path = tmp_path / "prefixed.toml"
    path.write_text(PROMPTS + '\n[prefix]\ndirect = "<action>"\n')
    config = MSGRPOConfig(
        groups=2, group_size=8, iterations=1, response_mode="direct", max_response_tokens=4, eval_every=0,
        samples_every=0, prompt_file=str(path),
    )  # fmt: skip
    trainer = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True)
    opened, closed = tokenizer.convert_tokens_to_ids(["<action>", "</action>"])
    trajectories = trainer.rollout().trajectories
    valid = 0
    for each in trajectories:
        for prompt, response, logprobs, was_valid in zip(
            each.prompt_ids, each.response_ids, each.old_logprobs or (), each.valid, strict=True
        ):
            assert prompt[-1] == opened
            (said,) = trainer.learner.logprobs([TokenRow(prompt, response)])
            assert len(said) == len(response)
            np.testing.assert_allclose(said.numpy(), logprobs, atol=1e-4)
            if was_valid:
                assert tokenizer.decode(response).strip() in ("left</action>", "right</action>")
                assert response[-1] == closed
            valid += bool(was_valid)
    assert valid  # a random model of ten words finds one now and then
    assert np.isfinite(trainer.iterate()["loss"])


def test_the_arguments_of_the_chat_template_are_trained_and_saved_with(tmp_path, prompt_file):
    tokenizer = tokenizer_with(HYBRID)
    config = MSGRPOConfig(
        groups=1, group_size=2, iterations=1, response_mode="direct", max_response_tokens=3, eval_every=0,
        samples_every=0, prompt_file=prompt_file,
    ).with_overrides(["chat_template_kwargs.enable_thinking=false"])  # fmt: skip
    assert MSGRPOConfig.from_mapping(tomllib.loads(config.to_toml())) == config
    model = copy.deepcopy(taught(HYBRID, THOUGHT))
    trainer = MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, quiet=True)
    closed = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    for each in trainer.rollout().trajectories:
        assert all(tokenizer.decode(prompt).endswith(closed) for prompt in each.prompt_ids)
    assert tokenizer.chat_template == HYBRID  # the caller's own is as it was
    model.save_pretrained(tmp_path / "saved")
    trainer.tokenizer.save_pretrained(tmp_path / "saved")
    player: Any = load_agent(f"hf:{tmp_path / 'saved'}", mode="direct")
    (turn,) = player.act(["Where to?"])
    assert tokenizer.decode(turn.prompt_ids).endswith(closed)
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
    assert HintedPromptMap("direct")(first) == PromptMap("direct")(first)


# ---------------------------------------------------------------- what methods need


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
