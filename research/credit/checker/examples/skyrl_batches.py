"""Write the examples that SkyRL's own generator and trainer made, in an environment with skyrl 0.3 and without a GPU.

    python -m research.credit.checker.examples.skyrl_batches research/credit/checker/examples

Its generator plays a walk of two to four turns, its trainer makes the batch and the advantages; only the answers of the
engine are random words.
"""

import asyncio
import sys
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import typing_extensions

from research.credit.checker.writers.skyrl import write_batch

GROUPS, SIZE = 2, 4
WORDS = ["[UNK]", "<end>", "left", "right", "up", "down", "go", "on", "room", "here"]
TEMPLATE = "{% for m in messages %}{{ m.content }} <end> {% endfor %}{% if add_generation_prompt %}go {% endif %}"


def tokenizer() -> Any:
    """Return a tokenizer of ten words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    make: Any = PreTrainedTokenizerFast
    own = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    own.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return make(tokenizer_object=own, unk_token="[UNK]", eos_token="<end>", pad_token="<end>", chat_template=TEMPLATE)


class Engine:
    """An engine that answers with random words, the same ones in whatever order it is asked."""

    async def generate(self, asked: Any, model: Any = None) -> dict[str, Any]:
        rng = np.random.default_rng([len(asked["prompt_token_ids"][0]), *asked["session_ids"][0].encode()])
        words = [int(word) for word in rng.integers(2, 6, rng.integers(1, 4))]
        return {
            "responses": [" ".join(WORDS[word] for word in words)],
            "response_ids": [[*words, 1]],
            "stop_reasons": ["stop"],
            "response_logprobs": [[-1.5] * (len(words) + 1)],
        }

    async def finish_session(self, session: str) -> None:
        pass


def walk(every_turn: bool) -> type:
    """Return an environment of two to four turns that pays at the end, or in every turn."""
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

    class Walk(BaseTextEnv):  # type: ignore[misc]
        def __init__(self, env_config: Any = None, extras: Any = None) -> None:
            super().__init__()
            self.rng = np.random.default_rng(extras["seed"])
            self.length = int(self.rng.integers(2, 5))

        def step(self, action: str) -> Any:
            self.turns += 1
            done = self.turns == self.length
            told = [] if done else [{"role": "user", "content": "room here"}]
            paid = float(self.rng.integers(0, 5)) if every_turn or done else 0.0
            return BaseTextEnvStepOutput(observations=told, reward=paid, done=done, metadata={})

    return Walk


def batch_of(step_wise: bool, every_turn: bool, estimator: str) -> Any:
    """Return SkyRL's batch with its advantages."""
    import skyrl_gym
    import torch
    from skyrl.train.config import SkyRLTrainConfig
    from skyrl.train.generators.base import TrajectoryID
    from skyrl.train.generators.skyrl_gym_generator import SkyRLGymGenerator
    from skyrl.train.trainer import RayPPOTrainer

    config, words = SkyRLTrainConfig(), tokenizer()
    config.generator.step_wise_trajectories, config.generator.max_turns = step_wise, 9
    config.generator.max_input_length, config.generator.sampling_params.logprobs = 500, 0
    config.environment.skyrl_gym.max_env_workers = 0
    config.generator.n_samples_per_prompt, config.trainer.train_batch_size = SIZE, GROUPS
    config.trainer.policy_mini_batch_size, config.trainer.algorithm.advantage_estimator = GROUPS, estimator
    name = f"walk-{step_wise}-{every_turn}-{estimator}"
    skyrl_gym.register(id=name, entry_point=walk(every_turn))
    generator = SkyRLGymGenerator(config.generator, config.environment.skyrl_gym, Engine(), words)
    labels = [f"g{group}" for group, _ in np.ndindex(GROUPS, SIZE)]
    asked = {
        "prompts": [[{"role": "user", "content": f"room {'on ' * int(label[1:])}"}] for label in labels],
        "env_classes": [name] * len(labels),
        "env_extras": [{"seed": seed} for seed in range(len(labels))],
        "trajectory_ids": [TrajectoryID(label, i % SIZE) for i, label in enumerate(labels)],
    }
    trainer = RayPPOTrainer.__new__(RayPPOTrainer)  # without its workers, which need Ray and GPUs
    trainer.cfg, trainer.tokenizer, trainer.all_metrics, trainer.generator = config, words, {}, generator
    trainer.dispatch = SimpleNamespace(get_lcm_dp_size=lambda: 1)
    made = asyncio.run(trainer.generate(asked))
    uids = [each.instance_id for each in made["trajectory_ids"]] if step_wise else labels
    made, uids = trainer.postprocess_generator_output(made, uids)
    data = trainer.convert_to_training_input(made, uids)
    values = torch.from_numpy(np.random.default_rng(5).normal(1, 0.5, tuple(data["rewards"].shape))).float()
    data["values"] = values if estimator == "gae" else None
    return trainer.compute_advantages_and_returns(data)


def main() -> None:
    """Write the examples into the folder that the command names."""
    typing.TypedDict = typing_extensions.TypedDict  # pydantic wants it below Python 3.12
    for name, options in {
        "grpo": (False, True, "grpo"),
        "rloo": (False, True, "rloo"),
        "gae": (False, True, "gae"),
        "steps": (True, False, "grpo"),
        "steps-paid": (True, True, "grpo"),
    }.items():
        with (Path(sys.argv[1]) / f"skyrl-{name}.jsonl").open("w", encoding="utf-8") as stream:
            write_batch(stream, batch_of(*options))


if __name__ == "__main__":
    main()
