"""Groups of episodes by the generator of SkyRL's trainers; the tiny model answers in place of its engines."""

import asyncio
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import pytest

from agents.models.base import Decoding

pytestmark = [
    pytest.mark.adapters,
    pytest.mark.filterwarnings("ignore"),  # SkyRL's own
    pytest.mark.skipif(find_spec("skyrl") is None, reason="needs SkyRL 0.3: .ci/adapters skyrl"),
]
GROUP = 8


class TinyClient:
    """Answers as SkyRL's client of its engines does."""

    def __init__(self, model):
        self.model, self.asked = model, 0

    async def generate(self, batch, model=None):
        self.asked += 1
        prompts = [tuple(ids) for ids in batch["prompt_token_ids"]]
        rows = self.model.generate_ids(prompts, Decoding(1.0, max_tokens=64, stop=()), [(self.asked,)] * len(prompts))
        texts = [self.model.tokenizer.decode(list(row.ids), skip_special_tokens=True) for row in rows]
        return {
            "responses": texts,
            "response_ids": [list(row.ids) for row in rows],
            "stop_reasons": ["stop"] * len(rows),
            "response_logprobs": None,
        }

    async def finish_session(self, session_id):
        """Nothing is kept of a session."""


def generated(folder):
    """What the generator gives for two groups of snake, and the groups that its input names."""
    import pandas as pd
    from skyrl.train.config import EnvironmentConfig, SkyRLGymConfig, SkyRLTrainConfig
    from skyrl.train.dataset import PromptDataset
    from skyrl.train.generators import SkyRLGymGenerator
    from skyrl.train.generators.utils import prepare_generator_input

    from agents.models.embedded import PROVIDER
    from textbench.integrations.skyrl import start_rows

    @dataclass
    class Environments(SkyRLGymConfig):
        textbench: dict[str, Any] = field(default_factory=dict)

    @dataclass
    class Environment(EnvironmentConfig):
        skyrl_gym: Environments = field(default_factory=Environments)

    @dataclass
    class Config(SkyRLTrainConfig):
        environment: Environment = field(default_factory=Environment)

    config = Config.from_cli_overrides(
        [
            "environment.env_class=textbench",
            "environment.skyrl_gym.textbench.mode=think",
            "environment.skyrl_gym.textbench.settings.format_penalty=1.5",
            "generator.batched=false",
            "generator.max_turns=100",
            "generator.max_input_length=8000",
        ]
    )
    model = PROVIDER.make("tiny")
    pd.DataFrame(start_rows("snake", 2, first_seed=12)).to_parquet(folder / "starts.parquet")
    data = PromptDataset([str(folder / "starts.parquet")], model.tokenizer, 1000, num_workers=1)
    asked, groups = prepare_generator_input(
        data.collate_fn([data[0], data[1]]), GROUP, {"temperature": 1.0}, "textbench", "train", 1
    )
    generator = SkyRLGymGenerator(config.generator, config.environment.skyrl_gym, TinyClient(model), model.tokenizer)
    return asyncio.run(generator.generate(asked, disable_tqdm=True)), groups


def test_an_episode_is_a_sequence_and_pays_its_return(tmp_path):
    told, groups = generated(tmp_path)
    assert len(told["response_ids"]) == len(groups) == 2 * GROUP
    returns = [metrics["return"] for metrics in told["env_metrics"]]
    assert [sum(rewards) for rewards in told["rewards"]] == pytest.approx(returns)
    first_prompts = {(group, tuple(ids)) for group, ids in zip(groups, told["prompt_token_ids"], strict=True)}
    assert len(first_prompts) == 2  # one start for each group
    assert any(total % 1 for total in returns)  # snake pays whole numbers; halves are the configuration's penalty
