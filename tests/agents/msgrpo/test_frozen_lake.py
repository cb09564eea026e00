"""A tiny model learns Frozen Lake: three seeds, against where it started, on episodes that training never sees."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer

RECIPE = Path(__file__).parents[3] / "configs" / "tiny-frozen-lake.toml"


@pytest.fixture(scope="module")
def base() -> Any:
    """A short pretraining: the model reads the board and names actions, and plays badly."""
    from agents.tiny import Recipe, pretrain

    torch.set_num_threads(1)
    return pretrain(Recipe.quick(modes=("direct",), steps=400, examples=10_000))


@pytest.mark.slow
def test_three_seeds_end_above_where_they_started(base: Any) -> None:
    """The 95% interval of the gain over seeds, by Student's t, lies above zero, and each seed's gain is large."""
    weights = {name: tensor.clone() for name, tensor in base.model.state_dict().items()}
    config = replace(
        MSGRPOConfig.from_toml(RECIPE),
        iterations=30,
        schedule="constant",
        learning_rate=6e-4,
        eval_every=30,
        eval_episodes=150,
        out="",
    )
    gains = []
    for seed in range(3):
        base.model.load_state_dict(weights)
        trainer = MSGRPOTrainer(base.model, base.tokenizer, config=replace(config, seed=seed), quiet=True)
        trainer.train()
        (_, (before,)), (_, (after,)) = trainer.evaluations
        gains.append(after.mean_return - before.mean_return)
    low, _ = stats.t.interval(0.95, df=2, loc=np.mean(gains), scale=stats.sem(gains))
    assert low > 0
    assert min(gains) > 0.1
