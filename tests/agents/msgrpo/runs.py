"""A training of milliseconds that the tests vary, and how two runs are compared."""

from collections.abc import Sequence
from typing import Any

import torch

from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer

SHORT = MSGRPOConfig(
    groups=2, group_size=4, iterations=4, response_mode="direct", max_response_tokens=2, temperature=1.0, minibatches=1,
    learning_rate=1e-3, eval_every=0, samples_every=0,
)  # fmt: skip
ALONE: dict[str, Any] = {"stop_after": 0, "preflight_episodes": 0}  # nothing looks at how the run goes


def untimed(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in each.items() if not k.endswith(("seconds", "per_second"))} for each in history]


def same_weights(one: MSGRPOTrainer, two: MSGRPOTrainer) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True))
