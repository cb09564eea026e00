"""The method in one file (examples/msgrpo_minimal.py) does what the trainer does in every iteration, and learns."""

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import agents
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, group_advantages

ROOT = Path(__file__).parents[3]
TINY = Path(agents.__file__).parent / "tiny" / "weights" / "tiny"


@pytest.fixture(scope="module")
def minimal():
    sys.path.insert(0, str(ROOT / "examples"))
    import msgrpo_minimal

    yield msgrpo_minimal
    sys.path.remove(str(ROOT / "examples"))


def load(folder: Path) -> tuple[Any, Any]:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(folder)


def test_it_has_at_most_255_lines_and_needs_nothing_of_the_trainer():
    text = (ROOT / "examples" / "msgrpo_minimal.py").read_text()
    assert len(text.splitlines()) <= 255
    imported = {match[1] for match in re.finditer(r"^(?:from|import) (\w+)", text, re.MULTILINE)}
    assert imported - sys.stdlib_module_names == {"numpy", "torch", "transformers", "textgames"}


class Watched(MSGRPOTrainer):
    """A trainer that keeps what its latest iteration has played and learnt from."""

    def rollout(self) -> Any:
        self.played, self.rows, self.stats = super().rollout(), [], SimpleNamespace(losses=[], grad_norms=[])
        return self.played

    def update(self, rows: Sequence[Any], rng: np.random.Generator, batch: Any) -> Any:
        self.rows, self.stats = list(rows), super().update(rows, rng, batch)
        return self.stats


@pytest.mark.parametrize(
    ("scenario", "card", "seed", "iterations", "meets"),
    [
        ("frozen-lake", False, 4, 1, {"invalid_rate", "truncated_response_rate"}),
        pytest.param(
            *("frozen-lake-slippery", True, 4, 2, {"zero_advantage_groups", "skipped"}), marks=pytest.mark.slow
        ),
    ],
)
def test_its_iterations_are_those_of_the_trainer(minimal, tmp_path, scenario, card, seed, iterations, meets):
    """Compare episodes, advantages, draws, losses, gradient norms and parameters of every iteration.

    Both compute in float32 and sum in different orders, so gradients agree to about seven digits. With the learning
    rate equal to Adam's epsilon a parameter moves by no more than its clipped gradient, and so the parameters agree to
    1e-6. With the usual epsilon of 1e-8 rounding alone would decide where a parameter with hardly any gradient goes.
    """
    folder = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    if not card:  # then prompts are worded as today, with the moves left
        (folder / "textbench.json").unlink()
    shared: dict[str, Any] = {
        "groups": 2, "group_size": 3, "episodes_drawn": 3, "iterations": iterations, "seed": seed,
        "max_response_tokens": 32, "learning_rate": 1e-3, "adam_eps": 1e-3, "weight_decay": 0.1, "max_grad_norm": 0.1,
    }  # fmt: skip
    config = MSGRPOConfig(
        schedule="linear", clip_low=0.002, clip_high=0.002, eval_every=0, samples_every=0, **shared
    )  # fmt: skip
    trainer = Watched(*load(folder), scenario, config, quiet=True)
    model, tokenizer = load(folder)
    for episodes, drawn, taken in minimal.train(model, tokenizer, minimal.Settings(scenario, clip=0.002, **shared)):
        trainer.iterate()
        played = trainer.played.trajectories
        for mine, theirs in zip(episodes, played, strict=True):
            assert [tuple(step.prompt) for step in mine.steps] == list(theirs.prompt_ids)
            assert [tuple(step.response) for step in mine.steps] == list(theirs.response_ids)
            assert (mine.reward, mine.invalid) == (theirs.rewards.sum(), (~theirs.valid).sum())
        advantages = group_advantages([theirs.rewards.sum() for theirs in played], [theirs.group for theirs in played])
        assert [mine.advantage for mine in episodes] == pytest.approx(advantages.tolist(), abs=1e-12)
        assert [(i, mine) for i in drawn for mine in [episodes[i].advantage] * len(episodes[i].steps)] == [
            (row.trajectory, pytest.approx(row.advantage, abs=1e-12)) for row in trainer.rows
        ]
        assert [loss for loss, _ in taken] == pytest.approx(trainer.stats.losses, abs=1e-6)
        assert [norm for _, norm in taken] == pytest.approx(trainer.stats.grad_norms, rel=1e-5)
        for (name, mine), theirs in zip(model.named_parameters(), trainer.model.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-6, msg=name)
    met = {name for metrics in trainer.history for name, value in metrics.items() if value}
    assert {"clip_fraction_low", "clip_fraction_high", *meets} <= met
