"""One of the processes of test_distributed.py: trains for three iterations and writes what it sees."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[4]))
specification = importlib.util.spec_from_file_location("games", Path(__file__).parents[1] / "conftest.py")
assert specification is not None
assert specification.loader is not None
specification.loader.exec_module(importlib.util.module_from_spec(specification))  # registers the test games

from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer  # noqa: E402

model, prompts, folder, changes = sys.argv[1:]
config = MSGRPOConfig(
    scenarios=("TestCorridor-v0",), prompt_file=prompts, groups=2, group_size=5, episodes_drawn=7, iterations=3,
    response_mode="direct", max_response_tokens=2, temperature=1.0, minibatches=2, learning_rate=1e-3,
    kl_coefficient=0.1, entropy_coefficient=0.01, eval_every=3, eval_episodes=3, samples_every=0,
    micro_batch_tokens=40, tree_tokens=20, out=str(Path(folder) / "run"), device="cpu", adam_eps=1e-5,
)  # fmt: skip
config = replace(config, **json.loads(changes))


def make(iterations: int) -> MSGRPOTrainer:
    weights, tokenizer = AutoModelForCausalLM.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    return MSGRPOTrainer(weights, tokenizer, config=replace(config, iterations=iterations), quiet=True)


make(2).train()  # and stop here, so that resuming is part of what has to come out equal
trainer = make(3)
trainer.resume(config.out)
history = trainer.train()
weights = trainer.processes.state_dict(trainer.model)
if trainer.processes.rank == 0:
    (Path(folder) / "history.json").write_text(json.dumps(history))
    torch.save({name: tensor.clone() for name, tensor in weights.items()}, Path(folder) / "weights.pt")
trainer.processes.wait()
