"""HiPER in the trainer: its prompts, its parts, and that it learns the corridor with subgoals."""

from typing import Any

import numpy as np
import pytest

from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from tests.tiny_models import word_tokenizer

WORDS = (
    "<switch>SWITCH</switch>", "<switch>KEEP</switch>", "<subgoal>exit</subgoal>", "<action>left</action>",
    "<action>right</action>", "cell 0", "cell 1", "exit", "none", "\n",
)  # fmt: skip
PROMPTS = """
opening = "$instructions"
observation = "$observation\\n$memory"
memory = "subgoal"
no_memory = "none"
[response]
think = "<switch> <subgoal> <action>"
"""
SETTINGS: dict[str, Any] = {
    "credit": "hiper", "groups": 4, "group_size": 8, "iterations": 10, "max_response_tokens": 3, "temperature": 1.0,
    "format_penalty": 0.5, "learning_rate": 5e-3, "minibatches": 2, "update_passes": 2, "entropy_coefficient": 0.01,
    "episode_sampling": "off", "critic_learning_rate": 3e-3, "critic_passes": 2, "eval_every": 0, "samples_every": 0,
}  # fmt: skip


@pytest.fixture
def trainer(make_llama, tmp_path):
    path = tmp_path / "prompts.toml"
    path.write_text(PROMPTS)
    tokenizer = word_tokenizer(WORDS)
    config = MSGRPOConfig(prompt_file=str(path), **SETTINGS)
    model = make_llama(len(tokenizer), initializer_range=0.15)
    return MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, quiet=True)


def test_prompts_show_the_subgoal_and_parts_are_found(trainer):
    told, subgoal = trainer.tokenizer.convert_tokens_to_ids(["exit", "<subgoal>exit</subgoal>"])
    shown = 0
    for each in trainer.rollout().trajectories:
        assert each.head_values.keys() == {"low", "high", "term"}
        for t, response in enumerate(each.response_ids):
            assert len(each.head_values["low"][t]) == len(response)
            names = [trainer.tokenizer.convert_ids_to_tokens(token) for token in response]
            tags = [(k, name[1 : name.index(">")]) for k, name in enumerate(names) if "</" in name]
            assert [(part.start, part.name) for part in each.segments[t]] == tags
            before = [token for earlier in each.response_ids[:t] for token in earlier]
            assert (told in each.prompt_ids[t]) == (subgoal in before)
            shown += subgoal in before
    assert shown > 3


@pytest.mark.slow
def test_it_learns_the_corridor(trainer):
    """From about -1.3 to the optimum of 1: a switch, a subgoal or neither, and one step to the right."""
    history = trainer.train()
    assert history[0]["return"] < -0.5
    assert np.mean([metrics["return"] for metrics in history[-3:]]) > 0.8
    assert 0 <= history[-1]["switch_rate"] <= 1
