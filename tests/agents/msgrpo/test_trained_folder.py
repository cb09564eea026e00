"""A trained folder says how its model wants to be asked; prompts may be an object as well as a file."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from transformers import AutoTokenizer

from agents import load_agent
from agents.loop.rollout import rollout
from agents.models.local.loading.card import PLAIN_TEMPLATE, Card, read_card, write_card
from agents.models.local.loading.load import load_model
from agents.msgrpo import ConfigError, MSGRPOTrainer
from agents.msgrpo.trajectories import training_tasks
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from tests.agents.msgrpo.runs import SHORT

CONFIG = replace(SHORT, response_mode="think", iterations=1, eval_every=1, eval_episodes=2)
TEXTS = PromptTexts(
    system="", opening="$instructions", observation="$observation", response={"short": "Answer:"}, no_actions="",
    no_limit="",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["direct", "think"])
def test_every_checkpoint_has_its_mode_and_a_chat_template(mode, tokenizer, make_llama, tmp_path):
    config = replace(CONFIG, response_mode=mode, out=str(tmp_path))
    MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True).train()
    for name in ("best", "last"):
        assert read_card(str(tmp_path / name)) == Card((mode,), PromptTexts.default())
        assert cast(Any, load_agent(f"hf:{tmp_path / name}")).prompt_map == PromptMap(mode)
        assert AutoTokenizer.from_pretrained(tmp_path / name).chat_template == PLAIN_TEMPLATE
    assert tokenizer.chat_template is None  # the one that was passed in is left as it is


@pytest.mark.slow
def test_a_prompt_map_object_is_what_episodes_are_prompted_with(tokenizer, make_llama, tmp_path):
    def make(prompt_map: PromptMap | None, **changes: Any) -> MSGRPOTrainer:
        config = replace(CONFIG, out=str(tmp_path), **changes)
        model = make_llama(len(tokenizer))
        return MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, prompt_map=prompt_map, quiet=True)

    own = PromptMap("short", texts=TEXTS)
    trainer = make(own)
    played = rollout(trainer.policy, training_tasks(trainer.config, trainer.games, 0))
    asked = {step.turn.prompt[-1].content for episode in played for step in episode.steps}
    assert asked
    assert asked <= {f"Go right.\n\ncell {cell}\n\nAnswer:" for cell in range(3)}
    trainer.train()
    assert read_card(str(tmp_path / "last")) == Card(("short",), TEXTS)
    assert cast(Any, load_agent(f"hf:{tmp_path / 'last'}")).prompt_map == own  # and played in no other way
    make(own, iterations=2).resume(tmp_path)
    for other in (None, PromptMap("direct")):
        with pytest.raises(ConfigError, match=r"other prompts: .*prompt_map="):
            make(other).resume(tmp_path)
    with pytest.raises(ConfigError, match=r"prompt_file = 'mine\.toml' and a prompt_map"):
        make(own, prompt_file="mine.toml")


def loaded(tokenizer: Any, make_llama: Any, folder: Path, mode: str = "think", texts: PromptTexts = TEXTS) -> Any:
    make_llama(len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    write_card(folder, modes=[mode], texts=texts)
    return load_model(str(folder), dtype="float32", device="cpu")[0]


def test_a_model_is_trained_with_the_prompts_that_it_knows(tokenizer, make_llama, tmp_path):
    before = PromptTexts.from_file("without-clock")
    model = loaded(tokenizer, make_llama, tmp_path / "base", texts=before)
    config = replace(CONFIG, response_mode="think", out=str(tmp_path / "out"))
    trainer = MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", config, quiet=True)
    assert trainer.policy.prompt_map == PromptMap("think", texts=before)
    trainer.train()
    assert read_card(str(tmp_path / "out" / "last")) == Card(("think",), before)
    fresh = MSGRPOTrainer(make_llama(len(tokenizer)), tokenizer, "TestCorridor-v0", config, quiet=True)
    assert fresh.policy.prompt_map == PromptMap("think")  # of a model without a card: the package's own
    own = PromptMap("direct")  # a program that gives a prompt map means it
    given = MSGRPOTrainer(model, tokenizer, "TestCorridor-v0", CONFIG, prompt_map=own, quiet=True)
    assert given.policy.prompt_map == own
