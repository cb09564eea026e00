"""``textbench check-credit`` on what the real TRL learns from: the tiny model, two iterations on the CPU."""

import json
from importlib.util import find_spec
from typing import Any

import pytest

from agents import load_agent
from benchmark.cli import main
from research.credit.checker.writers.trl import write_batches
from textbench.integrations.trl import (
    StepRollouts,
    episode_return,
    game_environment,
    read_actions_as_calls,
    start_dataset,
)

INSTALLED = find_spec("trl") is not None and find_spec("datasets") is not None
pytestmark = [
    pytest.mark.skipif(not INSTALLED, reason="TRL isn't installed: pip install -c constraints.txt -e '.[trl]'"),
    pytest.mark.filterwarnings("ignore"),  # TRL's own calls of what transformers has renamed
    pytest.mark.slow,
]


def rows_of(tmp_path: Any, ways: dict[str, Any], steps: int = 0, **config: Any) -> Any:
    from trl import GRPOConfig, GRPOTrainer

    local: Any = load_agent("tiny")
    ways.setdefault("processing_class", local.model.tokenizer)
    arguments = GRPOConfig(
        output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=16, num_generations=8, seed=3,
        max_completion_length=160, temperature=1.5, save_strategy="no", report_to="none", disable_tqdm=True,
        use_cpu=True, bf16=False, **config,
    )  # fmt: skip
    trainer = GRPOTrainer(local.model.model, args=arguments, train_dataset=start_dataset("frozen-lake", 8), **ways)
    file = tmp_path / "rows.jsonl"
    write_batches(trainer, file, steps)
    trainer.train()
    return file, trainer


def findings(file: Any, capsys: Any, *options: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = main(["check-credit", str(file), "--json", *options])
    document = json.loads(capsys.readouterr().out)
    return code, document | {each["check"]: each for each in document.pop("findings")}


def test_two_samples_of_an_episode_are_found_to_be_compared_as_samples(tmp_path, capsys):
    ways = {"rollout_func": StepRollouts(format_penalty=1.0, steps_per_episode=2), "reward_funcs": episode_return}
    file, _ = rows_of(tmp_path, ways, steps=2)
    code, found = findings(file, capsys)
    assert code == 1
    assert (found["episodes"], found["turns"]) == (16, 32)
    assert found["formula"]["result"] == "failed"
    assert "each turn was compared as a sample of its own" in found["formula"]["said"]


def test_tool_calls_of_a_conversation_are_turns_whose_answers_are_not_trained(tmp_path, capsys):
    local: Any = load_agent("tiny")
    read_actions_as_calls(local.model.tokenizer)
    ways = {
        "environment_factory": game_environment("frozen-lake", mode="think", format_penalty=1.0),
        "processing_class": local.model.tokenizer,
    }
    file, _ = rows_of(tmp_path, ways)
    _, found = findings(file, capsys)
    assert found["turns"] > found["episodes"] == 32
    assert found["formula"]["result"] == "passed"
    assert "eps = 0.0001" in found["formula"]["said"]
    assert found["starts"]["result"] == "passed"
