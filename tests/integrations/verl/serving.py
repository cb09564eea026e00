"""What verl's trainers have around an agent loop, on this machine and without a GPU: servers, configuration, data."""

import sys
from pathlib import Path

from agents.models.base import Decoding
from agents.models.embedded import FOLDER, PROVIDER

MODEL = FOLDER / "tiny"
GROUP = 16  # the tiny model does unlike enough in snake that no two groups of this size are all alike


class TinyServer:
    """The tiny model behind the method that verl's client calls on the actor of a vLLM or SGLang server."""

    def __init__(self) -> None:
        self.model, self.answered = PROVIDER.make("tiny"), 0

    def generate(self, request_id, prompt_ids, sampling_params, image_data=None, video_data=None):
        from verl.workers.rollout.replica import TokenOutput

        self.answered += 1
        decoding = Decoding(sampling_params["temperature"], max_tokens=64, stop=())
        (row,) = self.model.generate_ids([tuple(prompt_ids)], decoding, [(self.answered,)])
        return TokenOutput(token_ids=list(row.ids), log_probs=list(row.logprobs), stop_reason="completed")

    def count(self) -> int:
        return self.answered


def trainer_config(folder: Path, samples: str, *overrides: str):
    """verl's own configuration of a training, for the starts and the agent loop that this writes into the folder."""
    import pandas as pd
    from hydra import compose, initialize_config_module

    from textbench.integrations.verl import start_rows

    starts, loops = folder / "starts.parquet", folder / "loops.yaml"
    pd.DataFrame(start_rows("snake", 2, first_seed=12)).to_parquet(starts)
    loops.write_text(
        f"- name: textbench\n  _target_: textbench.integrations.verl.agent_loop.GameAgentLoop\n  samples: {samples}\n"
        "  settings: {format_penalty: 1.0}\n"
    )
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose(
            "ppo_trainer",
            overrides=[
                f"data.train_files={starts}",
                f"data.val_files={starts}",
                "data.train_batch_size=2",
                "data.dataloader_num_workers=0",
                "data.max_prompt_length=256",
                "data.max_response_length=64",
                f"actor_rollout_ref.model.path={MODEL}",
                "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
                "actor_rollout_ref.rollout.name=vllm",
                f"actor_rollout_ref.rollout.n={GROUP}",
                "actor_rollout_ref.rollout.agent.num_workers=1",
                f"actor_rollout_ref.rollout.agent.agent_loop_config_path={loops}",
                "algorithm.adv_estimator=grpo",
                *overrides,
            ],
        )


def serve_tiny(config):
    """verl's client of a server, by way of verl's router; and the server's actor."""
    import ray
    from verl.workers.rollout.llm_server import LLMServerClient
    from verl.workers.rollout.router import get_router_handle

    # by value: some package that verl brings along has tests of its own, which Ray's processes would import
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    server = ray.remote(TinyServer).remote()
    return LLMServerClient(config, get_router_handle({"tiny": server})), server


def read_starts(config):
    """A batch of the starts, as verl's data set and its trainers' collation read them."""
    from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn
    from verl.utils.tokenizer import hf_tokenizer

    rows = RLHFDataset(config.data.train_files, hf_tokenizer(str(MODEL)), config.data)
    return collate_fn([rows[index] for index in range(len(rows))])
